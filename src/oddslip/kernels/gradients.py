"""Gradients of the weighted logistic loss, label after label, as boosters want them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oddslip.kernels.compiling import kernel


# The order of operations and the widths are those of LightGBM's own binary objective, so that
# every gradient has the same bits and every tree the same splits. Hence no fast mathematics.
@kernel(
    "void(const float64[:,::1], const uint8[:,::1], const float64[::1], const float64[::1], "
    "float32[:,::1], float32[:,::1])",
    error_model="numpy",
)
def weigh_gradients(
    sums: Any, truths: Any, starts: Any, weights: Any, gradients: Any, hessians: Any
) -> None:
    """First and second derivatives at margin ``starts[j] + sums[j, i]``; all (labels, rows)."""
    for j in range(sums.shape[0]):
        start, weight = starts[j], weights[j]
        for i in range(sums.shape[1]):
            if truths[j, i]:
                away = 1.0 / (1.0 + math.exp(start + sums[j, i]))
                gradients[j, i] = np.float32(-away * weight)
                hessians[j, i] = np.float32(away * (1.0 - away) * weight)
            else:
                away = 1.0 / (1.0 + math.exp(-(start + sums[j, i])))
                gradients[j, i] = np.float32(away)
                hessians[j, i] = np.float32(away * (1.0 - away))
