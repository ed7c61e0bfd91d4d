"""Dead products: expected by a closed form, counted in carts."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from experiments import dead_products
from experiments.dead_products import (
    dead_product_lines,
    expect_dead,
    find_carts,
    measure_carts,
    read_carts,
)


def test_the_expected_number_of_dead_labels_is_that_of_all_splits():
    Y = np.random.default_rng(0).random((9, 5)) < 0.3
    splits = [Y[list(rows)] for rows in combinations(range(9), 3)]
    mean = np.mean([(~split.any(axis=0)).sum() for split in splits])
    expected, _ = expect_dead(Y.sum(axis=0), 9, 3.5 / 9)
    assert expected == pytest.approx(mean, abs=1e-6)


def test_the_deviation_of_one_label_is_that_of_all_splits():
    y = np.arange(9) < 2
    dead = [not y[list(rows)].any() for rows in combinations(range(9), 3)]
    _, deviation = expect_dead(np.array([2]), 9, 3.5 / 9)
    assert deviation == pytest.approx(np.std(dead), abs=1e-6)


@pytest.fixture
def carts(tmp_path):
    """Three carts of four products; the last product is in none."""
    lines = [(7, 10), (7, 30), (3, 10), (5, 20)]
    pl.DataFrame(lines, schema=["order_id", "product_id"], orient="row").write_parquet(
        tmp_path / dead_products.FILES["carts"]
    )
    pl.DataFrame({"product_id": [40, 10, 20, 30]}).write_csv(
        tmp_path / dead_products.FILES["products"]
    )
    return find_carts(tmp_path)


def test_every_line_of_a_cart_is_a_cell_and_a_product_in_no_cart_is_a_column(carts):
    assert read_carts(carts).toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]]


def test_only_the_most_frequent_products_are_counted_where_that_is_asked(carts, monkeypatch):
    monkeypatch.setattr(dead_products, "N_FREQUENT", 1)
    cell = measure_carts(carts)
    assert (cell["n_rows"], cell["n_products"]) == (3, 4)
    assert {each["max"] for each in cell["frequent"]} == {1}
    assert min(each["min"] for each in cell["all"]) >= 2


def test_popularity_lists_the_most_frequent_products_first_in_every_row(carts):
    # In order: 10 (twice), 20, 30, 40. Carts have 10; 20; 10 and 30.
    values = [1, 1 / 2, (1 + 2 / 3) / 2]
    assert measure_carts(carts)["popularity"]["all"] == pytest.approx(np.mean(values))


def test_without_the_carts_the_page_has_what_needs_no_row(tmp_path):
    assert find_carts(tmp_path) is None
    page = "\n".join(dead_product_lines({}))
    assert "| Santander, expected | 13.7 / 14.4 |" in page
    assert "Instacart" not in page
