"""What of a diagnosis the pictures show; None, with a reason, where a number is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oddslip.reports.pictures import RegimePoint, Waterfall

if TYPE_CHECKING:
    from oddslip.diagnosis.diagnoses import Diagnosis

HERE = "this model"


def waterfall_of(found: Diagnosis) -> Waterfall | None:
    """The loss and what repairs return; None if `lacks_waterfall` gives a reason.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> found = diagnose(
    ...     pair.weighted, pair.labels, k=3, n_replicates=0,
    ...     weights=pair.weights, unweighted=pair.unweighted,
    ... )
    >>> waterfall_of(found).metric
    'MAP@3'
    """
    if lacks_waterfall(found):
        return None
    ladder = found.ladder
    return Waterfall(
        name=HERE,
        metric=f"MAP@{found.k}",
        unweighted=ladder.value("unweighted"),
        what_if=ladder.value("what-if"),
        weighted=ladder.value("raw"),
        inversion=ladder.value("inversion") if "inversion" in ladder else None,
        repaired=ladder.value("isotonic"),
        ceiling=ladder.value("ceiling"),
    )


def lacks_waterfall(found: Diagnosis) -> str:
    """Why there is no waterfall and what would allow it; empty if there is one."""
    if "unweighted" not in found.ladder:
        return (
            "The scores of the unweighted twin for the same rows (unweighted=, --unweighted) "
            "would show what the weights cost, and by which cause."
        )
    if "what-if" not in found.ladder:
        return (
            "The weight of every label (weights=, --weights) would tell the odds shift from the "
            "slippage."
        )
    if "isotonic" not in found.ladder:
        return "Calibration rows with a true label would show what calibration returns."
    return ""


def regime_of(found: Diagnosis) -> RegimePoint | None:
    """This model in the regime picture; None if `lacks_regime` gives a reason.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> regime_of(diagnose(pair.weighted, pair.labels, k=3, n_replicates=0)) is None
    True
    """
    parts, ratio = found.decomposition, found.shifts.median_ratio
    if lacks_regime(found) or parts is None or ratio is None:
        return None
    return RegimePoint(
        name=HERE,
        series=HERE,
        ratio=ratio,
        returned=parts.returned["inversion"],
        saturated_share=found.saturation.share,
        here=True,
    )


def lacks_regime(found: Diagnosis) -> str:
    """Why this model has no place in the regime picture; empty if it has one."""
    needs = [
        name
        for name, there in (
            ("the weight of every label (weights=, --weights)", found.weights is not None),
            (
                "the scores of the unweighted twin (unweighted=, --unweighted)",
                found.decomposition is not None,
            ),
        )
        if not there
    ]
    if needs:
        return f"Its place needs {' and '.join(needs)}."
    parts, ratio = found.decomposition, found.shifts.median_ratio
    if parts is not None and parts.loss <= 0:
        return "It lost nothing against its unweighted twin, so there is no loss to return."
    if ratio is None:
        return "No weighted label has a shift that can be read: weights of 1, or saturated cells."
    return ""
