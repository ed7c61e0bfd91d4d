"""Shifts of log-odds caused by class weights: intended, realized, direct, and their limits."""

from oddslip.core.weights import check_weights
from oddslip.shifts.budget import (
    largest_unsaturating_cap,
    leaf_saturation_weight,
    leaf_value,
    over_correction,
    smallest_admitting_cap,
    step_budget,
    unrealizable,
)
from oddslip.shifts.odds import balanced_weights, invert_odds, log_odds, shift_odds
from oddslip.shifts.realized import RealizedShift, realized_shift
from oddslip.shifts.residual import InversionBounds, Residual, inversion_bounds, residual
from oddslip.shifts.saturation import Saturation, saturation
from oddslip.shifts.twin import direct_shift, reorder_saturated
from oddslip.shifts.what_if import WhatIf, flips, overlap, what_if
from oddslip.tallies.logodds_histogram import SATURATED_MARGIN, SATURATED_MARGIN_FLOAT32

__all__ = [
    "SATURATED_MARGIN",
    "SATURATED_MARGIN_FLOAT32",
    "InversionBounds",
    "RealizedShift",
    "Residual",
    "Saturation",
    "WhatIf",
    "balanced_weights",
    "check_weights",
    "direct_shift",
    "flips",
    "inversion_bounds",
    "invert_odds",
    "largest_unsaturating_cap",
    "leaf_saturation_weight",
    "leaf_value",
    "log_odds",
    "over_correction",
    "overlap",
    "realized_shift",
    "reorder_saturated",
    "residual",
    "saturation",
    "shift_odds",
    "smallest_admitting_cap",
    "step_budget",
    "unrealizable",
    "what_if",
]
