"""Whether calibration rows speak for the evaluated ones: shared rows, drift, dead labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.results import plain
from oddslip.core.types import Bools, Ints, JsonObject
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.thresholds import DRIFT_RATIO, DRIFT_Z
from oddslip.sources import Source
from oddslip.tallies.row_sample import HashSample

MAX_HASHES = 2**20  # rows of a panel that are looked for in the other


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
    drifted: Bools
    share: float
    unseen: Bools

    def to_dict(self) -> JsonObject:
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


def find_drift(case: Case, unseen: Bools, shared: SharedRows) -> Drift:
    """Compare the prevalences of both panels; fold by fold there is no drift."""
    counts = case.calibration_counts, case.evaluation_counts
    totals = (np.maximum(each.totals(), 1) for each in (case.calibration, case.arm))
    drifted = find_drifted(*counts, *totals)
    shares = [part[drifted].sum() / max(1, part.sum()) for part in counts]
    return Drift(
        n_shared_rows=shared.n_rows,
        shared_by_id=shared.by_id,
        n_calibration_rows=case.calibration.n_rows,
        drifted=drifted,
        share=float(np.mean(shares)),
        unseen=unseen,
    )


def find_drifted(first: Ints, second: Ints, n_first: Any, n_second: Any) -> Bools:
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


def hash_both(calibration: Source, evaluated: Source, seed: int) -> HashSample | None:
    """What finds rows of one source in the other: by ids where both have them, else by cells.

    None where they cannot be compared: scores of two types never agree.
    """
    share = MAX_HASHES / max(calibration.n_rows, evaluated.n_rows)
    if not (calibration.has_ids and evaluated.has_ids):
        same = calibration.dtype == evaluated.dtype
        return HashSample(share, seed, "cells") if same else None
    ids = [each.row_ids() if each.ordered else None for each in (calibration, evaluated)]
    numbers = [each.dtype.kind in "biu" for each in ids if each is not None]
    return HashSample(share, seed, "text" if len(set(numbers)) > 1 else "ids")


def count_shared(first: HashSample, second: HashSample) -> SharedRows:
    """Rows of the first panel that are in the second too, or seem to be."""
    n_rows = np.isin(first.result(), second.result()).sum() / min(1.0, first.share)
    return SharedRows(round(float(n_rows)), first.what != "cells")


# -------------------------------------------------------------------------------------- dead labels


@dataclass(frozen=True, slots=True, eq=False)
class Takeover:
    """What the identity policy hands to dead labels, against the prior policy.

    ``n_rows`` rows show more dead labels than under the prior; ``slots`` counts, per label, the
    rows in which a dead label is shown under the identity policy.
    """

    n_dead: int
    n_rows: int
    slots: Ints

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {"n_dead": self.n_dead, "n_rows": self.n_rows, "n_slots": int(self.slots.sum())}
        )


def find_takeover(identity: NDArray[np.int32], prior: NDArray[np.int32], dead: Bools) -> Takeover:
    """Compare the two rankings of the same rows.

    Examples
    --------
    >>> takeover = find_takeover(np.array([[1]]), np.array([[0]]), np.array([False, True]))
    >>> takeover.n_rows, takeover.slots
    (1, array([0, 1]))
    """
    dead = np.append(dead, False)  # an empty slot, -1, shows nobody
    dead_slots = dead[identity]
    risen = dead_slots.sum(axis=1) > dead[prior].sum(axis=1)
    return Takeover(
        n_dead=int(dead.sum()),
        n_rows=int(risen.sum()),
        slots=np.bincount(identity[dead_slots], minlength=dead.size - 1),
    )
