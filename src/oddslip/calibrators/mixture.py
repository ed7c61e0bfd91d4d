"""Mixtures of isotonic and smooth maps; the isotonic share grows with the positives."""

from __future__ import annotations

import numpy as np

from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import LabelRecord, build_maps
from oddslip.core.panel import Kind
from oddslip.kernels.mixture import mix_knots
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
    n = record.n_positives.astype(np.float64)
    share = np.where(np.diff(knots.indptr) > 0, n / (n + strength), 0.0)
    code, a, b, c, *_, margin, odds = parents._arguments(parents._constants)
    mixed = mix_knots(*knots, code, a, b, c, share, _GRID, margin, odds)
    return build_maps(kind, "probability", record, knots=Knots(*mixed))
