"""Choosing among the paper's seven candidates by 5-fold cross-validation, 40,000 x 1,000 float32.

Against one fit-and-evaluate of ours (a plain loop over folds and candidates does 35 of them), and
against the same rule as a loop over scikit-learn, measured on a part and scaled up.
"""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from benchmarks.timing import Times, line, measure, title
from oddslip.calibrators import Isotonic
from oddslip.metrics.at_k import metric_values
from oddslip.metrics.rankings import Rankings
from oddslip.selection import Repair
from oddslip.selection.candidates import PAPER_TAUS
from oddslip.selection.folds import draw_folds, take_positives
from oddslip.sources import open_source

N_ROWS, N_LABELS, K, N_FOLDS = 40_000, 1_000, 7, 5
PART = 20  # labels scikit-learn fits, and one in so many rows that it ranks and pools


def make_panel():
    """A weighted arm: all labels alike in level, true ones as rare as 1 in 2,000 to 1 in 30."""
    rng = np.random.default_rng(0)
    level = rng.permutation(np.log(np.geomspace(5e-4, 3e-2, N_LABELS))).astype(np.float32)
    margin = 1.5 * rng.standard_normal((N_ROWS, N_LABELS), np.float32)
    labels = rng.random(margin.shape, np.float32) < 1 / (1 + np.exp(1 - level - margin))
    return 1 / (1 + np.exp(-margin)), labels


def fit_and_evaluate(scores, labels):
    """One isotonic fit on four folds' worth of rows, and MAP@K of the rest, calibrated."""
    cut = N_ROWS - N_ROWS // N_FOLDS
    ranking = Isotonic().fit(scores[:cut], labels[:cut]).rank(scores[cut:], k=K)
    positives = open_source(scores[cut:], labels[cut:]).positives()
    rows = np.flatnonzero(positives.counts)
    positives, n = take_positives(positives, rows), rows.size
    held = Rankings(
        n, N_LABELS, rows, ranking[rows], np.zeros((n, K), np.uint8), np.ones(n, np.int64),
        positives.indptr, positives.indices, np.zeros(positives.indices.size, np.int8),
    )  # fmt: skip
    return metric_values(held)[:, 0].mean()


class Peer:
    """The rule with scikit-learn, in the parts whose cost grows with labels, cells and rows."""

    def __init__(self, scores, labels):
        self.columns = np.arange(0, N_LABELS, N_LABELS // PART)
        self.scores, self.labels = (
            scores[:, self.columns].astype(np.float64),
            labels[:, self.columns],
        )
        self.some = scores[::PART].astype(np.float64)
        self.some_labels = labels[::PART]
        self.folds = draw_folds(N_ROWS, N_FOLDS, seed=42)[0]

    def fit_labels(self):
        """All folds and taus of some labels, fitted once per fold; predictions of the held rows."""
        for fold in range(N_FOLDS):
            kept = self.folds != fold
            for x, y in zip(self.scores.T, self.labels.T, strict=True):
                fit = IsotonicRegression(out_of_bounds="clip").fit(x[kept], y[kept])
                fit.predict(x[~kept])

    def fit_pooled(self):
        """One pooled fit over four fifths of some rows; there are five such fits."""
        cut = len(self.some) * (N_FOLDS - 1) // N_FOLDS
        fit = IsotonicRegression(out_of_bounds="clip")
        fit.fit(self.some[:cut].ravel(), self.some_labels[:cut].ravel())
        fit.predict(self.some[cut:].ravel())

    def rank(self):
        """Some rows, once; every candidate ranks every row once."""
        np.argsort(-self.some, axis=1, kind="stable")[:, :K]


def run() -> None:
    scores, labels = make_panel()
    title(f"choosing among seven by 5 folds, {N_ROWS:,} x {N_LABELS:,} float32, K={K}")
    one = measure(lambda: fit_and_evaluate(scores, labels), 7)
    rule = measure(lambda: Repair(k=K, rule="paper").fit(scores, labels), 5)
    line("one fit (4 folds) and evaluation (1), ours", one)
    line("the paper's rule, seven candidates, ours", rule)
    print(
        f"  the rule takes {rule.cpu / one.cpu:.1f}x (CPU), {rule.wall / one.wall:.1f}x (wall) ",
        end="",
    )
    print("one fit and evaluation; target: at most 8x; a plain loop: 35x")
    peer = Peer(scores, labels)
    parts = [
        measure(peer.fit_labels, 1, N_LABELS / PART),
        measure(peer.fit_pooled, 1, PART * N_FOLDS),
        measure(peer.rank, 1, PART * (len(PAPER_TAUS) + 2)),
    ]
    theirs = Times(sum(part.cpu for part in parts), sum(part.wall for part in parts))
    line("scikit-learn, shared fits (part, scaled up)", theirs, rule)
    auto = measure(lambda: Repair(k=K).fit(scores, labels), 1)
    print(f'  rule="auto", twelve candidates, logistic ones too: {auto.cpu:.1f} s CPU, ', end="")
    print(f"{auto.cpu / one.cpu:.0f}x one fit and evaluation")


if __name__ == "__main__":
    run()
