"""Regularities and the page are computed from cells, not asserted."""

import pytest

from oddslip.reports.dose_figures import draw_doses
from oddslip.studies.mulan_pages import dose_rows, write_page
from oddslip.studies.mulan_paper import COLUMNS, TABLE_2
from oddslip.studies.mulan_regularities import find_regularities
from oddslip.studies.mulan_tables import compare_table_2


def printed_cells():
    """Cells that hold just what the paper prints, for the default learner."""
    cells = {}
    for data, row in TABLE_2.items():
        told = {column: float(text) for column, text in row.items()}
        cells[data] = {c: told[c] for c in COLUMNS if not c.startswith("w=")}
        for weight in ("1", "r"):
            own = {c.split(" ", 1)[1]: v for c, v in told.items() if c.startswith(f"w={weight}")}
            distinct = own.pop("distinct")
            pooled = {"pooled": own["raw"]}
            cells[f"{data}-lightgbm-{weight}"] = {"map": own | pooled, "distinct": distinct}
    return cells


def told(cells):
    return {finding.what: finding for finding in find_regularities(cells)}


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
    found = told(printed_cells())
    collapsed = found["(i) cells at w = r that keep less than 0.5 of their unweighted MAP"]
    assert (collapsed.ours, collapsed.of) == ("2", "11 of 55 cells")
    modest = found["(ii) change at w = r where max r < 100, default LightGBM"]
    assert modest.ours == modest.paper == "-0.041 to -0.001"
    close = found[
        "(iii) data sets whose what-if is within 0.03 of the trained model, default LightGBM"
    ]
    assert close.ours == close.paper == "8"


def test_choices_are_counted_apart_for_the_other_sets():
    cells = {
        "birds-mlp-1-choices": choice(-0.05, -0.01),
        "flags-mlp-1-choices": choice(0.02, 0.05),
        "flags-mlp-r-choices": choice(-0.02, 0.01),
    }
    found = told(cells)
    everywhere = found["selection, all data sets, rule paper: cells more than 0.01 below raw"]
    assert everywhere.ours.startswith("2 below (1 with an interval below 0), worst -0.050 (birds")
    apart = found["selection, the other six, rule auto: cells more than 0.01 below raw"]
    assert apart.ours.startswith("1 below (0 with")
    assert apart.of == "2 of 60 cells"


def choice(difference, high):
    return {rule: {"difference": difference, "high": high} for rule in ("tau 0", "paper", "auto")}


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


@pytest.mark.parametrize("name", ["weighted", "repaired"])
def test_figure_rows_come_from_the_right_rungs(name):
    row = next(row for row in dose_rows(printed_cells()) if row.data == "delicious")
    wanted = {"weighted": "w=r raw", "repaired": "w=r isotonic"}[name]
    assert getattr(row, name) == float(TABLE_2["delicious"][wanted])
