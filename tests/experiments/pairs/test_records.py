"""Tables as files hold the numbers of the cells, every digit of them."""

import csv
import json

from experiments.pairs.records import all_records, write_tables
from experiments.pairs.tables import cap_rows, draw_values, table_one


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_and_json_say_the_same(cells, tmp_path):
    paths = write_tables(cells, "products", tmp_path / "new")
    tables = sorted({path.stem for path in paths})
    assert len(paths) == 2 * len(tables)
    for name in tables:
        records = json.loads((tmp_path / f"new/{name}.json").read_text())
        rows = read_csv(tmp_path / f"new/{name}.csv")
        assert len(rows) == len(records) > 0
        for row, record in zip(rows, records, strict=True):
            for column, text in row.items():
                value = record.get(column)
                if isinstance(value, float):
                    assert float(text) == value
                else:
                    assert text == ("" if value is None else str(value))


def test_table_one_is_kept_with_every_digit(cells, tmp_path):
    write_tables(cells, "products", tmp_path)
    for row in read_csv(tmp_path / "table-1.csv"):
        for column, values in table_one(cells).items():
            value = values[row["row"]]
            assert row[column] == ("" if value is None else repr(value))


def test_every_rung_of_every_arm_stands_in_the_ladders(cells):
    arms = {key: cell for key, cell in cells.items() if "test-split" in cell}
    ladders = all_records(cells, "products")["ladders"]
    assert len(ladders) == sum(
        len(cell[protocol]["ladder"]["rungs"])
        for cell in arms.values()
        for protocol in ("test-split", "deployment")
    )
    for record in ladders:
        rung = arms[record["arm"]][record["protocol"]]["ladder"]["rungs"][record["rung"]]
        assert record["map low"] == rung["map"]["low"]
        less = rung["minus_raw"]
        assert record["less raw value"] == (None if less is None else less["value"])


def test_losses_shifts_and_choices_have_a_record_for_each_arm(cells):
    records = all_records(cells, "products")
    weighted = [key for key, cell in cells.items() if "reordered" in cell]
    assert {record["arm"] for record in records["losses"]} == set(weighted)
    by_twin = [r["ties by the twin"] for r in records["losses"] if r["protocol"] == "deployment"]
    assert by_twin == [cells[key]["reordered"]["by_twin"]["share"] for key in weighted]
    assert {r["arm"] for r in records["shifts"]} == {k for k, c in cells.items() if "auc" in c}
    assert len(records["choices"]) == 2 * sum(key.startswith("choices-") for key in cells)


def test_figures_and_sweeps_are_the_rows_they_are_drawn_from(cells):
    records = all_records(cells, "products")
    assert [record["cap"] for record in records["figure-1b"]] == [r["cap"] for r in cap_rows(cells)]
    assert records["caps"] == cap_rows(cells)
    assert {r["quantity"]: r["n"] for r in records["draws"]} == {
        name: len(values) for name, values in draw_values(cells).items()
    }
    stages = sum(len(cell["stages"]) for cell in cells.values())
    assert len(records["costs"]) == stages


def test_one_draw_has_no_deviation_and_no_cell_no_file(cells, tmp_path):
    for key in [key for key in cells if "draw-2" in key]:
        del cells[key]
    assert {record["sd"] for record in all_records(cells, "products")["draws"]} == {None}
    assert [path.stem for path in write_tables({}, "products", tmp_path)] == []
