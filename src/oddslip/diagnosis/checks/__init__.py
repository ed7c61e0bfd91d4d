"""Findings: what the scores, the weights and the calibration rows give rise to say."""

from collections.abc import Callable

from oddslip.diagnosis.checks.inputs import (
    check_corrected,
    check_identical_twin,
    check_leak,
    check_logarithms,
    check_swapped_twin,
    check_unit_margins,
)
from oddslip.diagnosis.checks.rows import (
    check_absent,
    check_drift,
    check_harm,
    check_overlap,
    check_scarcity,
    check_split,
    check_takeover,
    check_together,
    check_unseen,
)
from oddslip.diagnosis.checks.scores import (
    check_popularity,
    check_saturation,
    check_signal,
    check_storage,
    check_ties,
    check_twin,
)
from oddslip.diagnosis.checks.weights import (
    check_common_weight,
    check_different_weights,
    check_inversion,
    check_short_shift,
    check_strange_weights,
    check_unknown_shift,
)
from oddslip.diagnosis.findings import Finding
from oddslip.diagnosis.result import Measurements

CHECKS: tuple[Callable[[Measurements], Finding | None], ...] = (
    check_leak,
    check_unit_margins,
    check_signal,
    check_twin,
    check_identical_twin,
    check_swapped_twin,
    check_logarithms,
    check_popularity,
    check_saturation,
    check_ties,
    check_storage,
    check_different_weights,
    check_common_weight,
    check_strange_weights,
    check_corrected,
    check_short_shift,
    check_unknown_shift,
    check_inversion,
    check_drift,
    check_overlap,
    check_takeover,
    check_harm,
    check_scarcity,
    check_unseen,
    check_together,
    check_split,
    check_absent,
)
