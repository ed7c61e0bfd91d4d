"""A file that changes while it is read is refused in one line, and never ends the process."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import oddslip
import oddslip.sources.base as base
from oddslip.adapters.features import read_features
from oddslip.core.panel import FileRows
from oddslip.errors import UnreadableFile
from oddslip.sources import open_source

RNG = np.random.default_rng(3)
SCORES = RNG.random((4000, 6))
LABELS = (SCORES > 0.7).astype(np.int8)
NAMES = [f"label {j}" for j in range(6)]


def write_npy(path, cells=SCORES):
    np.save(path, cells)


def write_npz(path, cells=SCORES):
    np.savez(path, scores=cells)


def write_columns(path, cells=SCORES):
    np.save(path, np.asfortranarray(cells))


def write_parquet(path, cells=SCORES):
    pd.DataFrame(cells, columns=NAMES).to_parquet(path, row_group_size=500)


FORMS = {
    "s.npy": write_npy,
    "columns.npy": write_columns,
    "s.npz": write_npz,
    "s.parquet": write_parquet,
}


def cut(path, write):
    os.truncate(path, 5000)


def empty(path, write):
    os.truncate(path, 0)


def write_smaller(path, write):
    write(path, SCORES[:9])


def write_larger(path, write):
    write(path, np.concatenate([SCORES, SCORES]))


def write_alike(path, write):
    write(path, 1 - SCORES)
    os.utime(path, ns=(1, 1))  # a clock that stands still would not show it


CHANGES = [cut, empty, write_smaller, write_larger, write_alike]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(base, "BLOCK_BYTES", 16 * 1024)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FORMS)
def test_scores_that_change_between_two_blocks_are_refused(tmp_path, name, change):
    path = tmp_path / name
    FORMS[name](path)
    blocks = open_source(path).blocks()
    np.testing.assert_array_equal(next(blocks).scores, SCORES[:341])
    change(path, FORMS[name])
    with pytest.raises(UnreadableFile, match="changed while it was read") as refusal:
        [block.scores for block in blocks]
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FORMS)
def test_scores_that_change_between_two_passes_are_refused(tmp_path, name, change):
    path = tmp_path / name
    FORMS[name](path)
    source = open_source(path, LABELS)
    oddslip.evaluate(source, k=2, n_replicates=0)
    change(path, FORMS[name])
    with pytest.raises(UnreadableFile, match="changed while it was read"):
        oddslip.evaluate(source, k=2, n_replicates=0)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["s.npy", "columns.npy", "s.npz"])
def test_labels_and_features_that_change_are_refused(tmp_path, name, change):
    path = tmp_path / name

    def write(path, cells=SCORES):
        FORMS[name](path, (cells > 0.7).astype(np.int8))

    write(path)
    source, features = open_source(SCORES, path), read_features(path)
    change(path, write)
    for read in (source.positives, lambda: features[1000:2000], lambda: np.asarray(features)):
        with pytest.raises(UnreadableFile, match="changed while it was read"):
            read()


@pytest.mark.parametrize("name", ["s.npy", "columns.npy", "s.npz"])
def test_a_file_that_is_replaced_as_a_whole_is_read_as_it_was(tmp_path, name):
    path = tmp_path / name
    FORMS[name](path)
    source = open_source(path)
    FORMS[name](tmp_path / f"new-{name}", 1 - SCORES)
    os.replace(tmp_path / f"new-{name}", path)
    read = np.concatenate([block.scores for block in source.blocks()])
    np.testing.assert_array_equal(read, SCORES)


def test_a_parquet_file_that_is_replaced_is_refused(tmp_path):
    path = tmp_path / "s.parquet"
    write_parquet(path)
    source = open_source(path)
    write_parquet(tmp_path / "new.parquet", 1 - SCORES)
    os.replace(tmp_path / "new.parquet", path)
    with pytest.raises(UnreadableFile, match="changed while it was read"):
        list(source.blocks())


def test_a_csv_file_that_changes_while_it_is_parsed_is_refused(tmp_path, monkeypatch):
    from oddslip.sources import csv

    path = tmp_path / "s.csv"
    pd.DataFrame(SCORES, columns=NAMES).to_csv(path, index=False)
    monkeypatch.setattr(csv, "BLOCK_BYTES", 4096)
    original = csv.CsvBatches._clean

    def change(self, batch):
        os.utime(path, ns=(1, 1))
        return original(self, batch)

    monkeypatch.setattr(csv.CsvBatches, "_clean", change)
    with pytest.raises(UnreadableFile, match="changed while it was read"):
        open_source(path)


def test_blocks_are_read_by_those_who_use_them_and_let_go_of(tmp_path):
    write_npy(tmp_path / "s.npy")
    source = open_source(tmp_path / "s.npy", LABELS)
    blocks = list(source.blocks())
    assert all(isinstance(block._scores, FileRows) for block in blocks)
    views = [block.rows(3, 9) for block in blocks]
    assert all(isinstance(view._scores, FileRows) for view in views)
    np.testing.assert_array_equal(views[1].scores, blocks[1].scores[3:9])


def test_rows_in_another_order_come_from_a_file_as_from_an_array(tmp_path):
    ids = RNG.permutation(len(SCORES))
    for write in (write_npy, write_columns):
        write(tmp_path / "s.npy")
        frame = pd.DataFrame(LABELS[ids], index=ids)
        options = {"k": 2, "n_replicates": 0}
        numbers = np.arange(len(SCORES))
        ours = oddslip.evaluate(open_source(tmp_path / "s.npy", frame, row_ids=numbers), **options)
        theirs = oddslip.evaluate(SCORES, LABELS, **options)
        assert ours["map"].value == theirs["map"].value


def test_a_sparse_file_is_read_once_and_may_change_then(tmp_path):
    path = tmp_path / "y.npz"
    sparse.save_npz(path, sparse.csr_array(LABELS))
    source = open_source(SCORES, path)
    os.truncate(path, 10)
    assert source.positives().indices.size == LABELS.sum()


def test_the_command_line_refuses_a_file_that_shrinks_in_one_line(tmp_path, monkeypatch, capsys):
    from oddslip.cli.app import main
    from oddslip.sources.arrays import ArraySource

    monkeypatch.chdir(tmp_path)
    write_npy("s.npy")
    np.save("y.npy", LABELS)
    blocks = ArraySource.blocks

    def shrink(self):
        for block in blocks(self):
            yield block
            if Path("s.npy").stat().st_size > 5000:
                os.truncate("s.npy", 5000)

    monkeypatch.setattr(ArraySource, "blocks", shrink)
    assert main(["evaluate", "s.npy", "y.npy", "-k", "2"]) == 2
    output = capsys.readouterr().err
    assert "s.npy changed while it was read" in output
    assert output.count("\n") == 1
