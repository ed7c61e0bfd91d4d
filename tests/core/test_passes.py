"""Computations that share passes: one pass for all, and the answers of each alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.passes import plain

import oddslip.sources.base as sources
from oddslip.calibrators import build_calibrator
from oddslip.calibrators.logistic.fits import fit_affine
from oddslip.calibrators.logistic.moments import Ranges
from oddslip.core.passes import run, run_passes, share_passes, without_passes
from oddslip.core.tally import TallyGroup
from oddslip.errors import InvalidInput
from oddslip.metrics.ranking import RankingTally
from oddslip.shifts.realized import SigmoidTally, match_prior
from oddslip.sources import open_source
from oddslip.sources.open import open_rows

RNG = np.random.default_rng(0)
SCORES = RNG.random((500, 6))
LABELS = RNG.random(SCORES.shape) < SCORES / 3


def counted_source(scores=SCORES, labels=LABELS, threads=None):
    source = open_rows(scores, labels, threads=threads)
    passes, blocks = [], source.blocks
    source.blocks = lambda: passes.append(1) or blocks()
    return source, passes


def reads(n_passes):
    columns = []
    for _ in range(n_passes):
        columns.append((yield RankingTally(2, 6)).result().columns)
    return columns


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=5), st.sampled_from([None, 1, 3]))
def test_as_many_passes_are_made_as_the_longest_needs(lengths, threads):
    source, passes = counted_source(threads=threads)
    counts = run_passes(source, [reads(n) for n in lengths])
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
    source = open_rows(SCORES, LABELS, threads=threads)
    tallies = [Ranges(6), SigmoidTally(np.linspace(-1, 1, 6)), Ranges(6)]
    group = source.run(TallyGroup([each.empty_like() for each in tallies]))
    source.threads = 1
    alone = [source.run(each).result() for each in tallies]
    for one, other in zip(group.result(), alone, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [type(each) for each in group.tallies] == [type(each) for each in tallies]


def test_computations_that_share_passes_share_them_with_others_too():
    source, passes = counted_source()
    both, alone = run_passes(source, [share_passes([reads(2), reads(1)]), reads(3)])
    assert ([len(each) for each in both], len(alone), len(passes)) == ([2, 1], 3, 3)


def test_fits_of_some_of_the_labels_share_passes_with_fits_of_all():
    labels = LABELS & (np.arange(6) < 2)  # the others have no positive, and no summary
    alone = [plain(fit_affine)(open_source(SCORES, labels), slope=True, intercept=True)]
    alone += [plain(match_prior)(open_source(SCORES, labels), LABELS.mean(axis=0))]
    source, passes = counted_source(labels=labels)
    fit = fit_affine(source, slope=True, intercept=True)
    shared = run_passes(source, [fit, match_prior(source, LABELS.mean(axis=0))])
    assert len(passes) == max(each.n_passes for each in shared)
    np.testing.assert_array_equal(shared[0].a, alone[0].a)
    np.testing.assert_array_equal(shared[1].shift, alone[1].shift)


def test_the_first_error_in_the_order_of_the_computations_is_raised():
    def fails(n_passes, message):
        yield from reads(n_passes)
        raise InvalidInput(message)

    source, passes = counted_source()
    computations = [reads(3), fails(2, "this one fails."), fails(1, "and that one."), reads(1)]
    with pytest.raises(InvalidInput, match="this one fails"):
        run_passes(source, computations)
    assert len(passes) == 3


def test_a_row_that_is_refused_is_refused_to_all():
    broken = SCORES.copy()
    broken[3, 2] = np.nan
    source, passes = counted_source(broken)
    refused = []

    def catches():
        try:
            yield from reads(1)
        except InvalidInput as error:
            refused.append(str(error))
            raise

    with pytest.raises(InvalidInput, match="row 3"):
        run_passes(source, [catches(), match_prior(source, LABELS.mean(axis=0)), catches()])
    assert len(refused) == 2
    assert len(passes) == 1


def test_a_computation_may_go_on_after_a_pass_that_failed():
    def tries():
        try:
            yield Ranges(5)  # of another number of labels
        except ValueError:
            return (yield from reads(1))

    source, passes = counted_source()
    assert len(run(source, tries())) == 1
    assert len(passes) == 2


def test_an_interrupted_pass_ends_all(monkeypatch):
    source, _ = counted_source()
    ended = []

    def waits():
        try:
            yield from reads(2)
        finally:
            ended.append(True)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(source, "run", interrupted)
    computations = [waits(), waits()]
    with pytest.raises(KeyboardInterrupt):
        run_passes(source, computations)
    del computations
    assert len(ended) == 2


def test_a_computation_without_rows_must_not_need_any():
    assert without_passes(reads(0)) == []
    with pytest.raises(RuntimeError, match="rows are needed for RankingTally"):
        without_passes(reads(1))


def test_maps_that_no_score_decides_refuse_bad_scores_too():
    source = open_source(np.where(np.arange(6) == 2, np.nan, SCORES), LABELS)
    for name in ("raw", "popularity"):
        with pytest.raises(InvalidInput, match="NaN"):
            plain(build_calibrator(name)._map_labels)(source)
