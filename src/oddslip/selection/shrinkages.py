"""Isotonic maps shrunk towards offset maps, by how many positives a label has.

An isotonic map of few positives is coarse: it sends most cells to exactly 0, and equal values rank
by label index alone. An offset map has one number per label and keeps the order of the scores.
Mixing them is empirical Bayes with a prior worth ``strength`` positives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from oddslip.calibrators.dead_labels import LabelRecord
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.parts import build_maps
from oddslip.kernels.maps import AFFINE, CLIP
from oddslip.panels import Kind

Knots = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]

# Scores at which a shrunk map has knots besides the isotonic ones: every quarter of a nat, which
# keeps the chords of an offset map within 2% of it.
_CENTRE = np.linspace(-20.0, 20.0, 161)
GRIDS: dict[Kind, NDArray[np.float64]] = {
    "margin": np.concatenate([np.arange(-40.0, -20.0), _CENTRE, np.arange(21.0, 41.0)]),
    "probability": np.concatenate([[0.0], expit(_CENTRE), [1.0]]),
}


class Ingredients(NamedTuple):
    """Isotonic and offset values of every label at the knots of both."""

    indptr: NDArray[np.int64]
    x: NDArray[np.float64]
    isotonic: NDArray[np.float64]
    offset: NDArray[np.float64]


def gather_ingredients(kind: Kind, knots: Knots, offsets: LabelMaps) -> Ingredients:
    """Both maps of every label that has both, at common scores."""
    indptr, x, y = knots
    grid = GRIDS[kind]
    counts = np.zeros(indptr.size, np.int64)
    parts: list[tuple[NDArray[np.float64], ...]] = []
    for label in np.flatnonzero(np.diff(indptr)).tolist():
        own = slice(indptr[label], indptr[label + 1])
        at = np.union1d(grid, x[own])
        smooth = np.full(at.size, offsets.a[label])  # a label without negatives: a constant
        if offsets.code[label] == AFFINE:
            log_odds = at if kind == "margin" else logit(np.clip(at, CLIP, 1 - CLIP))
            smooth = expit(log_odds + offsets.b[label])
        # Rounding may turn a last digit down, and maps must not descend.
        stairs = np.maximum.accumulate(np.interp(at, x[own], y[own]))
        parts.append((at, stairs, np.maximum.accumulate(smooth)))
        counts[label + 1] = at.size
    columns = [np.concatenate([np.empty(0), *(part[i] for part in parts)]) for i in range(3)]
    return Ingredients(np.cumsum(counts), *columns)


def shrink_maps(
    kind: Kind, ingredients: Ingredients, record: LabelRecord, strength: int
) -> LabelMaps:
    """Maps that are n / (n + strength) isotonic, n being the label's positives."""
    indptr, x, isotonic, offset = ingredients
    n = np.repeat(record.n_positives, np.diff(indptr)).astype(np.float64)
    share = n / (n + strength)
    y = np.minimum(share * isotonic + (1.0 - share) * offset, 1.0)
    return build_maps(kind, "probability", record, knots=(indptr, x, y))
