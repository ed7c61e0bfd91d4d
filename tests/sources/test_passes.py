"""Computations that read a source together: one pass for all, and the answers of each alone."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip.sources.base as sources
from oddslip.calibrators.logistic.moments import Ranges
from oddslip.core.tally import CollectTally, TallyGroup
from oddslip.errors import InvalidInput
from oddslip.metrics.ranking import RankingTally
from oddslip.shifts import realized_shift
from oddslip.shifts.realized import SigmoidTally
from oddslip.sources import open_source
from oddslip.sources.passes import read_together

RNG = np.random.default_rng(0)
SCORES = RNG.random((500, 6))
LABELS = RNG.random(SCORES.shape) < SCORES / 3


def counted_source(scores=SCORES):
    source = open_source(scores, LABELS)
    passes, blocks = [], source.blocks
    source.blocks = lambda: passes.append(1) or blocks()
    return source, passes


def reads(n_passes):
    def function(source):
        return [source.run(RankingTally(2, 6)).result().columns for _ in range(n_passes)]

    return function


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=5))
def test_as_many_passes_are_made_as_the_longest_needs(lengths):
    source, passes = counted_source()
    counts = read_together(source, [reads(n) for n in lengths])
    assert len(passes) == max(lengths, default=0)
    assert [len(each) for each in counts] == lengths
    alone = open_source(SCORES, LABELS).run(RankingTally(2, 6)).result().columns
    for each in counts:
        for columns in each:
            np.testing.assert_array_equal(columns, alone)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block", [100, 5000, 10**8])
def test_sums_that_round_and_counts_share_a_pass(monkeypatch, block, threads):
    """Counts to the bit; sums to the bit too, since each is added up in row order."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", block)
    source = open_source(SCORES, LABELS)
    shift = np.linspace(-1, 1, 6)
    tallies = [Ranges(6), SigmoidTally(shift), CollectTally(lambda panel: panel.n_rows), Ranges(6)]
    source.threads = threads
    group = source.run(TallyGroup([each.empty_like() for each in tallies]))
    source.threads = 1
    alone = [source.run(each).result() for each in tallies]
    for one, other in zip(group.result(), alone, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [type(each) for each in group.tallies] == [type(each) for each in tallies]


def test_what_a_function_maps_comes_in_row_order(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 200)
    source, passes = counted_source()

    def starts(rows):
        return [(first, block) for first, block in rows.map(lambda panel: panel.first_row)]

    one, two = read_together(source, [starts, starts])
    assert one == two == sorted(one)
    assert all(first == block for first, block in one)
    assert len(passes) == 1


def test_an_error_of_one_is_raised_and_no_thread_is_left():
    def fails(source):
        source.run(Ranges(6))
        raise InvalidInput("this one fails.")

    before = threading.active_count()
    with pytest.raises(InvalidInput, match="this one fails"):
        read_together(open_source(SCORES, LABELS), [reads(3), fails, reads(1)])
    assert threading.active_count() == before


def test_a_row_that_is_refused_is_refused_to_all():
    broken = SCORES.copy()
    broken[3, 2] = np.nan
    source, _ = counted_source(broken)
    prior = LABELS.mean(axis=0)
    with pytest.raises(InvalidInput, match="row 3"):
        read_together(source, [reads(2), lambda rows: realized_shift(rows, prior)])


def test_an_interrupted_pass_ends_all(monkeypatch):
    source, _ = counted_source()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = threading.active_count()
    monkeypatch.setattr(source, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_together(source, [reads(1), reads(2)])
    assert threading.active_count() == before


def test_a_source_that_was_shared_may_be_kept_and_read_alone():
    source, _ = read_together(open_source(SCORES, LABELS), [lambda rows: rows, reads(1)])
    assert source.run(RankingTally(2, 6)).result().n_rows == 500
    assert sum(n for _, n in source.map(lambda panel: panel.n_rows)) == 500
