"""What the supplement measures of a pair: what-if by steps, ties, split sizes, labels, retraining.

Scores come from files and public verbs read them; nothing of size rows x labels is held but a
ranking's few columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from experiments.datasets.recommendation import Recommendation
from experiments.pairs.arms import Arm
from experiments.pairs.protocols import Rows
from experiments.pairs.training import ArmScores
from experiments.store import score_ranking
from oddslip.calibrators import Isotonic, PooledIsotonic
from oddslip.core.results import plain
from oddslip.metrics import rank
from oddslip.shifts import direct_shift, overlap, reorder_saturated, residual, step_budget, what_if
from oddslip.sources import Source, open_source
from oddslip.sources.views import RowSubset

STEPS = (0.25, 0.5, 0.75, 1.0)  # of ln w (`whatif.csv`)
OVERLAP_ROWS = 500_000  # the first of the test rows, on which the paper counts the overlap
TIE_SEEDS = (0, 1, 2, 3, 4)
SPLITS = (0.003, 0.01, 0.03, 0.1, 0.3)  # of the test rows, to calibrate on (Table S5)
SPLIT_SEEDS = (42, 1, 2, 3, 4)
FREQUENCIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # of the test rows; nothing is trained
FREQUENCY_SEEDS = tuple(range(10))

Floats = NDArray[np.float64]


def step_what_if(
    scores: ArmScores, twin: ArmScores, data: Recommendation, k: int
) -> dict[str, Any]:
    """MAP of the twin with parts of ln w added, all test rows; and what the whole changes."""
    truth = open_source(twin.test, data.test.Y).positives()
    plain_order, weighted = rank(twin.test, k=k), rank(scores.test, k=k)
    unweighted = score_ranking(plain_order, truth, data.n_labels)
    raw = score_ranking(weighted, truth, data.n_labels)
    values, ranking = {}, plain_order
    for step in STEPS:
        ranking = what_if(twin.test, scores.weights**step, k=k).ranking
        values[f"{step:g}"] = score_ranking(ranking, truth, data.n_labels)
    first = slice(0, OVERLAP_ROWS)
    overlaps = overlap(plain_order[first], ranking[first])
    loss = unweighted - raw
    return {
        "unweighted": unweighted,
        "weighted": raw,
        "map": values,
        "odds_share": (unweighted - values["1"]) / loss if loss > 0 else None,
        "overlap": float(overlaps.mean()),
        "rows_changed": float((overlaps < k).mean()),
        "overlap_weighted": float(overlap(plain_order[first], weighted[first]).mean()),
        "overlap_rows": len(overlaps),
    }


def attribute_ties(
    scores: ArmScores, twin: ArmScores, data: Recommendation, k: int
) -> dict[str, Any]:
    """MAP of all test rows with the cells at 1.0 in another order, and its share of the loss.

    At random (the mean over five seeds), by the twin, and by the truth.
    """
    truth = open_source(scores.test, data.test.Y).positives()

    def value(ranking: NDArray[np.int32]) -> float:
        return score_ranking(ranking, truth, data.n_labels)

    stored, unweighted = value(rank(scores.test, k=k)), value(rank(twin.test, k=k))
    loss = unweighted - stored
    draws = [value(reorder_saturated(scores.test, "random", k=k, seed=seed)) for seed in TIE_SEEDS]
    values = {
        "at_random": float(np.mean(draws)),
        "by_twin": value(reorder_saturated(scores.test, twin.test, k=k)),
        "by_oracle": value(reorder_saturated(scores.test, None, k=k, labels=data.test.Y)),
    }
    return {"stored": stored, "loss": loss, "random_sd": float(np.std(draws, ddof=1))} | {
        name: {"map": score, "share": (score - stored) / loss if loss > 0 else None}
        for name, score in values.items()
    }


def measure_direct(arm: Arm, scores: ArmScores, twin: ArmScores) -> dict[str, Any]:
    """The direct shift against ln w and 2 T eta c, and what the inversion leaves within rows."""
    direct, intended = direct_shift(scores.test, twin.test), np.log(scores.weights)
    is_known = np.isfinite(direct) & (intended != 0)
    ratio = direct[is_known] / intended[is_known]
    budget = _budget(arm)
    return {
        "n_labels": int(is_known.sum()),
        "median_ratio": float(np.median(ratio)) if ratio.size else None,
        "largest": float(np.abs(direct[is_known]).max()) if ratio.size else None,
        "bound": 2 * budget if np.isfinite(budget) else None,
        "residual": residual(scores.test, twin.test, scores.weights).to_dict(),
    }


def cap_what_if(
    arm: Arm, scores: ArmScores, twin: ArmScores, data: Recommendation, k: int
) -> float | None:
    """MAP of the twin with min(ln w, T eta c) added; None without a cap."""
    budget = _budget(arm)
    if not np.isfinite(budget):
        return None
    weights = np.minimum(scores.weights, np.exp(budget))
    truth = open_source(twin.test, data.test.Y).positives()
    return score_ranking(what_if(twin.test, weights, k=k).ranking, truth, data.n_labels)


def _budget(arm: Arm) -> float:
    return step_budget(**arm.budget()) if arm.budget() else float("inf")


def count_zeros(scores: Any) -> float:
    """Share of the cells stored as exactly 0."""
    source: Source = open_source(scores)
    zeros = sum(int((panel.scores == 0).sum()) for panel in source.blocks())
    return zeros / (source.n_rows * source.n_labels)


def tabulate_labels(data: Recommendation, diagnosis: Any) -> dict[str, Any]:
    """Figure S1: what was intended of every label, what was realized, what is saturated."""
    shifts = diagnosis.shifts
    return plain(  # type: ignore[no-any-return]
        {
            "label": list(data.label_names),
            "n_positives": data.positives,
            "intended": shifts.intended,
            "realized": shifts.realized,
            "identified": shifts.identified,
            "direct": shifts.direct,
            "saturated_share": diagnosis.saturation.n_saturated / diagnosis.n_rows,
        }
    )


def sweep_splits(scores: ArmScores, data: Recommendation, k: int) -> list[dict[str, Any]]:
    """Isotonic and the pooled map by the share of test rows they are fitted on (Table S5).

    Each share is drawn with five seeds and evaluated on the rows it left; means over the seeds.
    """
    test = open_source(scores.test, data.test.Y)
    truth = test.positives()
    return [_split(share, scores, test, truth, k) for share in SPLITS]


def _split(share: float, scores: ArmScores, test: Source, truth: Any, k: int) -> dict[str, Any]:
    results = []
    for seed in SPLIT_SEEDS:
        is_calibration = draw_share(test.n_rows, share, seed)
        rows = Rows(RowSubset(test, is_calibration, truth), RowSubset(test, ~is_calibration, truth))
        counts = rows.calibration.label_counts()
        alive, truths = counts[counts > 0], rows.evaluated.positives()
        raw = score_ranking(rank(rows.evaluated, k=k), truths, test.n_labels)
        values = {"map": raw, "pooled": raw}  # a split without a positive cell repairs nothing
        if alive.size:
            maps = {
                "map": Isotonic(prior=scores.prior).fit(rows.calibration).fitted_,
                "pooled": PooledIsotonic().fit(rows.calibration).fitted_,
            }
            values = {
                name: score_ranking(each.rank(rows.evaluated, k=k), truths, test.n_labels)
                for name, each in maps.items()
            }
        results.append(
            {
                "n_dead": int((counts == 0).sum()),
                "median_positives": float(np.median(alive)) if alive.size else 0.0,
                "raw": raw,
            }
            | values
        )
    means = {name: float(np.mean([each[name] for each in results])) for name in results[0]}
    sds = {f"{name}_sd": float(np.std([each[name] for each in results], ddof=1)) for name in values}
    return {"share": share, "n_rows": int(share * test.n_rows) or 1} | means | sds


def draw_share(n_rows: int, share: float, seed: int) -> NDArray[np.bool_]:
    """The first share of a seeded permutation of the rows, at least one.

    Examples
    --------
    >>> int(draw_share(1000, 0.03, 42).sum())
    30
    """
    mask = np.zeros(n_rows, np.bool_)
    mask[np.random.default_rng(seed).permutation(n_rows)[: max(1, int(share * n_rows))]] = True
    return mask


def count_dead(Y: csr_matrix, shares: Sequence[float] = FREQUENCIES) -> list[dict[str, Any]]:
    """How many labels have no positive among a share of the rows; ten splits each."""
    results = []
    for share in shares:
        dead = [
            int((np.asarray(Y[draw_share(Y.shape[0], share, seed)].sum(axis=0)) == 0).sum())
            for seed in FREQUENCY_SEEDS
        ]
        results.append(
            {
                "share": share,
                "n_rows": max(1, int(share * Y.shape[0])),
                "mean": float(np.mean(dead)),
                "min": min(dead),
                "max": max(dead),
                "any": float(np.mean([each > 0 for each in dead])),
            }
        )
    return results


def compare_again(
    first: ArmScores, again: ArmScores, data: Recommendation, k: int
) -> dict[str, Any]:
    """The same arm trained twice: MAP of both, and whether the scores are the same bits."""
    truth = open_source(first.test, data.test.Y).positives()
    values = [
        score_ranking(rank(scores.test, k=k), truth, data.n_labels) for scores in (first, again)
    ]
    hashes = first.hashes(), again.hashes()
    return {
        "first": values[0],
        "again": values[1],
        "same": hashes[0] == hashes[1],
        "sha256": hashes[1],
    }
