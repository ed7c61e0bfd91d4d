"""Regularities, doses and the pages are computed from cells, not asserted."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.figures.doses import draw_doses, draw_magnitudes
from experiments.mulan.arms import LEARNERS
from experiments.mulan.doses import falls_with_the_dose, magnitude_lines
from experiments.mulan.page import dose_rows, publish, write_grid, write_page
from experiments.mulan.regularities import (
    Finding,
    compare_rules_told,
    find_regularities,
    find_selections,
)
from experiments.mulan.table import COLUMNS, TABLE_2, compare_table_2
from experiments.store import WEIGHTS


def printed_cells():
    """Cells that hold just what the paper prints, for the default learner."""
    cells = {}
    for data, row in TABLE_2.items():
        numbers = {column: float(text) for column, text in row.items()}
        cells[data] = {c: numbers[c] for c in COLUMNS if not c.startswith("w=")}
        for weight in ("1", "r"):
            by_weight = {
                c.split(" ", 1)[1]: v for c, v in numbers.items() if c.startswith(f"w={weight}")
            }
            distinct = by_weight.pop("distinct")
            pooled = {"pooled": by_weight["raw"]}
            cells[f"{data}-lightgbm-{weight}"] = {"map": by_weight | pooled, "distinct": distinct}
    return cells


def told(cells):
    findings = [*find_regularities(cells), *find_selections(cells)]
    return {finding.what: finding for finding in findings}


def test_the_papers_own_numbers_agree_with_themselves():
    entries = compare_table_2(printed_cells())
    assert len(entries) == 187
    assert all(entry.agrees for entry in entries)


def test_a_changed_digit_is_seen():
    cells = printed_cells()
    cells["yeast-lightgbm-r"]["map"]["raw"] += 0.001
    wrong = [entry for entry in compare_table_2(cells) if not entry.agrees]
    assert [(entry.data, entry.column, entry.paper) for entry in wrong] == [
        ("yeast", "w=r raw", "0.688")
    ]
    assert "**0.689** (0.688)" in write_page(cells, "paper")


def test_regularities_of_the_printed_table():
    findings = told(printed_cells())
    collapsed = findings["(i) cells at w = r that keep less than 0.5 of their unweighted MAP"]
    assert (collapsed.ours, collapsed.difference, collapsed.of) == ("2", "-6", "11 of 55 cells")
    for what in (
        "(ii) worst change at w = r where max r < 100, default LightGBM",
        "(ii) best change at w = r where max r < 100, default LightGBM",
        "(iii) data sets whose what-if is within 0.03 of the trained model, default LightGBM",
        "sets where isotonic loses more than 0.005, default LightGBM at w = 1",
    ):
        assert findings[what].difference == "0", what


def test_gaps_on_many_labels_are_to_the_unweighted_arm_under_isotonic():
    cells = printed_cells()
    cells["corel5k-lightgbm-1"]["map"] |= {"raw": 0.2, "isotonic": 0.5}
    cells["corel5k-lightgbm-r"]["map"] |= {"isotonic": 0.3, "pooled": 0.49}
    findings = told(cells)
    for what, gap in (
        ("largest gap of the repaired", 0.2),
        ("smallest gap of the pooled map", 0.01),
    ):
        finding = findings[
            f"(i) delicious and Corel5k: {what} to the unweighted arm under isotonic"
        ]
        assert finding.value == pytest.approx(gap)
        assert finding.note == "corel5k, lightgbm"


@pytest.mark.parametrize(
    ("value", "form", "paper", "ours", "difference"),
    [
        (0.6808, ".3f", "0.680", "0.681", "+0.001"),
        (0.68049, ".3f", "0.680", "0.680", "0"),
        (-0.1337, "+.3f", "-0.134", "-0.134", "0"),
        (23.6, "d", "24", "24", "0"),
        (5, "d", "8", "5", "-3"),
        (5, "d", "", "5", ""),
    ],
)
def test_a_difference_is_ours_less_the_printed_number(value, form, paper, ours, difference):
    finding = Finding("what", value, form, paper, "1 cell")
    assert (finding.ours, finding.difference) == (ours, difference)


def choice(difference, high, chosen="raw"):
    choice = {"difference": difference, "low": difference - 0.1, "high": high, "chosen": chosen}
    return dict.fromkeys(("tau 0", "paper", "auto"), choice)


def test_choices_are_counted_apart_for_the_other_sets():
    cells = {
        "birds-mlp-1-choices": choice(-0.05, -0.01),
        "flags-mlp-1-choices": choice(0.02, 0.05),
        "flags-mlp-r-choices": choice(-0.02, 0.01),
    }
    lines = {line[:2]: line[2:] for line in compare_rules_told(cells)}
    assert lines["all eleven", "paper"][:3] == ("2", "1", "-0.050 (birds-mlp-1)")
    assert lines["the other six", "auto"][:2] == ("1", "0")
    assert lines["the other six", "auto"][-1] == "2 of 60"


def test_a_set_whose_name_begins_like_one_of_the_eleven_is_not_taken_for_it():
    cells = {
        "birds-mlp-1-choices": choice(0.01, 0.02),
        "birds-2-mlp-1-choices": choice(-0.05, -0.01),
        "my-choices": {"n_labels": 9},
    }
    lines = {line[:2]: line[2:] for line in compare_rules_told(cells)}
    assert lines["all eleven", "paper"][-1] == "1 of 110"
    assert "the selection rules choose in 1 of 110" in write_page(cells, "paper")


def test_choices_of_the_grid_are_counted():
    cells = {
        "birds-mlp-1-choices": choice(0.0, 0.0, "isotonic-10"),
        "flags-mlp-1-choices": choice(0.0, 0.0, "isotonic-2"),
        "flags-mlp-r-choices": choice(0.0, 0.0, "pooled"),
        "flags-lightgbm-1-choices": choice(-0.1, -0.05, "raw"),
    }
    findings = told(cells)
    assert findings["per-label maps among the choices of the paper's rule"].value == 2
    assert findings["of these with the largest tau, 10"].value == 1
    assert findings["the paper's rule keeps raw on, of birds, medical, flags"].value == 1
    surely = "is below raw with an interval below 0, default LightGBM at w = 1"
    assert findings[f"sets where the paper's rule {surely}"].ours == "1 (flags)"


def test_a_pooled_map_below_raw_is_counted_at_two_weights_only():
    cells = {
        f"flags-mlp-{weight}": {"map": {"raw": 0.5, "pooled": 0.4, "isotonic": 0.5}}
        for weight in ("1", "sqrt")
    }
    finding = told(cells)["cells where the pooled map is more than 0.01 below raw"]
    assert (finding.value, finding.of) == (1, "1 of 110 cells")


def test_the_figure_has_a_panel_per_learner_and_a_row_per_data_set():
    cells = printed_cells()
    for data in TABLE_2:
        for weight in ("1", "r"):
            cells[f"{data}-mlp-{weight}"] = cells[f"{data}-lightgbm-{weight}"]
    rows = dose_rows(cells)
    assert [row.learner for row in rows] == ["lightgbm"] * 11 + ["mlp"] * 11
    figure = draw_doses(rows)
    assert [axis.get_title() for axis in figure.axes] == ["lightgbm", "mlp"]
    assert len(figure.axes[0].get_yticklabels()) == 11
    shaded = [patch for patch in figure.axes[0].patches if patch.get_alpha()]
    assert len(shaded) == 2  # corel5k and delicious keep less than half


def test_no_cells_give_an_empty_page_and_no_error():
    assert "0 of 0 entries" in write_page({}, "paper")
    assert "Finished: 0 of 220 cells" in write_page({}, "paper")
    assert draw_magnitudes([], ["1", "r"]).axes


@pytest.mark.parametrize("name", ["weighted", "repaired"])
def test_figure_rows_come_from_the_right_rungs(name):
    row = next(row for row in dose_rows(printed_cells()) if row.data == "delicious")
    column = {"weighted": "w=r raw", "repaired": "w=r isotonic"}[name]
    assert getattr(row, name) == float(TABLE_2["delicious"][column])


def dosed_cells(raws):
    """One data set under one learner, with these raw MAPs at the four weights."""
    cells = {"yeast": {"n_labels": 14, "popularity": 0.6}}
    for weight, raw in zip(WEIGHTS, raws, strict=True):
        if raw is not None:
            cells[f"yeast-mlp-{weight}"] = {"map": {"raw": raw, "isotonic": 0.5, "what-if": raw}}
    return cells


def test_the_page_says_which_cells_are_not_finished():
    text = write_page(dosed_cells([0.6, None, 0.4, None]), "paper")
    assert "Finished: 2 of 220 cells" in text
    assert "mlp at √r, 10r" in text
    assert "| yeast | 0.600 - 0.400 - |" in text


def test_a_set_left_out_by_the_paper_is_told_apart_and_counted_nowhere():
    cells = printed_cells()
    plain = write_page(cells, "paper")
    other = {"map": {"raw": 0.1234}, "auc": 0.8, "distinct": 5.0}
    page = write_page(cells | {"tmc": {"n_labels": 22}, "tmc-lightgbm-r": other}, "paper")
    assert "## Left out by the paper" not in plain
    before, after = page.split("## Left out by the paper")
    assert before.rstrip() == plain.rstrip()
    assert "| tmc | lightgbm | r | 0.123 | - | - | - | - | - | 0.800 |" in after


def test_a_dose_that_never_raises_the_map_is_bold():
    assert "| yeast | **0.600 0.500 0.500 0.100** |" in write_page(
        dosed_cells([0.6, 0.5, 0.5, 0.1]), "paper"
    )
    assert "| yeast | 0.600 0.500 0.501 0.100 |" in write_page(
        dosed_cells([0.6, 0.5, 0.501, 0.1]), "paper"
    )


def test_collapses_are_counted_at_each_weight():
    text = write_page(dosed_cells([0.6, 0.31, 0.29, 0.0]), "paper")
    assert "| raw | 0 of 1 | 0 of 1 | 1 of 1 | 1 of 1 |" in text
    assert "| repaired | 0 of 1 | 0 of 1 | 0 of 1 | 0 of 1 |" in text
    assert "| yeast | **0.48 → 0.83** |" in text


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_a_course_falls_if_and_only_if_it_is_sorted(values):
    assert falls_with_the_dose(values) == (values == sorted(values, reverse=True))
    assert not falls_with_the_dose([*values[:3], None])


def test_the_magnitude_figure_shows_shares_of_the_unweighted_map():
    cells = dosed_cells([0.6, 0.3, 0.15, None])
    figure = draw_magnitudes(magnitude_lines(cells), ["1", "sqrt", "r", "10r"])
    raw, repaired = figure.axes
    line = raw.lines[0]
    assert list(line.get_xdata()) == [0, 1, 2]
    assert list(line.get_ydata()) == pytest.approx([1, 0.5, 0.25])
    assert list(repaired.lines[0].get_ydata()) == pytest.approx([0.5 / 0.6] * 3)
    assert figure.legends[0].get_texts()[0].get_text() == "yeast"


def test_the_grid_has_a_row_per_cell_in_both_tables():
    cells = printed_cells()
    lines = write_grid(cells, "paper").splitlines()
    rows = [line for line in lines if line.split(" | ")[1:2] == ["lightgbm"]]
    assert len(rows) == 2 * 22
    weighted = next(row for row in rows if row.startswith("| corel5k | lightgbm | r |"))
    assert "| 0.000 | 0.001 | 0.164 |" in weighted  # raw, inversion, what-if


def test_the_careful_protocol_is_told_beside_the_papers():
    cells, careful = printed_cells(), printed_cells()
    cells["birds"]["n_labels"], careful["birds"]["n_labels"] = 15, 19
    careful["birds-lightgbm-r"]["map"]["raw"] = 0.55
    assert "careful protocol" not in write_page(cells, "paper")
    text = write_page(cells, "paper", careful)
    assert "| birds | 15 → 19 | 0.593 → 0.593 | 0.601 → 0.550 |" in text
    assert "-0.051 (birds, w=r raw)" in text
    assert "changes its sign on birds." in text
    assert "MAP@K: corel5k, delicious → corel5k, delicious." in text
    assert "### xgboost" not in text


def test_a_set_without_the_careful_protocol_is_named_with_its_collapse():
    cells, careful = printed_cells(), printed_cells()
    assert "Not trained" not in write_page(cells, "paper", careful)
    del careful["corel5k-lightgbm-r"], careful["yeast-lightgbm-1"]
    text = write_page(cells, "paper", careful)
    assert "Not trained under `clean`: yeast, corel5k. Under `paper`, corel5k collapsed." in text


def test_xgboost_under_the_careful_protocol_has_its_own_table():
    cells, careful = printed_cells(), printed_cells()
    for some, weighted in ((cells, 0.03), (careful, 0.99)):
        some["genbase-xgboost-1"] = {"map": dict(some["genbase-lightgbm-1"]["map"])}
        some["genbase-xgboost-r"] = {"map": some["genbase-lightgbm-r"]["map"] | {"raw": weighted}}
    text = write_page(cells, "paper", careful).partition("### xgboost")[2]
    assert "| 0.932 → 0.932 | 0.030 → 0.990 |" in text
    assert "MAP@K: genbase → none." in text


def test_the_page_names_the_folder_of_the_cells(tmp_path):
    publish(printed_cells(), "paper", results=Path("kept/here"), page=tmp_path / "m.md")
    text = (tmp_path / "m.md").read_text()
    assert "from the cells in `kept/here/mulan-paper.jsonl`." in text
    assert "experiments/results" not in text


def test_publishing_writes_both_pages_and_both_figures(tmp_path):
    publish(printed_cells(), "paper", page=tmp_path / "m.md", figure=tmp_path / "m.svg")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["m-cells.md", "m-doses.svg", "m.md", "m.svg"]
    assert all(path.stat().st_size for path in tmp_path.iterdir())


def test_every_learner_has_a_column():
    cells = printed_cells()
    for learner in LEARNERS:
        for weight in ("1", "r"):
            cells[f"yeast-{learner}-{weight}"] = cells[f"yeast-lightgbm-{weight}"]
    header = "| data set | " + " | ".join(LEARNERS) + " |"
    assert header in write_page(cells, "paper").splitlines()
