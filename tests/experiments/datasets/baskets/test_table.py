"""Any Parquet file of lines (user, order, item) becomes rows, or one line that says why not."""

import datetime
import sys

import numpy as np
import polars as pl
import pytest

from experiments.datasets.baskets.table import read_baskets
from oddslip.errors import InvalidInput, MissingDependency, UnreadableFile

LINES = pl.DataFrame(
    [
        (user, order, item)
        for user, n_orders in ((3, 5), (1, 4), (2, 3))
        for order in range(n_orders)
        for item in {(user + order) % 4, 4 + order % 2, 6}
    ],
    schema=["user", "order", "item"],
    orient="row",
)
ITEMS = pl.DataFrame({"item": range(9), "name": list("abcdefghi"), "aisle": [0, 1, 2] * 3})


@pytest.fixture
def read(tmp_path):
    def read(lines=LINES, n_labels=3, items=None, **settings):
        path = tmp_path / "purchases.parquet"
        lines.write_parquet(path)
        if items is not None:
            items.write_parquet(tmp_path / "items.parquet")
            settings["items"] = tmp_path / "items.parquet"
        return read_baskets(path, n_labels, cache=tmp_path / "cache", **settings)

    return read


def same(A, B):
    return all(
        (getattr(a, part) != getattr(b, part)).nnz == 0
        for a, b in zip(
            (A.train, A.validation, A.test), (B.train, B.validation, B.test), strict=True
        )
        for part in ("X", "Y")
    )


def with_moments(lines, days=5.0):
    first = pl.col("order") == 0
    return lines.with_columns(
        dow=pl.col("order") % 7,
        hour=pl.lit(9),
        days_since_prior=pl.when(~first).then(pl.lit(days)),
    )


def test_rows_are_users_by_id_and_users_with_few_orders_are_left_out_and_counted(read):
    rows = read()
    for period in (rows.train, rows.validation, rows.test):
        assert period.row_ids.tolist() == [1, 3]
    assert rows.settings["n_users_left_out"] == 1
    assert rows.settings["n_users"] == 3
    assert rows.name == "purchases"
    assert list(rows.sha256) == ["purchases.parquet"]


def test_the_order_of_the_lines_in_the_file_does_not_matter(read):
    shuffled = LINES.sample(fraction=1, shuffle=True, seed=1)
    assert same(read(), read(shuffled))


def test_orders_may_be_numbers_with_gaps_or_dates(read):
    start = datetime.date(2020, 2, 27)
    dated = LINES.with_columns(
        pl.col("order").map_elements(
            lambda n: start + datetime.timedelta(days=3 * n), return_dtype=pl.Date
        )
    )
    assert same(read(), read(dated))
    assert same(read(), read(LINES.with_columns(pl.col("order") * 10 - 7)))


def test_users_and_items_may_be_text_of_any_kind(read):
    hostile = {0: "../x", 1: "a,b\n", 2: "Ünïcødé 🛒", 3: "<b>", 4: "'", 5: '"', 6: "%s{}"}
    named_lines = LINES.with_columns(
        pl.col("item").replace_strict(hostile, return_dtype=pl.String),
        pl.format("user {}", "user").alias("user"),
    )
    rows = read(named_lines, None)
    assert sorted(rows.label_names) == sorted(hostile.values())
    assert rows.train.row_ids.tolist() == ["user 1", "user 3"]
    assert rows.train.Y.nnz == read(LINES, None).train.Y.nnz


def test_labels_stand_in_the_order_of_item_ids_not_of_popularity(read):
    rows = read(n_labels=3)
    assert list(rows.label_names) == sorted(rows.label_names)
    assert rows.positives.tolist() != sorted(rows.positives.tolist(), reverse=True)


def test_none_takes_all_items_and_a_list_of_items_may_hold_more_than_were_bought(read):
    assert read(n_labels=None).n_labels == 7
    rows = read(n_labels=None, items=ITEMS)
    assert rows.label_names == tuple("abcdefghi")
    assert read(n_labels=9, items=ITEMS).n_labels == 9


def test_items_of_one_name_stay_different_labels(read):
    rows = read(n_labels=None, items=ITEMS.with_columns(name=pl.lit("tea")))
    assert rows.label_names[:2] == ("tea (0)", "tea (1)")


def test_moments_of_orders_become_features(read):
    rows = read(with_moments(LINES))
    assert rows.feature_names[-4:] == (
        "days since prior order",
        "mean days between orders",
        "day of week",
        "hour of day",
    )
    np.testing.assert_array_equal(rows.test.X[:, -4:].toarray(), [[5, 5, 3, 9], [5, 5, 4, 9]])


def test_settings_of_the_same_file_are_kept_apart(read):
    assert [read(n_labels=n).n_labels for n in (2, 3, 2)] == [2, 3, 2]
    assert read(name="other").name == "other"


@pytest.mark.parametrize("n_labels", [0, -1, 2.5, True, "many"])
def test_a_senseless_number_of_labels_is_refused(read, n_labels):
    with pytest.raises(InvalidInput, match="n_labels must be a number of items"):
        read(n_labels=n_labels)


def test_more_labels_than_items_of_training_baskets_are_refused(read):
    with pytest.raises(InvalidInput, match="n_labels must be at most 5, the items bought in train"):
        read(n_labels=100)
    with pytest.raises(InvalidInput, match="n_labels must be at most 9, the items, got"):
        read(n_labels=100, items=ITEMS)


def test_without_a_user_of_four_orders_there_are_no_rows(read):
    with pytest.raises(InvalidInput, match=r"at least one user must have 4 orders.*at most 3"):
        read(LINES.filter(pl.col("order") < 3))


WRONG = {
    "no column item among 'user', 'order', 'thing'": LINES.rename({"item": "thing"}),
    "whole numbers or text as user": LINES.with_columns(pl.col("user") * 0.5),
    "whole numbers, dates or times as order": LINES.with_columns(pl.format("{}", "order")),
    "a value in every item, got 1 without": LINES.with_columns(
        pl.when(pl.int_range(pl.len()) != 4).then("item")
    ),
    "an item at most once in an order": pl.concat([LINES, LINES[7:8]]),
    "at least one order": LINES.clear(),
    "numbers as dow": LINES.with_columns(dow=pl.lit("monday")),
    "one dow for all lines of user '3', order 1 in time": LINES.with_columns(
        dow=pl.when(pl.int_range(pl.len()) == 1).then(1).otherwise(2)
    ),
    "a number as hour of user '1', order 1 in time": LINES.with_columns(hour=pl.lit(None, pl.Int8)),
    "a number as days_since_prior of user '1', order 2 in time": with_moments(LINES, None).cast(
        {"days_since_prior": pl.Float32}
    ),
    "a number as days_since_prior of user '1', order 2": with_moments(LINES, float("inf")),
}


@pytest.mark.parametrize("expected", WRONG)
def test_a_wrong_table_is_refused_with_the_file_and_the_reason(read, expected):
    with pytest.raises(UnreadableFile) as caught:
        read(WRONG[expected])
    message = str(caught.value)
    assert "purchases.parquet must have" in message or "purchases.parquet must hold" in message
    assert "\n" not in message
    if expected.startswith("no column"):
        assert "got none named item among 'user', 'order', 'thing'" in message
    else:
        assert expected in message


def test_an_item_that_is_not_in_the_list_is_refused(read):
    with pytest.raises(UnreadableFile, match=r"items of .*items.parquet only, got item '[56]'"):
        read(items=ITEMS.head(5))


def test_a_list_with_an_item_twice_or_of_another_type_is_refused(read):
    with pytest.raises(UnreadableFile, match=r"items.parquet must list an item once, got item '8'"):
        read(items=pl.concat([ITEMS, ITEMS.tail(1)]))
    with pytest.raises(UnreadableFile, match="items of the type the lines have, Int64, got String"):
        read(items=ITEMS.with_columns(pl.format("{}", "item").alias("item")))
    with pytest.raises(UnreadableFile, match="a value in every aisle, got 9 without"):
        read(items=ITEMS.with_columns(aisle=pl.lit(None, pl.Int8)))


def test_two_files_of_one_name_in_two_folders_are_told_apart(tmp_path):
    for folder, table in (("a", LINES), ("b", ITEMS)):
        (tmp_path / folder).mkdir()
        table.write_parquet(tmp_path / folder / "t.parquet")
    rows = read_baskets(
        tmp_path / "a/t.parquet", 3, items=tmp_path / "b/t.parquet", cache=tmp_path / "cache"
    )
    assert list(rows.sha256) == ["lines", "items"]
    assert len(set(rows.sha256.values())) == 2


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"user,order,item\n1,1,1\n"])
def test_a_file_of_another_kind_is_refused(tmp_path, raw):
    path = tmp_path / "some.parquet"
    path.write_bytes(raw)
    with pytest.raises(UnreadableFile, match=r"some.parquet is cut short or of another kind"):
        read_baskets(path, cache=tmp_path / "cache")


def test_a_parquet_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "some.parquet"
    LINES.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UnreadableFile, match=r"some.parquet is cut short or of another kind"):
        read_baskets(path, cache=tmp_path / "cache")


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UnreadableFile, match=r"none.parquet can ?not be read \(No such file"):
        read_baskets(tmp_path / "none.parquet", cache=tmp_path / "cache")


def test_a_name_that_leaves_the_default_folder_is_refused(tmp_path):
    LINES.write_parquet(tmp_path / "some.parquet")
    with pytest.raises(InvalidInput, match="name must be that of a folder"):
        read_baskets(tmp_path / "some.parquet", 3, name="../../x")


def test_without_polars_one_line_says_how_to_get_it(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        MissingDependency, match=r"needs polars. Run: pip install -r experiments/requirements.txt"
    ):
        read_baskets("some.parquet")
