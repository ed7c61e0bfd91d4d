"""Maps cut into pieces: for every label, intervals of scores with one formula each.

The SQL export looks them up. A piece of a map with knots reaches from its knot to the next one;
every other form is one piece from -inf to inf.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oddslip.core.types import Floats
from oddslip.repairs.map_forms import (
    AFFINE,
    BETA,
    CONSTANT,
    EXCLUDED,
    IDENTITY,
    KNOTS,
    Maps,
    compared_constants,
    lay_knots,
)

FORMS = {
    KNOTS: "knots",
    AFFINE: "affine",
    BETA: "beta",
    CONSTANT: "constant",
    IDENTITY: "identity",
    EXCLUDED: "excluded",
}


class Piece(NamedTuple):
    """A formula for scores of one label from ``low`` to below ``high``.

    Knots: ``y`` at ``x`` and ``slope`` from there, at most ``roof``. Other forms: their parameters
    ``a``, ``b`` and ``c``; for a constant, its probability and the value to compare.
    """

    place: int
    form: str
    low: float
    high: float
    x: float = 0.0
    y: float = 0.0
    slope: float = 0.0
    roof: float = 0.0
    a: float = 0.0
    b: float = 0.0
    c: float = 0.0


def cut_pieces(maps: Maps) -> list[Piece]:
    """All pieces, label by label, from low to high."""
    pieces: list[Piece] = []
    table, constants = lay_knots(maps), compared_constants(maps)
    for label, code in enumerate(maps.code.tolist()):
        whole = Piece(label, FORMS[code], -np.inf, np.inf)
        if code == KNOTS:
            pieces += _cut_knots(whole, table[maps.start[label] : maps.stop[label]])
        elif code == CONSTANT:
            pieces.append(whole._replace(a=float(maps.a[label]), b=float(constants[label])))
        elif code in (AFFINE, BETA):
            a, b, c = (float(each[label]) for each in (maps.a, maps.b, maps.c))
            pieces.append(whole._replace(a=a, b=b, c=c))
        else:
            pieces.append(whole)
    return pieces


def _cut_knots(whole: Piece, table: Floats) -> list[Piece]:
    lows = np.concatenate([[-np.inf], table[1:, 0]])
    highs = np.concatenate([table[1:, 0], [np.inf]])
    pieces = []
    for low, high, (x, y, slope, roof) in zip(
        lows.tolist(), highs.tolist(), table.tolist(), strict=True
    ):
        if low >= high:  # the next knot has the same score and replaces this one
            continue
        piece = whole._replace(low=low, high=high, x=x, y=y, slope=slope, roof=roof)
        if not np.isfinite(slope):  # a jump: the value of the knot at the knot only, then the roof
            beyond = float(np.nextafter(x, np.inf))
            pieces.append(piece._replace(high=beyond, slope=0.0, roof=y))
            piece = piece._replace(low=beyond, y=roof, slope=0.0)
        if piece.low < piece.high:
            pieces.append(piece)
    return pieces
