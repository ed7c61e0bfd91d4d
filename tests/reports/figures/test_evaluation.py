"""An evaluation's picture: every metric with its interval; paired differences beside a twin."""

import io

import numpy as np
import pytest

from oddslip import InvalidInput, evaluate
from oddslip.datasets import synthetic_pair
from oddslip.metrics.at_k import metric_name

PAIR = synthetic_pair(600, 12, seed=1)


def evaluated(scores=PAIR.weighted, **more):
    return evaluate(scores, PAIR.labels, k=3, **{"n_replicates": 100, **more})


def dots(axis):
    """Values of the markers, from top to bottom."""
    lines = [line for line in axis.get_lines() if line.get_marker() == "o"]
    return [value for line in lines for value in line.get_xdata()]


def spans(axis):
    """Ends of the intervals, from top to bottom."""
    (lines,) = axis.collections
    return [segment[:, 0].tolist() for segment in lines.get_segments()]


def names(axis):
    return [tick.get_text() for tick in axis.get_yticklabels()]


def test_every_metric_stands_at_its_value_within_its_interval():
    result = evaluated()
    (axis,) = result.plot().axes
    assert names(axis) == [metric_name(name, 3) for name in result.metrics]
    assert dots(axis) == [each.value for each in result.metrics.values()]
    assert spans(axis) == [[each.low, each.high] for each in result.metrics.values()]
    assert axis.yaxis_inverted()


def test_against_another_ranking_the_paired_differences_stand_beside():
    first, second = evaluated(), evaluated(PAIR.unweighted)
    both, beside = first.plot(second).axes
    compared = first.compare(second)
    assert dots(beside) == [each.value for each in compared.differences.values()]
    assert spans(beside) == [[each.low, each.high] for each in compared.differences.values()]
    assert dots(both) == [each.value for each in first.metrics.values()]


def test_without_replicates_there_are_no_intervals():
    (axis,) = evaluated(n_replicates=0).plot().axes
    assert not axis.collections
    assert len(dots(axis)) == 6


def test_what_is_no_evaluation_is_refused():
    with pytest.raises(InvalidInput, match="other must be an Evaluation"):
        evaluated().plot(PAIR.unweighted)


def test_a_figure_can_be_written():
    held = io.BytesIO()
    evaluated().plot(evaluated(PAIR.unweighted)).savefig(held, format="png")
    assert np.frombuffer(held.getvalue(), np.uint8).size > 1000
