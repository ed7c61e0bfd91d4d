"""Tables come from the right rungs of the right cells."""

import statistics

import pytest

from experiments.pairs.paper import COLUMNS, ROWS, TABLE_1
from experiments.pairs.tables import (
    cap_rows,
    dose_rows,
    draw_rows,
    format_entry,
    format_table_one,
    split_rows,
    table_one,
)


def rung(cells, key, name, protocol="test-split"):
    return cells[key][protocol]["ladder"]["rungs"][name]["map"]["value"]


def test_table_one_has_both_columns_of_each_pair(cells):
    table = table_one(cells)
    assert tuple(table) == COLUMNS
    weighted = table["lightgbm w=r"]
    assert weighted["raw score"] == rung(cells, "lightgbm-r", "raw")
    assert weighted["analytic inversion"] == rung(cells, "lightgbm-r", "inversion")
    assert weighted["per-label isotonic, prior"] == rung(cells, "lightgbm-r", "isotonic")
    assert weighted["pooled isotonic"] == rung(cells, "lightgbm-r", "pooled")
    assert weighted["ceiling"] == rung(cells, "lightgbm-r", "ceiling", "deployment")
    assert table["mlp w=1"]["analytic inversion"] is None
    assert table["mlp w=1"]["popularity"] == weighted["popularity"]


def test_the_twins_column_is_the_twin_of_the_weighted_ladder(cells):
    for learner in ("lightgbm", "mlp"):
        assert table_one(cells)[f"{learner} w=1"]["raw score"] == pytest.approx(
            rung(cells, f"{learner}-r", "unweighted"), abs=1e-12
        )


def test_what_is_not_finished_has_no_column(cells):
    del cells["mlp-1"]
    assert tuple(table_one(cells)) == ("lightgbm w=r", "lightgbm w=1", "mlp w=r")
    assert table_one({}) == {}


def test_the_paper_stands_beside_ours_only_where_asked(cells):
    alone, beside = format_table_one(cells), format_table_one(cells, TABLE_1["santander"])
    assert "0.117" not in alone
    raw = table_one(cells)["lightgbm w=r"]["raw score"]
    assert f"{raw:.3f} (0.117, {raw - 0.117:+.3f})" in beside


def test_the_papers_table_is_read_as_printed():
    assert TABLE_1["instacart"]["mean within-label AUC"]["mlp w=1"] == "0.424"
    assert TABLE_1["santander"]["analytic inversion"]["mlp w=1"] == "--"
    for study in TABLE_1.values():
        for row, entries in study.items():
            assert all(e == "--" or format_entry(row, float(e)) == e for e in entries.values())
    assert list(TABLE_1["santander"]) == list(ROWS)


def test_caps_come_with_their_budget_and_their_twin(cells):
    rows = {row["cap"]: row for row in cap_rows(cells)}
    assert list(rows) == [0.3, 5, None]
    assert rows[0.3]["budget"] == pytest.approx(0.9)
    assert rows[None]["budget"] is None
    assert rows[5]["twin isotonic"] == rung(cells, "lightgbm-1-cap-5", "isotonic")
    assert rows[5]["raw"] == rung(cells, "lightgbm-r-cap-5", "raw")


def test_doses_run_from_no_weight_to_ten_times_r(cells):
    assert [row["weight"] for row in dose_rows(cells, "mlp")] == ["1", "sqrt", "r", "10r"]


def test_draws_are_averaged_with_their_deviation(cells):
    row = draw_rows(cells)["w=r isotonic"]
    values = [rung(cells, f"lightgbm-r-draw-{draw}", "isotonic") for draw in (1, 2)]
    assert row == pytest.approx(
        {"mean": statistics.mean(values), "sd": statistics.stdev(values), "n": 2}
    )


def test_splits_stand_beside_one_another(cells):
    header, *rows = split_rows(cells)
    arms = ["lightgbm-r", "lightgbm-1", "mlp-r", "mlp-1"]
    assert header[4:] == [f"{arm}{end}" for arm in arms for end in ("", ", pooled", ", raw")]
    assert [row[0] for row in rows] == [0.003, 0.01, 0.03, 0.1, 0.3]
    assert rows[-1][4] == cells["splits-lightgbm-r"]["splits"][-1]["map"]
