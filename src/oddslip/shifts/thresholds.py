"""Where a cell counts as saturated: its probability, stored in float32, is exactly 1.0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oddslip.panels import Kind

# Halfway between 1 and the float32 below it; the tie goes to the even neighbour, which is 1.
SATURATED_PROBABILITY = 1 - 2.0**-25

# The sigmoid computed in float64 reaches that probability here, at 17.33, and casts to 1.0.
SATURATED_MARGIN = 25 * math.log(2)

# The sigmoid computed in float32 is 1 / (1 + e) with e = exp(-margin); from here on, at 16.64,
# the sum itself rounds to 1.
SATURATED_MARGIN_FLOAT32 = 24 * math.log(2)


def saturated_key(dtype: np.dtype[Any], kind: Kind, *, sigmoid: str = "float64") -> Any:
    """The smallest key of a saturated cell, as a scalar of the keys' type.

    ``sigmoid`` names the type in which margins become probabilities.
    """
    from oddslip.kernels.keys import keys_of

    bound = SATURATED_PROBABILITY
    if kind == "margin":
        bound = SATURATED_MARGIN if sigmoid == "float64" else SATURATED_MARGIN_FLOAT32
    least = dtype.type(bound)
    if float(least) < bound:
        least = np.nextafter(least, dtype.type(np.inf))
    return keys_of(np.full((1, 1), least, dtype), kind)[0, 0]
