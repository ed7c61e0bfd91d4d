"""Isotonic fits of all labels at 131,209 x 200 float32, against a loop of scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from benchmarks.timing import line, measure, title
from oddslip.counting import count_cells
from oddslip.sources import open_source

N_ROWS, N_LABELS = 131_209, 200
PART = range(5, N_LABELS, 10)  # labels that scikit-learn fits; its time is scaled up


def score_shapes():
    rng = np.random.default_rng(0)
    shape = (N_ROWS, N_LABELS)
    yield "spread out", rng.random(shape, np.float32)
    yield "crowded near 0", 1 / (1 + np.exp(6 - 2 * rng.standard_normal(shape, np.float32)))
    saturated = rng.random(shape, np.float32)
    saturated[rng.random(shape, np.float32) < 0.2] = 1
    yield "20% of cells at 1.0", saturated


def fit_ours(scores, labels):
    return count_cells(open_source(scores, labels)).isotonic_knots()


def fit_theirs(columns, truths):
    return [
        IsotonicRegression(out_of_bounds="clip").fit(x, y)
        for x, y in zip(columns, truths, strict=True)
    ]


def largest_difference(knots, peers, columns):
    """Over the training scores of the labels that both fitted."""
    indptr, x, y = knots
    return max(
        np.abs(np.interp(column, x[at], y[at]) - peer.predict(column)).max()
        for at, peer, column in zip(
            [slice(*indptr[label : label + 2]) for label in PART], peers, columns, strict=True
        )
    )


def run() -> None:
    prevalence = np.geomspace(2e-4, 2e-2, N_LABELS, dtype=np.float32)
    for name, scores in score_shapes():
        # A label is likelier where its score is high, up to three times its prevalence.
        chance = prevalence * np.minimum(scores / scores.mean(axis=0), 3)
        labels = np.random.default_rng(1).random(scores.shape, np.float32) < chance
        # Given float32, scikit-learn would merge scores closer than 1e-6.
        columns = [scores[:, label].astype(np.float64) for label in PART]
        truths = [labels[:, label].astype(np.float64) for label in PART]
        title(f"isotonic fits, {N_ROWS:,} x {N_LABELS} float32, {name}")
        knots = fit_ours(scores, labels)
        ours = measure(lambda s=scores, t=labels: fit_ours(s, t), 9)
        line("oddslip count_cells, isotonic_knots", ours)
        theirs = measure(lambda c=columns, t=truths: fit_theirs(c, t), 2, N_LABELS / len(PART))
        line("scikit-learn, every 10th label (scaled up)", theirs, ours, "target: 15x CPU")
        away = largest_difference(knots, fit_theirs(columns, truths), columns)
        per_cell = (times.cpu / scores.size * 1e9 for times in (ours, theirs))
        print("  CPU per cell: ours {:.1f} ns, theirs {:.0f} ns; ".format(*per_cell), end="")
        print(f"largest difference of a fitted value {away:.0e}")


if __name__ == "__main__":
    run()
