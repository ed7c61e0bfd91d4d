"""Findings: what the scores, the weights and the calibration rows give rise to say."""

from collections.abc import Callable

from oddslip.diagnosis.checks import inputs, rows, scores, weights
from oddslip.diagnosis.findings import Finding
from oddslip.diagnosis.result import Measurements

# Of findings that are equally grave, the earlier check comes first.
CHECKS: tuple[Callable[[Measurements], Finding | None], ...] = (
    inputs.check_leak,
    inputs.check_unit_margins,
    scores.check_signal,
    scores.check_twin,
    inputs.check_identical_twin,
    inputs.check_swapped_twin,
    inputs.check_logarithms,
    scores.check_popularity,
    scores.check_saturation,
    scores.check_ties,
    scores.check_storage,
    weights.check_different_weights,
    weights.check_common_weight,
    weights.check_strange_weights,
    inputs.check_corrected,
    weights.check_short_shift,
    weights.check_unknown_shift,
    weights.check_inversion,
    rows.check_drift,
    rows.check_overlap,
    rows.check_takeover,
    rows.check_harm,
    rows.check_scarcity,
    rows.check_unseen,
    rows.check_together,
    rows.check_split,
    rows.check_absent,
)
