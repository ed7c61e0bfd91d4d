"""What holds for every tally: it travels as a spec and a state, and parts add up to the whole."""

import ast
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import oddslip
from oddslip.calibrators import Isotonic, build_calibrator
from oddslip.calibrators.base import RisenDeadLabels
from oddslip.calibrators.logistic.moments import Moments, Ranges, SumsAt
from oddslip.calibrators.policy import CheckedScores
from oddslip.core.panel import Panel, read_sample_weight
from oddslip.core.tally import TallyGroup, merge_states
from oddslip.decisions.length_table import LengthTally
from oddslip.decisions.list_rule import ListRule
from oddslip.decisions.lists import ListTotals
from oddslip.decisions.repaired_rows import MappedTally
from oddslip.decisions.risk import RiskTally
from oddslip.decisions.threshold_counts import GridCounts, ThresholdCounts
from oddslip.diagnosis.ladder import LadderTally
from oddslip.diagnosis.rungs import Rungs, other_policies
from oddslip.diagnosis.signal import SignalErrorTally, parts_of_positives
from oddslip.kernels.logistic import N_AFFINE, add_affine_sums
from oddslip.metrics.at_k import Scoring
from oddslip.metrics.evaluation import MetricTally
from oddslip.metrics.ranking import RankingTally
from oddslip.metrics.reliability import ReliabilityTally
from oddslip.repairs.fingerprint import TopKTally
from oddslip.selection.fold_counts import FoldCounter, FoldTally, PooledBuckets, PositiveTally
from oddslip.selection.folds import assign_folds
from oddslip.selection.row_aware import CellTally, PositiveRows
from oddslip.selection.rules import RULES
from oddslip.selection.trials import TrialTally
from oddslip.shifts.realized import SigmoidTally
from oddslip.shifts.residual import ResidualTally
from oddslip.shifts.saturation import DistinctTally, SaturationTally
from oddslip.shifts.what_if import WhatIfTally
from oddslip.sources import open_source
from oddslip.sources.table import LabelCounts
from oddslip.sources.views import ColumnSource, ColumnTally
from oddslip.spark.messages import pack, unpack
from oddslip.tallies.cell_counts import IntervalCounts, PositiveKeys
from oddslip.tallies.isotonic_buckets import BucketCounts, MarkedCells, choose_buckets, mark_buckets
from oddslip.tallies.logodds_histogram import LogOddsHistogram
from oddslip.tallies.row_sample import HashSample, RowSample

N_ROWS, N_LABELS = 60, 5
RNG = np.random.default_rng(7)
SCORES = RNG.random((N_ROWS, N_LABELS)).astype(np.float32).round(2)
LABELS = (RNG.random((N_ROWS, N_LABELS)) < SCORES * [0.9, 0.5, 0.3, 0.1, 0.0]).astype(np.uint8)
IDS = np.array([f"row {row}" for row in range(N_ROWS)])
PANEL = Panel(SCORES, LABELS, row_ids=IDS)
PANEL.twin = Panel(RNG.random(SCORES.shape).astype(np.float32))
SOURCE = open_source(PANEL)


def counted(tally):
    tally.add(PANEL)
    return tally


def make_intervals(**options):
    first = counted(PositiveKeys(N_LABELS, SCORES.dtype, **options))
    return IntervalCounts(first.result(), "probability", **options)


def make_marked():
    buckets = choose_buckets(SCORES, LABELS, "probability", n_rows=N_ROWS, least_distinct=0.0)
    counts = counted(BucketCounts(buckets)).result()
    marks, numbers = np.empty(counts.size // 2, np.uint8), np.zeros(counts.size // 2, np.int32)
    held = np.empty(buckets.labels.size, np.int64)
    mark_buckets(buckets.starts, counts, N_ROWS, marks, numbers, held)
    sizes = counts.reshape(-1, 2)[marks == 1]
    return buckets, MarkedCells(buckets, SCORES.dtype, marks, numbers, sizes)


def make_moments():
    return Moments(*counted(Ranges(N_LABELS)).log_odds("probability"), "probability", N_LABELS)


def make_isotonic():
    return Isotonic().fit(SCORES, LABELS).fitted_.maps


def make_row_aware():
    rule = replace(RULES["row_aware"], row_guard=-np.inf)
    return oddslip.Repair(k=3, rule=rule).fit(SCORES, LABELS).fitted_.maps


GROUPS = np.arange(N_ROWS) % 2
LISTS = ListRule("precision", np.array([0.3, 0.5]), k_max=3, groups=("a", "b"))
FOLDS = assign_folds(SOURCE, 3, seed=1, n_repeats=2)


def make_trial():
    maps = [build_calibrator(name).fit(SCORES, LABELS).fitted_.maps for name in ("raw", "isotonic")]
    return TrialTally([[maps] * 3] * 2, FOLDS, 0, Scoring(3, "map", np.full(N_LABELS, 0.5)))


def make_ladder(folds):
    isotonic = Isotonic().fit(SCORES, LABELS).fitted_.maps
    others = other_policies(isotonic, LABELS.sum(axis=0) == 0)
    n_folds = 1 if folds is None else 3
    maps = [isotonic, *(each for _, each in others)]
    names = ("isotonic", "isotonic, identity", "isotonic, exclude")
    places = {name: [place] * n_folds for place, name in enumerate(names)} | {"chosen": [0]}
    dead = np.tile(LABELS.sum(axis=0) == 0, (n_folds, 1))
    what_if = build_calibrator("inversion", weights=0.5).fit(SCORES, LABELS).fitted_.maps
    popular = {"popularity": np.array([0, 1, 2], np.int32)}
    rungs = Rungs(maps, places, folds, popular, what_if, dead)
    return LadderTally(rungs, 3, np.full(N_LABELS, 0.5), True, 20, 1)


def make_signal_errors():
    counts = counted(make_intervals()).result()
    return SignalErrorTally(counts.indptr, counts.keys, parts_of_positives(counts))


def make_folds():
    positives = counted(PositiveTally(N_LABELS, SCORES.dtype, FOLDS[:1])).result()
    counter = FoldCounter(SOURCE, positives, [False, True], counted(Ranges(N_LABELS)))
    return FoldTally(FOLDS[0], counter._empty)


def make_sums():
    columns = np.array([0, 2, 4])
    theta, frame = np.array([[0.1] * 3, [1.2] * 3]), np.array([[0.0] * 3, [1.0] * 3])
    return SumsAt(add_affine_sums, N_AFFINE, columns, frame, theta)


TALLIES = {
    "PositiveKeys": lambda: PositiveKeys(N_LABELS, SCORES.dtype),
    "IntervalCounts": make_intervals,
    "IntervalCounts, pooled": lambda: make_intervals(pooled=True),
    "BucketCounts": lambda: BucketCounts(make_marked()[0]),
    "MarkedCells": lambda: make_marked()[1],
    "Ranges": lambda: Ranges(N_LABELS),
    "Moments": make_moments,
    "SumsAt": make_sums,
    "CheckedScores": CheckedScores,
    "RisenDeadLabels": lambda: RisenDeadLabels(
        Isotonic().fit(SCORES, LABELS).fitted_.maps, LABELS.sum(axis=0) == 0
    ),
    "LabelCounts": lambda: LabelCounts(N_LABELS),
    "ColumnTally": lambda: ColumnTally(Ranges(2), ColumnSource(SOURCE, np.array([1, 3])).narrowing),
    "RankingTally": lambda: RankingTally(3, N_LABELS),
    "MetricTally": lambda: MetricTally(3, np.full(N_LABELS, 0.5), n_replicates=30),
    "MetricTally, rows kept": lambda: MetricTally(
        3, np.full(N_LABELS, 0.5), rows="all", n_replicates=30, keep_rows=True
    ),
    "PositiveTally": lambda: PositiveTally(N_LABELS, SCORES.dtype, FOLDS),
    "FoldTally": make_folds,
    "PooledBuckets": lambda: PooledBuckets(FOLDS[0], SCORES.dtype, "probability"),
    "LadderTally": lambda: make_ladder(FOLDS[0]),
    "LadderTally, held out": lambda: make_ladder(None),
    "SignalErrorTally": make_signal_errors,
    "RowSample": lambda: RowSample(20, 0.5, 1),
    "HashSample, ids": lambda: HashSample(0.5, 1, "ids"),
    "HashSample, text": lambda: HashSample(0.5, 1, "text"),
    "HashSample, cells": lambda: HashSample(0.5, 1, "cells"),
    "TrialTally": make_trial,
    "LogOddsHistogram": lambda: LogOddsHistogram(N_LABELS, "probability"),
    "SigmoidTally": lambda: SigmoidTally(np.linspace(-1, 1, N_LABELS)),
    "ReliabilityTally": lambda: ReliabilityTally(3, 5),
    "SaturationTally": lambda: SaturationTally(N_LABELS, 3),
    "DistinctTally": lambda: DistinctTally(0, N_LABELS, None),
    "ResidualTally": lambda: ResidualTally(np.linspace(1, 3, N_LABELS)),
    "WhatIfTally": lambda: WhatIfTally(np.linspace(1, 3, N_LABELS), 3, True),
    "PositiveRows": lambda: PositiveRows(FOLDS),
    "CellTally": lambda: CellTally([make_row_aware()] * 3, FOLDS[0], 0.5),
    "ThresholdCounts": lambda: ThresholdCounts(np.full((2, N_LABELS), [[0.3], [0.6]]), True),
    "GridCounts": lambda: GridCounts(N_LABELS, True),
    "ListTotals": lambda: ListTotals(make_isotonic(), LISTS, GROUPS, True),
    "RiskTally": lambda: RiskTally(make_isotonic(), "missed", "common_threshold", 3, 2, GROUPS),
    "LengthTally": lambda: LengthTally(make_isotonic(), 3, 20, 1),
    "MappedTally": lambda: MappedTally(GridCounts(N_LABELS, True), make_isotonic()),
    "TopKTally": lambda: TopKTally(N_LABELS, 3, None),
    "TallyGroup": lambda: TallyGroup([Ranges(N_LABELS), PositiveKeys(N_LABELS, SCORES.dtype)]),
}


@pytest.fixture(params=TALLIES)
def make(request):
    return TALLIES[request.param]


def send(tally):
    """The tally as another process gets it, with what it saw."""
    state = {name: list(piece) for name, piece in tally.state().items()}
    arrived = unpack(pack({"tally": tally, "state": state}))
    return arrived["tally"], {name: tuple(piece) for name, piece in arrived["state"].items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, (array, how) in one.items():
        theirs, joined = other[name]
        assert (joined, theirs.dtype, theirs.shape) == (how, array.dtype, array.shape), name
        if array.dtype.kind == "f" and how == "add":
            assert np.allclose(array, theirs, rtol=1e-12, atol=1e-12), name
        else:
            assert np.array_equal(array, theirs), name


def in_any_order(state):
    """Rows are appended in the order, and in the blocks, in which parts arrive."""
    return {
        name: (array if how != "append" else np.sort(array, axis=0), how)
        for name, (array, how) in state.items()
        if not name.endswith(("sizes", "places"))
    }


def test_every_tally_is_listed_here():
    classes = [
        node
        for path in Path(oddslip.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    tallies = {"MergeableTally"}
    for _ in classes:  # a class may be read before its base
        tallies |= {
            node.name
            for node in classes
            if tallies & {getattr(base, "id", None) for base in node.bases}
            or any(getattr(item, "name", None) == "empty_like" for item in node.body)
        }
    # Protocol, bases, and one that holds a function and never travels.
    tallies -= {"Tally", "MergeableTally", "BootstrapTally", "BootstrapSums"}
    assert tallies == {name.partition(",")[0] for name in TALLIES}


def test_a_tally_that_was_sent_is_empty_and_of_its_kind(make):
    tally = counted(make())
    sent, _ = send(tally)
    assert type(sent) is type(tally)
    assert_same(sent.state(), make().state())


def test_a_state_that_was_sent_is_restored_to_the_bit(make):
    tally = counted(make())
    sent, state = send(tally)
    sent.restore(state)
    assert_same(sent.state(), counted(make()).state())
    sent.result()


@pytest.mark.parametrize("cuts", [(0, 30, 60), (0, 1, 2, 59, 60), (0, 60)], ids=str)
def test_parts_sent_as_states_merge_to_the_whole(make, cuts):
    states = []
    for start, stop in pairwise(cuts):
        part = make().empty_like()
        part.add(PANEL.rows(start, stop))
        states.append(send(part)[1])
    whole = make()
    whole.restore(merge_states(reversed(states)))
    assert_same(in_any_order(whole.state()), in_any_order(counted(make()).state()))


def test_merging_tallies_and_merging_states_agree(make):
    parts = [make().empty_like() for _ in range(2)]
    for at, part in enumerate(parts):
        part.add(PANEL.rows(30 * at, 30 * at + 30))
    joined = merge_states(part.state() for part in parts)
    joined = {name: (array.copy(), how) for name, (array, how) in joined.items()}
    restored = make().empty_like()
    restored.restore(joined)
    parts[0].merge(parts[1])
    assert_same(parts[0].state(), restored.state())


def test_a_restored_tally_takes_more_rows(make):
    half = make().empty_like()
    half.add(PANEL.rows(0, 30))
    sent, state = send(half)
    sent.restore(state)
    sent.add(PANEL.rows(30, 60))
    assert_same(in_any_order(sent.state()), in_any_order(counted(make()).state()))


def test_weighed_rows_travel_too():
    weight = read_sample_weight(np.arange(1, N_ROWS + 1) / 4, N_ROWS)
    panel = PANEL.rows(0, N_ROWS)
    panel.sample_weight = weight
    for tally in (Ranges(N_LABELS), PositiveKeys(N_LABELS, SCORES.dtype), make_intervals()):
        tally.add(panel)
        sent, state = send(tally)
        sent.restore(state)
        assert_same(sent.state(), tally.state())


def test_objects_that_are_one_stay_one():
    maps = Isotonic().fit(SCORES, LABELS).fitted_.maps
    first, second = unpack(pack([maps, maps]))
    assert first is second
    assert np.array_equal(first.rank_panel(PANEL, 3), maps.rank_panel(PANEL, 3))
