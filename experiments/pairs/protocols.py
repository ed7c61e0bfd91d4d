"""The two protocols: which rows calibrate, which are evaluated.

Under "deployment" the validation period calibrates and all test rows are evaluated. The source
that a calibrator is given is then opened on the files of the validation period alone: labels of
the test period cannot reach it. Under "test-split" a seeded 30% of the test rows calibrate and
the others are evaluated, which is optimistic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import mean_with_interval
from experiments.datasets.recommendation import Recommendation
from experiments.pairs.arms import SEED
from experiments.pairs.training import ArmScores
from experiments.store import row_precisions
from oddslip.calibrators import Isotonic
from oddslip.sources import Source, open_source
from oddslip.sources.views import RowSubset

PROTOCOLS = ("test-split", "deployment")
N_REPLICATES = 2000  # the paper's B
LEVEL = 0.95
CALIBRATION_SHARE = 0.3  # of the rows of a split (Section 3)


class Rows(NamedTuple):
    """Rows to calibrate on, and rows to evaluate on."""

    calibration: Source
    evaluated: Source


def draw_calibration_rows(n_rows: int, seed: int = SEED) -> NDArray[np.bool_]:
    """Which rows calibrate: the first 30% of a seeded permutation, at least one.

    Examples
    --------
    >>> int(draw_calibration_rows(10, seed=42).sum())
    3
    """
    chosen = np.zeros(n_rows, np.bool_)
    order = np.random.default_rng(seed).permutation(n_rows)
    chosen[order[: max(1, int(CALIBRATION_SHARE * n_rows))]] = True
    return chosen


def open_rows(scores: ArmScores, data: Recommendation, protocol: str) -> Rows:
    """Rows of an arm under a protocol."""
    test = open_source(scores.test, data.test.Y)
    if protocol == "deployment":
        return Rows(open_source(scores.validation, data.validation.Y), test)
    sample, truth = draw_calibration_rows(test.n_rows, SEED), test.positives()
    return Rows(RowSubset(test, sample, truth), RowSubset(test, ~sample, truth))


def rank_repaired(rows: Rows, prior: NDArray[np.float64], k: int) -> NDArray[np.int32]:
    """The evaluated rows ranked after per-label isotonic, dead labels at their prior."""
    ranking: NDArray[np.int32] = (
        Isotonic(prior=prior).fit(rows.calibration).fitted_.rank(rows.evaluated, k=k)
    )
    return ranking


def compare_repaired(
    arm: ArmScores, twin: ArmScores, data: Recommendation, protocol: str, k: int
) -> dict[str, float]:
    """MAP of the repaired arm less that of the repaired twin, with a paired interval."""
    values = []
    for scores in (arm, twin):
        rows = open_rows(scores, data, protocol)
        ranking = rank_repaired(rows, scores.prior, k)
        values.append(row_precisions(ranking, rows.evaluated.positives(), data.n_labels))
    return mean_gap(values[0] - values[1])


def mean_gap(gaps: NDArray[np.float64]) -> dict[str, float]:
    """The mean of paired differences, row by row, with its interval."""
    return mean_with_interval(gaps, n_replicates=N_REPLICATES, level=LEVEL, seed=SEED).to_dict()
