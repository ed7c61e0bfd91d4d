"""Metrics at K as dots with their intervals, and paired differences to another ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oddslip.core.formatting import has_interval, score
from oddslip.metrics.at_k import metric_name
from oddslip.reports.figures.style import (
    GREY,
    LOOKS,
    finish,
    interval_note,
    legend_mark,
    name_axes,
    new_figure,
    put_legend,
    signed,
    style_rows,
    write_value,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from oddslip.metrics.evaluation import Estimate, Evaluation

FIRST: dict[str, Any] = {**LOOKS["repaired"], "markersize": 4.5}
SECOND: dict[str, Any] = {**LOOKS["raw"], "markersize": 4.5}


def draw_evaluation(evaluation: Evaluation, against: Evaluation | None = None) -> Figure:
    """Draw every metric with its interval, and its paired difference to another ranking.

    Parameters
    ----------
    evaluation : Evaluation
    against : Evaluation, optional
        Of other scores of the same rows.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from oddslip import evaluate
    >>> evaluation = evaluate([[0.9, 0.2], [0.1, 0.7]], [[1, 0], [1, 0]], k=1, n_replicates=50)
    >>> draw_evaluation(evaluation).axes[0].get_xlabel()
    'metric at K = 1, with 95% intervals'
    """
    compared = None if against is None else evaluation.compare(against)
    height = 6.0 * len(evaluation.metrics) + 24
    figure = new_figure(height, 110 if compared is None else 160)
    left, *right = figure.subplots(1, 1 if compared is None else 2, sharey=True, squeeze=False)[0]
    if against is not None:
        _put_estimates(left, against.metrics, SECOND, 0.18)
    _put_estimates(left, evaluation.metrics, FIRST, 0.0 if against is None else -0.18)
    _write_values(left, evaluation.metrics, score)
    suffix = interval_note(evaluation.metrics.values(), evaluation.level)
    name_axes(left, f"metric at K = {evaluation.k}{suffix}")
    names = [metric_name(name, evaluation.k) for name in evaluation.metrics]
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.4, -0.6)
    if compared is not None:
        (axis,) = right
        axis.axvline(0, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
        _put_estimates(axis, compared.differences, FIRST, 0.0)
        _write_values(axis, compared.differences, signed)
        name_axes(axis, f"paired difference{suffix}")
        marks = (legend_mark("these scores", **FIRST), legend_mark("against", **SECOND))
        put_legend(figure, marks)
    for axis in (left, *right):
        style_rows(axis)
    return finish(figure)


def _put_estimates(
    axis: Axes, estimates: Mapping[str, Estimate], mark: dict[str, Any], offset: float
) -> None:
    """Dots and intervals, one metric below the other."""
    values = list(estimates.values())
    places = [at + offset for at in range(len(values))]
    if all(has_interval(each) for each in values):
        low, high = [each.low for each in values], [each.high for each in values]
        axis.hlines(places, low, high, color=mark["color"], linewidth=1.4, zorder=2)
    axis.plot([each.value for each in values], places, linestyle="none", zorder=3, **mark)


def _write_values(
    axis: Axes, estimates: Mapping[str, Estimate], write: Callable[[float], str]
) -> None:
    """Each value as a number at the right edge, beside the dots."""
    low, high = axis.get_xlim()
    axis.set_xlim(low, high + 0.24 * (high - low))
    for at, each in enumerate(estimates.values()):
        write_value(axis, at, write(each.value))
