"""Mixtures of isotonic and smooth maps; the isotonic share grows with the positives."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import LabelRecord, build_maps
from oddslip.core.panel import Kind
from oddslip.core.types import Floats, Ints
from oddslip.kernels.maps import AFFINE, CLIP
from oddslip.tallies.cell_counts import Knots

# Log-odds at which a mixture has knots besides the isotonic ones: every quarter of a nat of the
# score or of the parent, whichever changes faster. The error of interpolation is below 1%.
_GRID = np.concatenate(
    [np.arange(-40.0, -20.0), np.linspace(-20.0, 20.0, 161), np.arange(21.0, 41.0)]
)


def mix_maps(
    kind: Kind, knots: Knots, parents: LabelMaps, record: LabelRecord, strength: float
) -> LabelMaps:
    """Weighted means of isotonic map and parent; the isotonic weight is n / (n + strength).

    Here n is the number of positives of the label. A label without knots keeps its parent. Where
    the isotonic map is flat the parent decides, so cells only tie where they tie under the parent.

    Parameters
    ----------
    kind : {"probability", "margin"}
        Scale of the scores.
    knots : Knots
        Knots of the isotonic map of each label that has one.
    parents : LabelMaps
        Smooth maps: affine, beta or constant.
    record : LabelRecord
        Record of the same labels.
    strength : float
        Positives at which both have the same weight.

    Returns
    -------
    LabelMaps
    """
    label, x = _common_scores(kind, knots, parents)
    smooth = parents.take(label).evaluate(x[None])[0]
    if parents.scale == "log_odds":
        smooth = expit(smooth)
    n = record.n_positives.astype(np.float64)
    share = np.where(np.diff(knots.indptr) > 0, n / (n + strength), 0.0)[label]
    mixed = share > 0
    y = smooth.copy()
    y[mixed] = (
        share[mixed] * _interpolate(knots, label[mixed], x[mixed])
        + (1 - share[mixed]) * smooth[mixed]
    )
    counts = np.bincount(label, minlength=parents.n_labels)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return build_maps(
        kind,
        "probability",
        record,
        knots=Knots(indptr, x, _monotone(label, np.clip(y, 0.0, 1.0))),
    )


def _common_scores(kind: Kind, knots: Knots, parents: LabelMaps) -> tuple[Ints, Floats]:
    """Labels and scores of the knots of all mixtures, in order."""
    n_labels = parents.n_labels
    steep = (parents.code == AFFINE) & (parents.a > 1)
    slope = np.where(steep, parents.a, 1.0)[:, None]
    grid = (_GRID - np.where(steep, parents.b, 0.0)[:, None]) / slope
    inside = np.ones(grid.shape, np.bool_)
    if kind == "probability":
        inside = np.abs(grid) < -np.log(CLIP)
        grid = expit(grid)
    owners = np.broadcast_to(np.arange(n_labels)[:, None], grid.shape)
    # At least one knot for every label, and both ends of the range of probabilities.
    ends = [0.0, 1.0] if kind == "probability" else [0.0]
    label = np.concatenate(
        [
            np.repeat(np.arange(n_labels), np.diff(knots.indptr)),
            owners[inside],
            np.repeat(np.arange(n_labels), len(ends)),
        ]
    )
    x = np.concatenate([knots.x, grid[inside], np.tile(ends, n_labels)])
    order = np.lexsort((x, label))
    label, x = label[order], x[order]
    new = np.ones(x.size, np.bool_)
    new[1:] = (x[1:] > x[:-1]) | (label[1:] != label[:-1])
    return label[new], x[new]


def _interpolate(knots: Knots, label: Ints, x: Floats) -> Floats:
    """Isotonic maps of these labels at these scores: linear between knots, flat outside."""
    first, last = knots.indptr[label], knots.indptr[label + 1] - 1
    # Knots of all labels in one ascending list: by label, then by score.
    owners = np.repeat(np.arange(knots.indptr.size - 1), np.diff(knots.indptr))
    places = np.lexsort((np.r_[knots.x, x], np.r_[owners, label]))
    rank = np.empty(places.size, np.int64)
    rank[places] = np.cumsum(places < knots.x.size)
    above = np.clip(rank[knots.x.size :], first, last)
    below = np.clip(above - 1, first, last)
    width = knots.x[above] - knots.x[below]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        part = np.where(width > 0, (x - knots.x[below]) / width, 1.0)
    part = np.clip(np.nan_to_num(part), 0.0, 1.0)
    return np.asarray(knots.y[below] + part * (knots.y[above] - knots.y[below]))


def _monotone(label: Ints, y: Floats) -> Floats:
    """Raise values that rounding has made smaller than their predecessor."""
    while True:
        down = np.flatnonzero((y[1:] < y[:-1]) & (label[1:] == label[:-1]))
        if not down.size:
            return y
        y[down + 1] = y[down]
