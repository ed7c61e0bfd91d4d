"""Whether calibration rows speak for the evaluated ones: shared rows, drift, dead labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Panel
from oddslip.core.results import plain
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.thresholds import DRIFT_RATIO, DRIFT_Z
from oddslip.sources import Source

FINGERPRINT_SEED = 20240229  # any number does


# ----------------------------------------------------------------------------- rows and prevalences


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """Calibration rows held against evaluated rows.

    Attributes
    ----------
    n_shared_rows : int
        Calibration rows that are evaluated too: by row id where both have ids, else by the same
        scores and labels, counting only rows that no other row of their panel equals.
    shared_by_id : bool
        Whether they are known by their ids. Without ids they only look alike: rows with the same
        features get the same scores.
    n_calibration_rows : int
        Rows that were looked for.
    drifted : numpy.ndarray of bool
        Labels alive in calibration whose prevalence differs beyond chance and by a large factor.
    share : float
        Share of all positives of both panels, each counted as one half, that drifted labels hold.
    unseen : numpy.ndarray of bool
        Labels with evaluation positives and none among the rows that they are calibrated on.
    """

    n_shared_rows: int
    shared_by_id: bool
    n_calibration_rows: int
    drifted: NDArray[np.bool_]
    share: float
    unseen: NDArray[np.bool_]

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {
                "n_shared_rows": self.n_shared_rows,
                "shared_by_id": self.shared_by_id,
                "n_drifted": int(self.drifted.sum()),
                "share_of_positives": self.share,
                "n_unseen": int(self.unseen.sum()),
            }
        )


def find_drift(
    case: Case,
    unseen: NDArray[np.bool_],
    marks: Sequence[NDArray[np.uint64] | None] = (),
    shared: SharedRows | None = None,
) -> Drift:
    """Compare the rows and the prevalences of both panels; fold by fold there is no drift.

    ``marks`` are those of the calibration rows and of the evaluated ones, where ids do not tell;
    ``shared`` says what they would.
    """
    counts = case.calibration_counts, case.evaluation_counts
    totals = (np.maximum(each.totals(case.threads), 1) for each in (case.calibration, case.arm))
    drifted = find_drifted(*counts, *totals)
    shares = [part[drifted].sum() / max(1, part.sum()) for part in counts]
    if shared is None:
        shared = SharedRows(0, False)
        if not case.crossed:  # folds share no row by design
            shared = find_shared_rows(case.calibration, case.arm, marks)
    return Drift(
        n_shared_rows=shared.n_rows,
        shared_by_id=shared.by_id,
        n_calibration_rows=case.calibration.n_rows,
        drifted=drifted,
        share=float(np.mean(shares)),
        unseen=unseen,
    )


def find_drifted(
    first: NDArray[np.int64], second: NDArray[np.int64], n_first: Any, n_second: Any
) -> NDArray[np.bool_]:
    """Labels whose two prevalences differ: a two-sample z test, and a factor that matters.

    Examples
    --------
    >>> find_drifted(np.array([10, 100]), np.array([90, 100]), 1000, 1000)
    array([ True, False])
    """
    one, two = first / n_first, second / n_second
    pooled = (first + second) / (n_first + n_second)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_second))
    sure = np.abs(one - two) > DRIFT_Z * error
    low, high = np.minimum(one, two), np.maximum(one, two)
    return np.asarray(sure & (first > 0) & (high > DRIFT_RATIO * low))


class SharedRows(NamedTuple):
    """Rows of one panel that stand in another too, and whether their ids say so."""

    n_rows: int
    by_id: bool


def find_shared_rows(
    calibration: Source, evaluation: Source, marks: Sequence[NDArray[np.uint64] | None]
) -> SharedRows:
    """Rows of the calibration panel that stand in the other one too, or seem to."""
    ids = calibration.row_ids(), evaluation.row_ids()
    if ids[0] is not None and ids[1] is not None:
        return SharedRows(int(np.isin(ids[0].astype(str), ids[1].astype(str)).sum()), True)
    first, second = marks
    if first is None or second is None:
        return SharedRows(0, False)
    return SharedRows(int(np.isin(first, second).sum()), False)


def unique_row_hashes(source: Source, threads: int | None = None) -> NDArray[np.uint64]:
    """Marks of scores and labels of the rows that are the only ones of their kind.

    Coarse models give many rows the same scores; such rows are no sign of overlap.
    """
    rng = np.random.default_rng(FINGERPRINT_SEED)
    factors = rng.integers(1, 2**63, size=(2, source.n_labels), dtype=np.uint64) * 2 + 1

    def take(panel: Panel) -> NDArray[np.uint64]:
        marks = panel.keys().astype(np.uint64) @ factors[0]
        positives = panel.positives()
        rows = np.repeat(np.arange(panel.n_rows), positives.counts)
        np.add.at(marks, rows, factors[1][positives.indices])
        return np.asarray(marks)

    blocks = source.map(take, threads=threads, what="comparing rows")
    marks = np.concatenate([block for _, block in blocks])
    values, counts = np.unique(marks, return_counts=True)
    return np.asarray(values[counts == 1])


# -------------------------------------------------------------------------------------- dead labels


@dataclass(frozen=True, slots=True, eq=False)
class Takeover:
    """What the identity policy hands to dead labels, against the prior policy.

    ``n_rows`` rows show more dead labels than under the prior; ``slots`` counts, per label, the
    rows in which a dead label is shown under the identity policy.
    """

    n_dead: int
    n_rows: int
    slots: NDArray[np.int64]

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {"n_dead": self.n_dead, "n_rows": self.n_rows, "n_slots": int(self.slots.sum())}
        )


def find_takeover(
    identity: NDArray[np.int32], prior: NDArray[np.int32], dead: NDArray[np.bool_]
) -> Takeover:
    """Compare the two rankings of the same rows.

    Examples
    --------
    >>> takeover = find_takeover(np.array([[1]]), np.array([[0]]), np.array([False, True]))
    >>> takeover.n_rows, takeover.slots
    (1, array([0, 1]))
    """
    dead = np.append(dead, False)  # an empty slot, -1, shows nobody
    shown = dead[identity]
    risen = shown.sum(axis=1) > dead[prior].sum(axis=1)
    return Takeover(
        n_dead=int(dead.sum()),
        n_rows=int(risen.sum()),
        slots=np.bincount(identity[shown], minlength=dead.size - 1),
    )
