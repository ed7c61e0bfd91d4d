"""The paper's columns of Santander, against the text of a generated file."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.datasets.generators import generate_santander
from experiments.datasets.santander.columns import (
    CATEGORICAL,
    COLUMNS,
    DEMOGRAPHICS,
    MAX_CATEGORIES,
    MISSING,
    PRODUCTS,
)
from experiments.datasets.santander.reader import read_santander
from oddslip.errors import InvalidInput

N_NUMBERS = 29
PERIODS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return generate_santander(tmp_path_factory.mktemp("santander"), n_rows=20_000, seed=5)


@pytest.fixture(scope="module")
def rows(source, tmp_path_factory):
    return read_santander(source, tmp_path_factory.mktemp("cache"), features="paper")


@pytest.fixture(scope="module")
def own(source, tmp_path_factory):
    return read_santander(source, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def texts(source):
    """The kept rows of the file in the reader's order, as text; None where nothing is known."""
    table = pl.read_csv(source, infer_schema=False).with_columns(pl.col("ncodpers").cast(pl.Int64))
    order = ["ncodpers", "fecha_dato"]
    followed = pl.col("ncodpers").shift(-1) == pl.col("ncodpers")
    table = table.sort(order).filter(followed).sort("fecha_dato", "ncodpers")
    clean = pl.col(pl.String).str.strip_chars()
    return table.with_columns(pl.when(~clean.is_in(["", "NA"])).then(clean))


def columns_of(rows, column):
    """Places and categories of the features of a categorical column."""
    pairs = [(place, name.split("=")) for place, name in enumerate(rows.feature_names)]
    return {parts[1]: place for place, parts in pairs if len(parts) == 2 and parts[0] == column}


def select_categories(texts, n_train, column):
    """The most frequent categories of the training rows, counted slowly."""
    counts = {}
    for value in texts[column].fill_null(MISSING)[:n_train]:
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts, key=lambda value: (-counts[value], value))[:MAX_CATEGORIES]


def all_rows(rows):
    return np.concatenate([np.asarray(getattr(rows, period).X) for period in PERIODS])


def test_there_are_as_many_columns_as_categories_and_29_numbers(rows, texts):
    expected = [select_categories(texts, rows.train.n_rows, column) for column in CATEGORICAL]
    for column, categories in zip(CATEGORICAL, expected, strict=True):
        assert set(columns_of(rows, column)) == set(categories), column
    assert len(rows.feature_names) == sum(map(len, expected)) + N_NUMBERS
    assert len(set(rows.feature_names)) == len(rows.feature_names)
    assert rows.settings["features"] == "paper"


def test_a_category_is_one_hot_and_one_without_a_column_is_zero_everywhere(rows, texts):
    X = all_rows(rows)
    assert texts["nomprov"].n_unique() > MAX_CATEGORIES  # so some have no column
    n_one = np.zeros(len(X))
    for column in CATEGORICAL:
        values = texts[column].fill_null(MISSING).to_numpy()
        places = columns_of(rows, column)
        for category, place in places.items():
            assert_array_equal(X[:, place], values == category, err_msg=f"{column}={category}")
        n_one += np.isin(values, list(places))
    width = X.shape[1] - N_NUMBERS
    assert_array_equal(X[:, :width].sum(axis=1), n_one)
    assert n_one.max() == len(CATEGORICAL) == 11
    assert n_one.min() < 11


def test_numbers_of_training_rows_have_mean_0_and_deviation_1(rows):
    X = np.asarray(rows.train.X[:, -N_NUMBERS:], np.float64)
    assert_allclose(X.mean(axis=0), 0, atol=1e-5)
    deviation = X.std(axis=0)
    varies = deviation > 0
    assert varies.sum() > 20
    assert_allclose(deviation[varies], 1, atol=1e-5)


def test_numbers_are_standardised_by_training_rows_and_missing_ones_are_the_mean(rows, texts):
    X = all_rows(rows)[:, -N_NUMBERS:]
    names = ("age", "antiguedad", "ind_actividad_cliente", "renta", "cod_prov", *PRODUCTS)
    n_train = rows.train.n_rows
    for number, name in enumerate(names):
        values = texts[name].cast(pl.Float64).to_numpy().copy()
        values[values < 0] = np.nan  # a seniority of -999999
        if name in PRODUCTS:
            values = np.nan_to_num(values)  # a payroll that is not known counts as not held
        training = values[:n_train]
        filled = np.where(np.isnan(values), np.nanmean(training), values)
        deviation = filled[:n_train].std() or 1
        expected = (filled - filled[:n_train].mean()) / deviation
        assert_allclose(X[:, number], expected, rtol=1e-4, atol=1e-4, err_msg=name)
        assert (X[np.isnan(values), number] == 0).all(), name


def test_rows_labels_and_customers_are_those_of_our_own_columns(rows, own):
    for period in PERIODS:
        one, other = getattr(rows, period), getattr(own, period)
        assert_array_equal(one.Y.toarray(), other.Y.toarray())
        assert_array_equal(one.row_ids, other.row_ids)
    holds = [rows.feature_names.index(f"holds_{name}") for name in ("cco_fin", "recibo")]
    same = [own.feature_names.index(f"holds_{name}") for name in ("cco_fin", "recibo")]
    assert_array_equal(rows.test.X[:, holds] > 0, own.test.X[:, same] == 1)


def test_later_months_change_no_column_of_the_training_rows(rows, source, tmp_path):
    table = pl.read_csv(source, infer_schema=False)
    last = pl.col("fecha_dato") == table["fecha_dato"].max()
    changed = table.with_columns(
        pl.when(last).then(pl.lit("ATLANTIS")).otherwise(pl.col("nomprov")).alias("nomprov"),
        pl.when(last).then(pl.lit("120")).otherwise(pl.col("age")).alias("age"),
    )
    changed.select(COLUMNS).write_csv(tmp_path / "train_ver2.csv")
    again = read_santander(tmp_path, tmp_path / "cache", features="paper")
    assert again.feature_names == rows.feature_names
    assert_array_equal(again.train.X, rows.train.X)


def test_a_second_reading_gives_the_same_and_leaves_our_own_columns_alone(source, own, tmp_path):
    one, other = (read_santander(source, tmp_path, features="paper") for _ in range(2))
    assert isinstance(other.train.X, np.memmap)
    assert_array_equal(one.test.X, other.test.X)
    assert read_santander(source, tmp_path).feature_names == own.feature_names


def test_the_papers_columns_need_demographics(source, tmp_path):
    bare = pl.read_csv(source, infer_schema=False).drop(DEMOGRAPHICS)
    bare.write_csv(tmp_path / "bare.csv")
    with pytest.raises(InvalidInput, match="must have demographic columns"):
        read_santander(tmp_path / "bare.csv", tmp_path, features="paper")
    with pytest.raises(InvalidInput, match="demographics must not be False"):
        read_santander(source, tmp_path, features="paper", demographics=False)
    with pytest.raises(InvalidInput, match='features must be "own" or "paper"'):
        read_santander(source, tmp_path, features="209")
