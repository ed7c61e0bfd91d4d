"""Finished cells are kept, found again by their configuration, and nothing else."""

import json

import pytest

from experiments.store import CellStore
from oddslip.errors import UnreadableFile


@pytest.fixture
def store(tmp_path):
    return CellStore(tmp_path / "cells", "trial")


def test_a_cell_comes_back_with_its_configuration(store):
    store.write("a", {"seed": 1}, {"map": 0.5}, seconds=2.0, command="oddslip trial")
    assert store.read("a", {"seed": 1}) == {"map": 0.5}


def test_a_changed_configuration_is_not_found(store):
    store.write("a", {"seed": 1}, {"map": 0.5}, seconds=2.0, command="oddslip trial")
    assert store.read("a", {"seed": 2}) is None
    assert store.read("b", {"seed": 1}) is None


def test_a_cell_says_where_it_comes_from(store):
    store.write("a", {"seed": 1}, {"map": 0.5}, seconds=2.0, command="oddslip trial")
    record = json.loads(store.path.read_text())
    assert record["study"] == "trial"
    assert {"python", "oddslip", "numpy"} <= record["versions"].keys()
    assert record["command"] == "oddslip trial"


def test_a_cell_tells_a_part_of_its_configuration(store):
    store.write("a", {"inputs": {"x": "1"}}, {"map": 0.5}, seconds=2.0, command="oddslip trial")
    assert store.read_configuration("a", "inputs") == {"x": "1"}
    assert store.read_configuration("b", "inputs") is None
    with pytest.raises(UnreadableFile, match="has no 'data'"):
        store.read_configuration("a", "data")


def kept_cell(store, **values):
    store.write("a", {"seed": 1}, {"map": 0.5, **values}, seconds=2.0, command="oddslip trial")
    return store.path


@pytest.mark.parametrize(
    ("old", "new"),
    [('"map": 0.5', '"map": 0.6'), ('"seed": 1', '"seed": 7'), ('"sha256"', '"sha257"')],
)
def test_a_cell_that_was_altered_is_refused(store, old, new):
    path = kept_cell(store)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UnreadableFile, match=r"was altered .*checksum") as error:
        store.read("a", {"seed": 1})
    assert "\n" not in str(error.value)


def test_a_cell_spelled_otherwise_is_the_same_cell(store):
    path = kept_cell(store, tiny=5e-324, third=1 / 3, name="naïve")
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert store.read("a", {"seed": 1})["third"] == 1 / 3


def test_cells_are_kept_in_one_file_and_replaced_by_key(store):
    for key, value in (("b", 1), ("a", 2), ("b", 3)):
        store.write(key, {"seed": 1}, {"map": value}, seconds=2.0, command="oddslip trial")
    assert [json.loads(line)["key"] for line in store.path.read_text().splitlines()] == ["a", "b"]
    assert store.values() == {"a": {"map": 2}, "b": {"map": 3}}


def test_a_cell_that_another_process_wrote_is_seen(store):
    kept_cell(store)
    other = CellStore(store.path.parent, "trial")
    other.write("b", {"seed": 1}, {"map": 0.7}, seconds=2.0, command="oddslip trial")
    assert store.values() == {"a": {"map": 0.5}, "b": {"map": 0.7}}


def test_a_damaged_line_is_named(store):
    kept_cell(store)
    with store.path.open("a") as file:
        file.write("{half\n")
    with pytest.raises(UnreadableFile, match=r"line 2 of .*trial\.jsonl is not a finished cell"):
        store.cells()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"values":' * 100_000])
def test_a_cell_nested_too_deeply_is_refused(store, text):
    path = kept_cell(store)
    path.write_text(text)
    with pytest.raises(UnreadableFile, match=r"not a finished cell.*nested too deeply"):
        store.read("a", {"seed": 1})


def test_a_cell_that_is_no_cell_is_refused(store):
    store.write("a", {"seed": 1}, {"map": 0.5}, seconds=2.0, command="oddslip trial")
    store.path.write_text("{half")
    with pytest.raises(UnreadableFile, match="not a finished cell"):
        store.read("a", {"seed": 1})
