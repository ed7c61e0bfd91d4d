"""Committed pages show the numbers of the committed cells, without data and without a network."""

import re
from pathlib import Path

import pytest

from experiments.app import main

ROOT = Path(__file__).parents[2]
PAGES = {
    "mulan": ["mulan"],
    "tafeng": ["tafeng"],
    "santander-sample": ["santander", "--sample"],
    "instacart": ["instacart-baskets"],
    "instacart-400": ["instacart-baskets", "--labels", "400"],
    "selection-study": ["selection"],
    "leaf": ["leaf"],
    "synthetic": ["synthetic"],
    "wgboost": ["wgboost"],
    "boundary": ["boundary"],
    "row-rankers": ["row-rankers"],
    "row-aware": ["row-aware"],
    "peers": ["peers"],
    "survey": ["survey"],
    "rounds": ["rounds"],
    "foldable": ["foldable"],
    "screening": ["screening"],
    "conventions": ["conventions"],
    "wild": ["wild"],
}


def table_numbers(page):
    """All numbers in the tables of a page, in order."""
    rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
    return [re.findall(r"[-+]?\d[\d,]*\.?\d*", row) for row in rows]


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a finished study must need neither data nor a network")

    monkeypatch.setenv("ODDSLIP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no cache"))
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.chdir(ROOT)


def test_pages_show_the_numbers_of_the_committed_cells(tmp_path, no_data, capsys):
    for name, command in PAGES.items():
        page = tmp_path / f"{name}.md"
        assert main([*command, "--finished", "--page", str(page)]) == 0, capsys.readouterr().err
        numbers = table_numbers(page)
        assert len(numbers) > 5
        assert numbers == table_numbers(ROOT / f"docs/paper/{name}.md"), name
    cells = table_numbers(tmp_path / "mulan-cells.md")
    assert cells == table_numbers(ROOT / "docs/paper/mulan-cells.md")


@pytest.mark.parametrize("option", ["--page", "--regimes", "--results"])
def test_an_output_that_cannot_be_written_is_rejected_before_the_work(tmp_path, option, capsys):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "below" if option == "--results" else tmp_path
    assert main(["mulan", "--data", "none", option, str(place)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
