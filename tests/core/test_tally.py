"""A pass over rows: what a source promised it must give, or nothing is shown."""

from typing import ClassVar

import numpy as np
import pytest

from oddslip import Panel, rank
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.core.threads import map_threads
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.shifts import invert_odds
from oddslip.sources import Source

SCORES = np.linspace(0.1, 0.9, 40).reshape(10, 4)


class Liar(Source):
    """Ten rows promised; the given ranges of rows come."""

    def __init__(self, *ranges):
        self.ranges, self.panel = ranges, Panel(SCORES)
        self.n_rows, self.n_labels = SCORES.shape
        self.kind, self.dtype, self.label_names = "probability", SCORES.dtype, None
        self.has_labels = False

    def blocks(self):
        for start, stop in self.ranges:
            yield self.panel.rows(start, stop)


def test_all_rows_in_order_are_taken():
    assert np.array_equal(rank(Liar((0, 4), (4, 10)), k=2), rank(SCORES, k=2))


@pytest.mark.parametrize("ranges", [[(0, 4)], [(0, 4), (4, 9)], []], ids=str)
def test_rows_that_do_not_come_are_an_error_and_not_unwritten_memory(ranges):
    with pytest.raises(InvalidInput, match="must give the 10 rows it promised"):
        rank(Liar(*ranges), k=2)


def test_rows_that_are_left_out_between_blocks_are_an_error():
    with pytest.raises(InvalidInput, match="row 4 must come next, got row 5"):
        rank(Liar((0, 4), (5, 10)), k=2)


def test_probabilities_moved_by_a_weight_need_all_rows_too():
    with pytest.raises(InvalidInput, match="must give the 10 rows it promised, got 4"):
        invert_odds(Liar((0, 4)), np.ones(4))


def test_a_row_group_with_fewer_rows_than_it_promises_is_an_error(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from oddslip.sources import open_source
    from oddslip.sources.parquet import files, wide

    columns = {name: SCORES[:, at] for at, name in enumerate("abcd")}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    read = files.ParquetFiles.file_batches

    def cut(self, *told, **named):
        return (batch.slice(0, batch.num_rows - 1) for batch in read(self, *told, **named))

    monkeypatch.setattr(wide, "GROUP_BYTES", 1)
    monkeypatch.setattr(files.ParquetFiles, "file_batches", cut)
    with pytest.raises(UnreadableFile, match="the 10 rows that row group 0 declares, got 9"):
        list(open_source(tmp_path / "wide.parquet").blocks())


class Rows(MergeableTally):
    """Counts rows, and how often a fresh one was made; if it rounds, blocks are summed apart."""

    JOINED: ClassVar = {"n": "add"}

    def __init__(self, made, rounds):
        self.made, self.n = made, 0
        if rounds:
            self.blocks_apart = 1

    def empty_like(self):
        self.made.append(self)
        return Rows(self.made, hasattr(self, "blocks_apart"))

    def add(self, panel):
        self.n += panel.n_rows

    def result(self):
        return self.n


def test_counts_do_not_wait_with_sums_however_they_are_put_together():
    counted, summed = [], []
    inner = TallyGroup([Rows(counted, False), Rows(summed, True)])
    source = Liar(*((at, at + 1) for at in range(10)))
    source.threads = 2
    run = source.run(TallyGroup([inner, Rows(counted, False)]))
    assert run.result() == ((10, 10), 10)
    assert len(summed) == 10  # one for each block
    assert len(counted) == 2  # each of the two, once more for the other thread


def test_no_more_outcomes_wait_than_asked_for():
    begun, taken = [], []
    for outcome in map_threads(
        range(40), lambda item: begun.append(item) or item, threads=2, ahead=1
    ):
        taken.append(outcome)
        assert len(begun) <= len(taken) + 3
    assert taken == list(range(40))
