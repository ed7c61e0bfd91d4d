"""`python -m experiments tafeng | instacart | santander`: thin, and one line for every mistake."""

import json
import re
import shutil

import pytest
from typer.testing import CliRunner

from experiments.app import app
from oddslip.errors import InvalidInput


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def results_of(folder, tmp_path):
    """The cells of the small study under the name that the command looks for."""
    shutil.copy(folder / "results/products.jsonl", tmp_path / "tafeng-9.jsonl")
    return tmp_path


def test_finished_cells_become_a_table_a_page_and_pictures(finished_study, tmp_path):
    folder, _ = finished_study
    output = run(
        "tafeng",
        "--labels",
        9,
        "--results",
        results_of(folder, tmp_path),
        "--finished",
        "--page",
        tmp_path / "page.md",
        "--figures",
        tmp_path,
        "--tables",
        tmp_path,
    )
    assert output.exit_code == 0, output.output
    assert re.search(r"raw score +\d\.\d{3} ", output.stdout)
    assert "lightgbm w=r" in output.stdout
    assert (tmp_path / "page.md").read_text().startswith("# Ta-Feng: matched pairs, 9 labels\n")
    assert (tmp_path / "table-1.csv").exists()


def test_json_is_all_the_cells(finished_study, tmp_path):
    folder, cells = finished_study
    output = run(
        "tafeng", "--labels", 9, "--results", results_of(folder, tmp_path), "--finished", "--json"
    )
    assert json.loads(output.stdout) == cells


def test_only_the_arms_asked_for_are_read(finished_study, tmp_path):
    folder, _ = finished_study
    output = run(
        "tafeng",
        "--labels",
        9,
        "--results",
        results_of(folder, tmp_path),
        "--finished",
        "--json",
        "--part",
        "caps",
        "--cap",
        "0.3",
        "--weight",
        "r",
    )
    assert set(json.loads(output.stdout)) == {"data", "lightgbm-r-cap-0.3"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["santander"], "--data must name the folder with train_ver2.csv"),
        (["santander", "--sample", "--part", "all-products"], "must not be all-products"),
        (["santander", "--sample", "--features", "paper"], "features must be own with --sample"),
        (["tafeng", "--cap", "much"], "cap must be a number or none"),
        (["tafeng", "--part", "ladders"], "parts must be among"),
        (["tafeng", "--learner", "forest"], "learners must be among"),
    ],
)
def test_a_mistake_is_told_in_one_line(words, line, tmp_path):
    output = run(*words, "--results", tmp_path, "--work", tmp_path)
    assert output.exit_code != 0
    assert isinstance(output.exception, InvalidInput)
    assert line in str(output.exception)
    assert "\n" not in str(output.exception)
