"""The page and the pictures show what the cells hold; the paper's digits only on its own data."""

import re
from itertools import groupby
from pathlib import Path

import pytest

from experiments.pairs.arms import distinct_arms
from experiments.pairs.label_counts import label_count_section
from experiments.pairs.page import verdict_section, write_page
from experiments.pairs.paper import is_papers_data
from experiments.pairs.pictures import (
    cap_points,
    regime_points,
    supplements,
    waterfalls,
    write_pictures,
)
from experiments.pairs.protocols import PROTOCOLS
from experiments.pairs.tables import table_one, verdict_rows
from experiments.store import CellStore

ROOT = Path(__file__).parents[3]
ROWS = {"train": 8_248_933, "validation": 1_903_599, "test": 2_538_132}
SANTANDER = {"n_labels": 24, "rows": ROWS, "smallest_weight": 78.4, "largest_weight": 8_248_932.0}


def test_the_page_has_every_section(cells):
    page = write_page(cells, "tafeng")
    for title in (
        "The data",
        "Table 1",
        "The whole ladder, lightgbm",
        "The whole ladder, mlp",
        "What the loss is made of",
        "Caps of the leaf step",
        "Doses of the weight",
        "Draws of the training rows",
        "Sizes of the calibration split",
        "All products as labels",
        "What-if by steps of ln w",
        "The direct shift, and what the inversion leaves",
        "Label by label",
        "The earlier configuration",
        "Trained a second time",
        "Dead labels by the size of the split",
        "Which of the paper's claims hold here",
        "What it took",
    ):
        assert f"\n## {title}" in page
    rung = cells["mlp-r"]["deployment"]["ladder"]["rungs"]["isotonic"]["map"]
    assert f"{rung['value']:.4f} [{rung['low']:.4f}, {rung['high']:.4f}]" in page


def test_parts_of_the_loss_have_paired_intervals(cells):
    page = write_page(cells, "tafeng")
    rungs = cells["lightgbm-r"]["test-split"]["ladder"]["rungs"]
    gaps = [rungs[name]["minus_raw"] for name in ("unweighted", "what-if", "inversion", "isotonic")]
    texts = [f"{gap['value']:.4f} [{gap['low']:.4f}, {gap['high']:.4f}]" for gap in gaps]
    assert f"| lightgbm | {' | '.join(texts)} |" in page


def test_a_study_under_another_protocol_says_so(cells):
    page = write_page(cells, "instacart-baskets")
    assert "under another protocol" in page
    assert "under another protocol" not in write_page(cells, "tafeng")


def test_a_page_of_another_number_of_labels_has_its_own_pictures_and_command(cells):
    n_labels = cells["data"]["n_labels"]
    page = write_page(cells, "tafeng", file=Path(f"kept/tafeng-{n_labels}.jsonl"))
    assert f"python -m experiments tafeng --labels {n_labels} --finished" in page
    assert set(re.findall(r"\]\((.*)-figure-1\.png", page)) == {f"tafeng-{n_labels}"}


def test_pairs_of_all_label_counts_stand_in_one_table(cells, tmp_path):
    stores = {"shop": 9, "shop-2": 2, "shop-sample": 5}
    for name, n_labels in stores.items():
        data = cells["data"] | {"n_labels": n_labels}
        for key, values in (cells | {"data": data}).items():
            CellStore(tmp_path, name).write(key, {}, values, seconds=0, command="none")
    for name in ("shop", "shop-2"):
        section = "\n".join(label_count_section("shop", tmp_path / f"{name}.jsonl"))
        raw = cells["mlp-r"]["test-split"]["ladder"]["rungs"]["raw"]["map"]["value"]
        counts = re.findall(rf"\n\| (\d) \| mlp \|.* {raw:.4f} ", section)
        assert counts == ["2", "9"]
    assert label_count_section("other", tmp_path / "other.jsonl") == []


def test_tables_of_the_page_are_whole(cells):
    lines = write_page(cells, "tafeng").splitlines()
    tables = [list(rows) for table, rows in groupby(lines, lambda x: x.startswith("|")) if table]
    assert len(tables) >= 12
    for header, rule, *rows in tables:
        assert set(rule) <= set("|-:")
        assert rows
        assert {line.count("|") for line in (rule, *rows)} == {header.count("|")}


def test_an_unfinished_study_has_a_page_too(cells):
    assert "## Table 1" in write_page({}, "tafeng")
    page = write_page({"data": cells["data"], "lightgbm-r": cells["lightgbm-r"]}, "tafeng")
    assert "## The whole ladder, lightgbm" in page
    assert "Caps" not in page


def test_only_the_papers_rows_stand_beside_the_papers_digits(cells):
    other = write_page(cells, "santander")
    assert "not the paper's data" in other
    assert "0.117" not in other
    assert "Every printed number" not in other
    cells["data"] |= SANTANDER
    text = write_page(cells, "santander")
    assert "(0.117, " in text
    assert "| lightgbm w=r: label_free | Table S1 |" in text
    assert "Not here" in text  # WGBoost among them


def test_a_page_names_the_folders_that_were_used_and_no_other(cells):
    page = write_page(cells, "instacart", file=Path("kept/here.jsonl"), tables=Path("kept/numbers"))
    assert "from the cells in `kept/here.jsonl`; all" in page
    assert "numbers lie in `kept/numbers`." in page
    assert "experiments/results" not in page
    assert "numbers lie in" not in write_page(cells, "instacart")


@pytest.mark.parametrize(
    ("study", "generated", "message"),
    [
        ("instacart", True, "Generated data: made by"),
        ("instacart", False, "These are not the paper's data"),
        ("instacart", None, "Whether these data were generated is not known"),
        ("tafeng", None, "These are not the paper's data"),
    ],
)
def test_a_page_says_whether_data_were_generated(cells, study, generated, message):
    sentences = ("Generated data: made by", "Whether these data were generated is not known")
    cells["data"]["generated"] = generated
    page = write_page(cells, study)
    assert message in page
    assert [sentence in page for sentence in sentences] == [each == message for each in sentences]


@pytest.mark.parametrize(
    ("study", "change"),
    [
        ("tafeng", {}),
        ("instacart", {}),
        ("santander-sample", {}),
        ("santander", {"n_labels": 23}),
        ("santander", {"smallest_weight": 60.0}),
        ("santander", {"largest_weight": 5e6}),
        ("santander", {"settings": {"generated": True}}),
        ("santander", {"generated": True}),
        ("santander", {"rows": ROWS | {"test": 1}}),
    ],
)
def test_other_rows_are_not_taken_for_the_papers(study, change):
    about = SANTANDER | {"settings": {}}
    assert is_papers_data("santander", about)
    assert not is_papers_data(study, about | change)


def set_losses(cells, loss=0.2):
    for cell in cells.values():
        if "reordered" in cell:
            rungs = cell["test-split"]["ladder"]["rungs"]
            rungs["unweighted"]["minus_raw"] |= {"value": loss, "low": loss - 0.1}
            cell["test-split"]["decomposition"]["returned"] = {"inversion": 0.5}
            cell["deployment"]["shifts"]["median_ratio"] = 0.7


def test_a_pair_without_a_sure_loss_has_no_waterfall(cells):
    set_losses(cells, loss=0.05)
    assert waterfalls(cells) == []
    assert regime_points(cells) == []


def test_waterfalls_go_from_the_twin_to_the_repair(cells):
    set_losses(cells)
    first, second = waterfalls(cells)
    assert (first.name, second.name) == ("LightGBM", "MLP")
    table = table_one(cells)
    assert first.weighted == table["lightgbm w=r"]["raw score"]
    assert first.repaired == table["lightgbm w=r"]["per-label isotonic, prior"]
    assert first.unweighted_repaired == table["lightgbm w=1"]["per-label isotonic, prior"]


def test_cap_points_have_a_budget_unless_there_is_no_cap(cells):
    points = cap_points(cells, "products")
    assert [point.cap for point in points] == [0.3, 5, None]
    assert [point.budget is None for point in points] == [False, False, True]


def test_models_without_a_loss_have_no_place_among_the_regimes(cells):
    set_losses(cells)
    points = regime_points(cells)
    assert {point.name for point in points if point.series == "LightGBM"} == {
        "w = r",
        "w = sqrt",
        "w = 10r",
        "c = 0.3",
        "c = 5",
    }
    rungs = cells["lightgbm-r"]["test-split"]["ladder"]["rungs"]
    rungs["unweighted"]["minus_raw"]["low"] = -0.1
    assert len(regime_points(cells)) == len(points) - 1


def test_pictures_are_files(cells, tmp_path):
    set_losses(cells)
    pictures = write_pictures(cells, "tafeng", tmp_path / "new")
    names = ("figure-1", "figure-2", "ladders", "doses", "draws", "splits", "choices", "labels")
    assert [path.name for path in pictures] == [f"tafeng-{name}.png" for name in names]
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG")
    assert write_pictures({}, "tafeng", tmp_path) == []


def test_the_page_shows_every_picture_of_the_supplement_and_no_other(cells):
    page = write_page(cells, "tafeng")
    assert set(re.findall(r"\(tafeng-(\w+)\.png\)", page)) == set(supplements(cells))
    for key in [key for key in cells if "draw" in key]:
        del cells[key]
    assert "tafeng-draws.png" not in write_page(cells, "tafeng")


def test_the_page_shows_the_verdict_on_every_arm_under_both_protocols(cells):
    rows = {(row["arm"], row["protocol"]): row for row in verdict_rows(cells)}
    for arm in distinct_arms():
        for protocol in PROTOCOLS:
            if arm.key in cells:
                diagnosis = cells[arm.key][protocol]
                row = rows.pop((arm.key, protocol))
                assert row["verdict"] == diagnosis["verdict"]["code"]
                assert row["twin_follows"] in ({None} if not arm.weighted else {True, False})
    assert not rows
    page = write_page(cells, "products")
    table = page.split("## What the diagnosis says of each arm")[1].split("##")[0]
    for key in ("lightgbm-r", "mlp-10r"):
        line = next(line for line in table.splitlines() if line.startswith(f"| {key} |"))
        assert f"`{cells[key]['test-split']['verdict']['code']}`" in line


def test_the_page_states_the_share_of_a_sure_loss_and_a_doubted_twin(cells):
    diagnosis = cells["lightgbm-r"]["deployment"]
    diagnosis["verdict"]["code"] = "repairable_by_calibration"
    diagnosis["ladder"]["rungs"]["unweighted"]["minus_raw"] |= {"low": 0.1}
    diagnosis["decomposition"]["returned"]["chosen"] = 0.25
    diagnosis["findings"]["OS206"] = "The twin does not follow the scores."
    table = "\n".join(verdict_section(cells))
    assert "`repairable_by_calibration`, returns 25%, twin in doubt (OS206)" in table
