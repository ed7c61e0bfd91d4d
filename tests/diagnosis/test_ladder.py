"""Means, intervals and paired differences are those of `evaluate` and `compare`."""

import numpy as np
import pytest

import oddslip
import oddslip.sources.base as sources
from oddslip.diagnosis import diagnose
from oddslip.diagnosis import ladder as ladders
from oddslip.metrics.at_k import NAMES


def same(one, other):
    numbers = [(e.value, e.low, e.high) for e in (one, other)]
    return np.allclose(*numbers, rtol=0, atol=1e-13)


def test_raw_and_the_twin_have_the_numbers_of_evaluate(scene, arguments):
    told, ladder = arguments("capped"), scene("capped").ladder
    raw, twin = (
        oddslip.evaluate(told[name], told["labels"], k=7, n_replicates=300, seed=42)
        for name in ("scores", "unweighted")
    )
    difference = twin.compare(raw)
    for metric in NAMES:
        assert same(ladder["raw"][metric], raw[metric]), metric
        assert same(ladder["unweighted"][metric], twin[metric]), metric
        assert same(ladder.gain("unweighted", metric), difference[metric]), metric


def test_raw_differs_from_itself_by_nothing(scene):
    for difference in scene("capped").ladder["raw"].differences.values():
        assert (difference.value, difference.low, difference.high) == (0, 0, 0)


def test_rungs_of_rows_in_small_blocks_stay_paired(arguments, scene, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 10_000)
    parts = diagnose(**arguments("capped")).ladder
    for name, rung in scene("capped").ladder.rungs.items():
        for metric in NAMES:
            assert same(parts[name][metric], rung[metric])
            assert same(parts.gain(name, metric), rung.differences[metric])


def test_the_frame_has_a_line_per_rung_and_metric(scene):
    pytest.importorskip("pandas")
    ladder = scene("capped").ladder
    frame = ladder.to_frame()
    assert len(frame) == len(ladder.rungs) * len(NAMES)
    line = frame[(frame.rung == "isotonic") & (frame.metric == "MAP@7")].iloc[0]
    assert line.value == ladder.value("isotonic")
    assert line.minus_raw == ladder.gain("isotonic").value


def test_the_best_rung_is_the_highest_of_those_there(scene):
    ladder = scene("capped").ladder
    best = ladder.best()
    assert all(ladder.value(best) >= ladder.value(n) for n in ladders.REPAIRS if n in ladder)
    assert ladder.best(("not there",)) is None
