"""Santander: quirks of the file, periods, cache, refusals, and the public samples."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import vstack

from experiments.datasets.santander.columns import (
    COLUMNS,
    DEMOGRAPHICS,
    FLAGS,
    PRODUCTS,
    name_features,
)
from experiments.datasets.santander.features import build_features, read_histories
from experiments.datasets.santander.reader import cut_rows, read_santander
from experiments.datasets.santander.rows import check_csv, write_rows
from experiments.datasets.santander.sample import read_santander_sample
from oddslip.errors import InvalidInput, UnreadableFile

NAMES = name_features(demographics=True)

# One row of Kaggle's file, with its padding.
PLAIN = {
    "fecha_dato": "2015-01-28",
    "ncodpers": "1375586",
    "ind_empleado": "N",
    "pais_residencia": "ES",
    "sexo": "H",
    "age": " 35",
    "fecha_alta": "2015-01-12",
    "ind_nuevo": " 0",
    "antiguedad": "      6",
    "indrel": " 1",
    "ult_fec_cli_1t": "",
    "indrel_1mes": "1.0",
    "tiprel_1mes": "A",
    "indresi": "S",
    "indext": "N",
    "conyuemp": "",
    "canal_entrada": "KHL",
    "indfall": "N",
    "tipodom": " 1",
    "cod_prov": "29",
    "nomprov": "MALAGA",
    "ind_actividad_cliente": " 1",
    "renta": "87218.1",
    "segmento": "02 - PARTICULARES",
    **dict.fromkeys(PRODUCTS, "0"),
}


def csv_line(cells, columns=COLUMNS):
    quoted = (f'"{cells[name]}"' if "," in cells[name] else cells[name] for name in columns)
    return ",".join(quoted) + "\n"


def write_csv(path, rows, columns=COLUMNS):
    head = ",".join(f'"{name}"' for name in columns) + "\n"
    path.write_text(head + "".join(csv_line({**PLAIN, **row}, columns) for row in rows))
    return path


def many_rows(n_customers=4, months=3):
    return [
        {"ncodpers": str(customer), "fecha_dato": f"2015-{month + 1:02}-28"}
        for month in range(months)
        for customer in range(n_customers)
    ]


def features_of(tmp_path, *rows):
    """Features of single rows, by name."""
    numbered = [{"ncodpers": str(number), **row} for number, row in enumerate(rows)]
    source = write_csv(tmp_path / "rows.csv", numbered)
    write_rows(source, tmp_path / "rows.parquet", demographics=True)
    X = build_features(read_histories(tmp_path / "rows.parquet"))
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


# --- quirks of the file -----------------------------------------------------------------------


def test_padded_and_missing_numbers_are_read(tmp_path):
    plain, empty = features_of(
        tmp_path, {}, {"age": " NA", "antiguedad": "     NA", "renta": "NA", "cod_prov": "NA"}
    )
    assert (plain["age"], plain["seniority"], plain["province"]) == (35, 6, 29)
    assert_allclose(plain["log_income"], np.log1p(87218.1), rtol=1e-6)
    for name in ("age", "seniority", "income", "province"):
        assert (plain[f"{name}_missing"], empty[f"{name}_missing"]) == (0, 1)
        assert empty[name if name != "income" else "log_income"] == 0


def test_a_seniority_of_minus_999999_is_not_known(tmp_path):
    (row,) = features_of(tmp_path, {"antiguedad": "-999999"})
    assert (row["seniority"], row["seniority_missing"]) == (0, 1)


@pytest.mark.parametrize("text", ["1", "1.0", " 1"])
def test_a_status_of_1_is_the_same_in_every_spelling(tmp_path, text):
    (row,) = features_of(tmp_path, {"indrel_1mes": text})
    assert (row["status_primary"], row["status_potential"]) == (1, 0)


def test_a_potential_customer_is_no_primary_one(tmp_path):
    (row,) = features_of(tmp_path, {"indrel_1mes": "P"})
    assert (row["status_primary"], row["status_potential"]) == (0, 1)


def test_each_flag_is_1_for_its_values_and_0_where_nothing_is_known(tmp_path):
    for flag in FLAGS:
        texts = [f"{value} - X" if flag.column == "segmento" else value for value in flag.values]
        *values, unknown = features_of(tmp_path, *({flag.column: t} for t in [*texts, ""]))
        assert [row[flag.name] for row in values] == [1] * len(texts), flag.name
        assert unknown[flag.name] == 0, flag.name


def test_codes_keep_their_order_and_missing_ones_are_0(tmp_path):
    rows = features_of(tmp_path, *({"canal_entrada": t} for t in ("013", "KAT", "KHE", "RED", "")))
    places = [row["channel_place"] for row in rows]
    assert places[4] == 0
    assert places[:4] == sorted(places[:4])
    assert len(set(places)) == 5
    assert max(places) <= 1


@pytest.mark.parametrize("text", ["NA", " NA", ""])
def test_a_payroll_that_is_not_known_counts_as_not_held(tmp_path, text):
    (row,) = features_of(tmp_path, {"ind_nomina_ult1": text, "ind_cco_fin_ult1": " 1"})
    assert (row["holds_nomina"], row["holds_cco_fin"], row["n_held"]) == (0, 1, 1)


def test_a_name_with_a_comma_shifts_no_column(tmp_path):
    (row,) = features_of(tmp_path, {"nomprov": "CORUÑA, A", "ind_recibo_ult1": "1"})
    assert row["holds_recibo"] == 1


# --- the whole way ----------------------------------------------------------------------------


def test_the_papers_counts_come_out_of_the_rows_that_have_a_following_row():
    # 13,647,309 rows of 956,645 customers, of each of whom the last row has no following one.
    start, end = cut_rows(13_647_309 - 956_645)
    n = 12_690_664
    assert (start, end - start, n - end) == (8_248_933, 1_903_599, 2_538_132)


@given(st.integers(7, 10**8))
def test_periods_have_65_15_and_20_percent_of_the_rows(n):
    start, end = cut_rows(n)
    for count, percent in zip((start, end - start, n - end), (65, 15, 20), strict=True):
        assert abs(count - n * percent / 100) < 2
        assert count > 0


def test_no_later_month_stands_in_an_earlier_period(tmp_path):
    rows = many_rows(9, 8)
    read = read_santander(write_csv(tmp_path / "train_ver2.csv", rows), tmp_path / "cache")
    month = NAMES.index("month")
    months = [period.X[:, month] for period in (read.train, read.validation, read.test)]
    assert (np.diff(np.concatenate(months)) >= 0).all()
    assert sum(map(len, months)) == 9 * 7


def test_the_order_of_the_lines_does_not_matter(tmp_path):
    rows = many_rows()
    rows[5]["ind_recibo_ult1"] = "1"
    one = read_santander(write_csv(tmp_path / "a.csv", rows), tmp_path / "cache")
    other = read_santander(write_csv(tmp_path / "b.csv", rows[::-1]), tmp_path / "cache")
    for name in ("train", "validation", "test"):
        a, b = getattr(one, name), getattr(other, name)
        assert_array_equal(a.X, b.X)
        assert_array_equal(a.Y.toarray(), b.Y.toarray())
        assert_array_equal(a.row_ids, b.row_ids)


def test_features_are_memory_mapped_and_a_second_reading_gives_the_same(tmp_path):
    source = write_csv(tmp_path / "train_ver2.csv", many_rows())
    one, other = (read_santander(tmp_path, tmp_path / "cache") for _ in range(2))
    assert isinstance(other.train.X, np.memmap)
    assert_array_equal(one.test.X, other.test.X)
    assert one.settings == other.settings
    assert one.settings["n_customers"] == one.settings["n_rows_without_following"] == 4
    assert list(one.sha256) == [source.name]


def test_a_folder_may_be_named_like_a_pattern(tmp_path):
    odd = tmp_path / "[a]* ?{b}"
    odd.mkdir()
    write_csv(odd / "train_ver2.csv", many_rows())
    assert read_santander(odd, odd / "cache").settings["n_rows_read"] == 12


def test_damaged_rows_in_the_cache_are_made_anew(tmp_path):
    source, cache = write_csv(tmp_path / "train_ver2.csv", many_rows()), tmp_path / "cache"
    one = read_santander(source, cache)
    expected = np.array(one.train.X)
    (features_file,) = cache.glob("*/X.npy")
    features_file.write_bytes(features_file.read_bytes()[:-8])
    assert_array_equal(read_santander(source, cache).train.X, expected)


def test_without_demographics_only_the_history_is_told(tmp_path):
    columns = [name for name in COLUMNS if name not in DEMOGRAPHICS]
    source = write_csv(tmp_path / "labels_only.csv", many_rows(), columns)
    bare = read_santander(source, tmp_path / "cache")
    full = write_csv(tmp_path / "train_ver2.csv", many_rows())
    chosen = read_santander(full, tmp_path / "cache", demographics=False)
    assert bare.feature_names == chosen.feature_names == NAMES[: len(bare.feature_names)]
    assert_array_equal(bare.train.X, chosen.train.X)
    with pytest.raises(InvalidInput, match="demographic columns"):
        read_santander(source, tmp_path / "cache", demographics=True)


# --- refusals ---------------------------------------------------------------------------------


def test_a_missing_file_is_told_with_where_to_get_it(tmp_path):
    with pytest.raises(UnreadableFile, match=r"train_ver2\.csv.*Kaggle.*Santander Product"):
        read_santander(tmp_path)


def test_a_foreign_file_is_told_by_its_name(tmp_path):
    (tmp_path / "foreign.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UnreadableFile, match=r"foreign\.csv.*without fecha_dato"):
        read_santander(tmp_path / "foreign.csv", tmp_path / "cache")


def test_a_file_without_rows_is_refused(tmp_path):
    with pytest.raises(UnreadableFile, match="rows below its header"):
        check_csv(write_csv(tmp_path / "empty.csv", []))


def test_some_demographic_columns_are_not_enough(tmp_path):
    columns = [name for name in COLUMNS if name != "renta"]
    with pytest.raises(UnreadableFile, match="without renta"):
        check_csv(write_csv(tmp_path / "half.csv", many_rows(), columns))


def test_a_file_cut_within_its_last_line_is_refused(tmp_path):
    source = write_csv(tmp_path / "cut.csv", many_rows())
    source.write_bytes(source.read_bytes()[:-10])
    with pytest.raises(UnreadableFile, match=r"cut\.csv.*cut short"):
        read_santander(source, tmp_path / "cache")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ind_recibo_ult1": "2"}, "ind_recibo_ult1 must be 0, 1 or NA, got '2' in row 6"),
        ({"ind_recibo_ult1": ""}, "ind_recibo_ult1 must be 0, 1 or NA, got nothing in row 6"),
        ({"fecha_dato": "28/01/2015"}, "fecha_dato must be a date such as 2015-01-28, got '28/01"),
        ({"ncodpers": "x"}, "ncodpers must be a customer number, got 'x' in row 6"),
    ],
)
def test_a_row_that_can_not_be_read_is_told_by_its_number(tmp_path, changes, message):
    rows = many_rows()
    rows[5] |= changes
    source = write_csv(tmp_path / "train_ver2.csv", rows)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        read_santander(source, tmp_path / "cache")


def test_two_rows_of_a_customer_in_a_month_are_refused(tmp_path):
    source = write_csv(tmp_path / "train_ver2.csv", [*many_rows(), many_rows()[5]])
    with pytest.raises(InvalidInput, match="two of customer 1 in 2015-02"):
        read_santander(source, tmp_path / "cache")


def test_too_few_rows_to_cut_are_refused(tmp_path):
    source = write_csv(tmp_path / "train_ver2.csv", many_rows(2, 3))
    with pytest.raises(InvalidInput, match="at least 7 rows"):
        read_santander(source, tmp_path / "cache")


def test_an_unknown_following_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match='following must be "row" or "month"'):
        read_santander(tmp_path, following="week")


# --- the genuine samples ----------------------------------------------------------------------


def test_the_sample_has_549_additions_in_449_of_12373_rows(genuine):
    rows = read_santander_sample(genuine("santander").parent)
    text = rows.describe()
    assert text["rows"] == {"train": 8044, "validation": 1855, "test": 2474}
    assert sum(text["true_cells"].values()) == 549
    assert sum(text["rows_with_a_true_label"].values()) == 449
    assert (rows.n_labels, len(rows.feature_names)) == (24, 418)
    months = [period.X[:, -1] for period in (rows.train, rows.validation, rows.test)]
    assert (np.diff(np.concatenate(months)) >= 0).all()


def test_the_sample_keeps_rows_labels_and_customers_together(genuine):
    rows = read_santander_sample(genuine("santander"))
    parts = (rows.train, rows.validation, rows.test)
    Y = vstack([part.Y for part in parts]).toarray()
    X = np.vstack([part.X for part in parts])
    products = X[:, [rows.feature_names.index(name) for name in PRODUCTS]]
    assert not (products * Y).any()  # nothing is added that was held the month before
    raw = pl.read_csv(genuine("santander") / "sample_Y_12373.csv")
    pairs = raw.sort("fecha_dato", "row")
    assert_array_equal(np.concatenate([part.row_ids for part in parts]), pairs["D.ncodpers"])
    assert_array_equal(Y, pairs.select([f"{name}D" for name in PRODUCTS]).to_numpy())
    ages = pl.read_csv(genuine("santander") / "sample_X_12373.csv").sort("fecha_dato", "row")["age"]
    assert_array_equal(X[:, rows.feature_names.index("age")], ages)
    assert np.isfinite(X).all()


def test_the_raw_sample_without_demographics_is_read(tmp_path, genuine):
    source = genuine("santander") / "train_ver2_sample_50k_labels_only.csv"
    rows = read_santander(source, tmp_path)
    assert rows.settings["n_rows_read"] == 50_000
    # A row is kept for each customer's row but the last.
    customers = pl.read_csv(source)["ncodpers"].n_unique()
    assert sum(rows.describe()["rows"].values()) == 50_000 - customers == 1_297


def test_a_sample_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UnreadableFile, match=r"sample_X_12373\.csv"):
        read_santander_sample(tmp_path)
