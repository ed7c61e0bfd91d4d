"""Pieces that several calibrators share: counting positives, and maps from a record."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.dead_labels import LabelRecord
from oddslip.calibrators.maps import LabelMaps
from oddslip.panels import Kind, Panel
from oddslip.sources import Source


class PositiveCounts:
    """Positives per label. Scores are not looked at."""

    def __init__(self, n_labels: int) -> None:
        self.counts = np.zeros(n_labels, np.int64)

    def fresh(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(self.counts.size)

    def add(self, panel: Panel) -> None:
        """Count one block."""
        self.counts += np.bincount(panel.positives().indices, minlength=self.counts.size)

    def merge(self, other: Self) -> None:
        """Take over another tally's counts."""
        self.counts += other.counts

    def result(self) -> NDArray[np.int64]:
        """Positives per label."""
        return self.counts


def count_positives(source: Source, threads: int | None = None) -> NDArray[np.int64]:
    """Positives per label of a whole source."""
    tally = PositiveCounts(source.n_labels)
    return source.run(tally, threads=threads, what="counting positives").result()


def build_maps(
    kind: Kind,
    scale: Literal["probability", "log_odds"],
    record: LabelRecord,
    *,
    knots: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]] | None = None,
    step: bool = False,
    code: NDArray[np.int8] | None = None,
    a: Any = 0.0,
    b: Any = 0.0,
    c: Any = 0.0,
) -> LabelMaps:
    """Maps of all labels: the dead ones as the record says, the others as given."""
    from oddslip.kernels.maps import CONSTANT, EXCLUDED, IDENTITY, KNOTS

    n = len(record.action)
    action = np.array(record.action)
    is_dead = record.dead
    codes = np.full(n, KNOTS, np.int8) if code is None else code.astype(np.int8)
    for policy, dead_code in (("prior", CONSTANT), ("identity", IDENTITY), ("exclude", EXCLUDED)):
        codes[is_dead & (action == policy)] = dead_code
    indptr, x, y = knots or (np.zeros(n + 1, np.int64), np.empty(0), np.empty(0))

    def kept(values: Any) -> NDArray[np.float64]:
        return np.where(is_dead, 0.0, values).astype(np.float64)

    return LabelMaps(
        kind=kind,
        scale=scale,
        code=codes,
        a=np.where(codes == CONSTANT, np.where(is_dead, record.prior, a), kept(a)),
        b=kept(b),
        c=kept(c),
        start=indptr[:-1].astype(np.int64),
        stop=indptr[1:].astype(np.int64),
        x=x,
        y=y,
        step=step,
    )
