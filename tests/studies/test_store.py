"""Finished cells are kept, found again by their configuration, and nothing else."""

import json

import pytest

from oddslip.errors import UnreadableFile
from oddslip.studies.store import CellStore


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
    told = json.loads(store.path("a").read_text())
    assert told["study"] == "trial"
    assert {"python", "oddslip", "numpy"} <= told["versions"].keys()
    assert told["command"] == "oddslip trial"


def test_a_cell_tells_a_part_of_its_configuration(store):
    store.write("a", {"inputs": {"x": "1"}}, {"map": 0.5}, seconds=2.0, command="oddslip trial")
    assert store.read_configuration("a", "inputs") == {"x": "1"}
    assert store.read_configuration("b", "inputs") is None
    with pytest.raises(UnreadableFile, match="not a finished cell"):
        store.read_configuration("a", "data")


def test_a_cell_that_is_no_cell_is_refused(store):
    store.write("a", {"seed": 1}, {"map": 0.5}, seconds=2.0, command="oddslip trial")
    store.path("a").write_text("{half")
    with pytest.raises(UnreadableFile, match="not a finished cell"):
        store.read("a", {"seed": 1})
