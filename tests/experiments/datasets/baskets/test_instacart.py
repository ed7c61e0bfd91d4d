"""Instacart from Kaggle's six files, or from one joined file; wrong files are recognised."""

import csv

import numpy as np
import pytest

from experiments.datasets.baskets.instacart import read_instacart
from experiments.datasets.mulan import files
from oddslip.errors import InvalidInput, UnreadableFile

ORDERS = "order_id,user_id,eval_set,order_number,order_dow,order_hour_of_day,days_since_prior_order"
LINES = "order_id,product_id,add_to_cart_order,reordered"
SMALL = {
    "products.csv": ["product_id,product_name,aisle_id,department_id"]
    + [f'{item},"Tea, ""no. {item}""",{1 + item % 2},{1 + item % 3}' for item in range(1, 7)],
    "aisles.csv": ["aisle_id,aisle", "1,tea", "2,coffee"],
    "departments.csv": ["department_id,department", "1,warm", "2,cold", "3,odd"],
    # Users 1 and 3 have a last basket, user 2 is of the test set.
    "orders.csv": [ORDERS]
    + [
        f"{100 * user + n},{user},{'prior' if n < last else kind},{n},{n % 7},{n:02d},"
        f"{'' if n == 1 else 2.5 * n}"
        for user, last, kind in ((3, 4, "train"), (1, 5, "train"), (2, 5, "test"))
        for n in range(1, last + 1)
    ],
    "order_products__prior.csv": [LINES]
    + [
        f"{100 * user + n},{item},1,0"
        for user, last in ((1, 5), (2, 5), (3, 4))
        for n in range(1, last)
        for item in (1 + (n + user) % 3, 4 + n % 3)
    ],
    "order_products__train.csv": [LINES, "304,1,1,1", "105,2,1,0", "105,6,2,0"],
}


@pytest.fixture
def read(tmp_path):
    def read(n_labels=3, into=tmp_path / "data", names=None, **changed):
        into.mkdir(exist_ok=True)
        for name, lines in SMALL.items():
            lines = changed.get(name.split(".")[0], lines)
            if lines is not None:
                text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
                (into / name).write_text(text)
        return read_instacart(into, n_labels, tmp_path / "cache", files=names)

    return read


def drop(name, *numbers):
    return [line for at, line in enumerate(SMALL[name]) if at not in numbers]


def swap(name, number, old, new):
    lines = list(SMALL[name])
    assert old in lines[number]
    lines[number] = lines[number].replace(old, new)
    return lines


def test_the_last_order_of_train_users_is_the_test_period_and_test_users_are_left_out(read):
    rows = read(n_labels=None)
    assert rows.test.row_ids.tolist() == [1, 3]
    assert rows.label_names == tuple(f'Tea, "no. {item}"' for item in range(1, 7))
    np.testing.assert_array_equal(rows.test.Y.toarray(), [[0, 1, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]])
    assert rows.train.X.shape == (2, 2 * 6 + 2 * (2 + 3) + 10)
    assert rows.test.X[:, -4:].toarray().tolist() == [[12.5, 8.75, 5, 5], [10, 7.5, 4, 4]]


def test_quotes_around_every_value_change_nothing(read, tmp_path):
    plain = read()
    quoted = {
        name.split(".")[0]: [",".join(f'"{v}"' for v in line.split(",")) for line in lines]
        for name, lines in SMALL.items()
        if name != "products.csv"
    }
    rows = read(into=tmp_path / "quoted", **quoted)
    assert (rows.test.X != plain.test.X).nnz == 0
    assert rows.test.X.nnz == plain.test.X.nnz


def test_the_order_of_lines_in_the_files_does_not_matter(read, tmp_path):
    plain = read()
    backwards = {name.split(".")[0]: [lines[0], *lines[:0:-1]] for name, lines in SMALL.items()}
    rows = read(into=tmp_path / "backwards", **backwards)
    for period in ("train", "validation", "test"):
        one, two = getattr(plain, period), getattr(rows, period)
        assert (one.X != two.X).nnz == 0
        assert (one.Y != two.Y).nnz == 0


def test_the_same_files_give_the_same_bytes(read, tmp_path):
    folders = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        read()
        cache = tmp_path / "cache"
        folders.append(
            {path.name: path.read_bytes() for path in sorted(cache.rglob("[XYi]*_*.np*"))}
        )
        cache.rename(tmp_path / name / "cache")
    assert len(folders[0]) == 9
    assert folders[0] == folders[1]


def test_tables_are_made_once_for_all_numbers_of_labels(read, tmp_path):
    read(n_labels=2)
    tables = sorted((tmp_path / "cache").rglob("lines.parquet"))
    read(n_labels=3)
    assert sorted((tmp_path / "cache").rglob("lines.parquet")) == tables
    assert len(tables) == 1


def test_prior_orders_alone_are_read_where_there_is_no_train_file(read):
    longer = [*SMALL["orders.csv"], "106,1,prior,6,1,1,1.0"]
    longer = [line for line in longer if ",train," not in line and ",test," not in line]
    lines = [*SMALL["order_products__prior.csv"], "106,5,1,0"]
    rows = read(
        order_products__train=None,
        orders=longer,
        order_products__prior=lines,
        names={"train": None},
    )
    assert rows.test.row_ids.tolist() == [1, 2]


WRONG = {
    "orders.csv must have the columns order_id, user_id": {
        "orders": [line.replace("order_dow", "dow") for line in SMALL["orders.csv"]]
    },
    "order_products__prior.csv must have the columns order_id, product_id, got none named product_id": {
        "order_products__prior": [line.rpartition(",")[0] for line in ["order_id,x", "1,2"]]
    },
    "orders.csv must have order_id, user_id": {"orders": "\n".join(SMALL["orders.csv"])[:-12]},
    "order_products__prior.csv must have order_id, product_id, reordered in every line, got data line 22": {
        "order_products__prior": [*SMALL["order_products__prior.csv"][:-1], "303"]
    },
    "order_products__train.csv must have order_id, product_id, reordered in every line": {
        "order_products__train": "\n".join(SMALL["order_products__train.csv"])[: -len(",2,0")]
    },
    "orders.csv must have days_since_prior_order": {
        "orders": "\n".join(SMALL["orders.csv"]).removesuffix("12.5")
    },
    "products of every prior order, got none of order 303 and 0 more. Is the file cut short?": {
        "order_products__prior": drop("order_products__prior.csv", 21, 22)
    },
    "products of every train order, got none of order 105": {
        "order_products__train": drop("order_products__train.csv", 2, 3)
    },
    "order_products__prior.csv must hold prior orders of orders.csv only, got order 301": {
        "orders": drop("orders.csv", 1)
    },
    "order_products__train.csv must hold train orders of orders.csv only, got order 101": {
        "order_products__train": [*SMALL["order_products__train.csv"], "101,6,1,0"]
    },
    "got item '77', which is not in it": {
        "order_products__train": [*SMALL["order_products__train.csv"], "105,77,3,0"]
    },
    "an item at most once in an order, got 1 twice, the first item '6' of user '1', order 5": {
        "order_products__train": [*SMALL["order_products__train.csv"], "105,6,3,0"]
    },
    "increase within a user, got order_id 301 (user 3, order number 1) and 1 more": {
        "orders": swap("orders.csv", 2, "prior,2", "prior,1")
    },
    "order_id once, got order_id 301": {"orders": swap("orders.csv", 2, "302", "301")},
    "train and test as the last order of a user, got order_id 302": {
        "orders": swap("orders.csv", 2, "prior", "train")
    },
    "prior, train or test as eval_set, got order_id 302": {
        "orders": swap("orders.csv", 2, "prior", "valid")
    },
    "order numbers from 1, days 0 to 6 and hours 0 to 23, got order_id 302": {
        "orders": swap("orders.csv", 2, ",2,02,", ",2,24,")
    },
    "orders.csv is cut short or of another kind": {
        "orders": swap("orders.csv", 2, "302", "three hundred")
    },
    "orders.csv must hold orders of eval_set train, got none": {
        "orders": [line for line in SMALL["orders.csv"] if ",train," not in line]
    },
    "aisles of aisles.csv only, got product 1 of aisle 2": {"aisles": drop("aisles.csv", 2)},
    "aisles.csv must have each aisle once, got 'tea' twice": {
        "aisles": [*SMALL["aisles.csv"], "3,tea"]
    },
    "products.csv must list an item once, got item '6' twice": {
        "products": [*SMALL["products.csv"], "6,again,1,1"]
    },
    "departments.csv is cut short or of another kind": {"departments": ""},
}


@pytest.mark.parametrize("expected", WRONG)
def test_wrong_or_partial_files_are_refused_in_one_line(read, tmp_path, expected):
    with pytest.raises(UnreadableFile) as caught:
        read(**WRONG[expected])
    message = str(caught.value)
    assert expected in message
    assert str(tmp_path / "data") in message
    assert "\n" not in message
    assert not list((tmp_path / "cache").glob(".*")), "half an entry was left"


@pytest.mark.parametrize("name", SMALL)
def test_a_missing_file_is_named_and_the_line_says_where_the_data_is(read, tmp_path, name):
    with pytest.raises(UnreadableFile) as caught:
        read(**{name.split(".")[0]: None})
    message = str(caught.value)
    assert f"{tmp_path / 'data'} must hold {name}, got no such file" in message
    assert 'on Kaggle, "Instacart Market Basket Analysis" (2017)' in message


def test_without_any_file_the_line_names_the_folders_that_were_tried(tmp_path, monkeypatch):
    monkeypatch.setenv("ODDSLIP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(files, "__file__", str(tmp_path / "a" / "b" / "c" / "files.py"))
    with pytest.raises(UnreadableFile, match=r"folder of .*nowhere, .* got none.*orders.csv"):
        read_instacart()


def test_names_are_given_for_files_that_exist_in_the_form(read):
    with pytest.raises(InvalidInput, match=r"files must be named for orders, .*, got 'lines'"):
        read(names={"lines": "x.csv"})
    with pytest.raises(InvalidInput, match="files must name a file for orders, got None"):
        read(names={"orders": None})


def test_a_changed_file_is_noticed(read):
    before = read(n_labels=None)
    after = read(n_labels=None, order_products__train=[LINES, "304,2,1,1", "105,2,1,0"])
    assert before.test.Y.nnz == 3
    assert after.test.Y.nnz == 2


def test_six_files_and_one_joined_file_of_the_same_users_give_the_same_rows(tmp_path, genuine):
    """The genuine ten users, taken apart into Kaggle's form: the last order is the train one."""
    joined = {"joined": "ten_users_full_history.csv"}
    expected = read_instacart(genuine("instacart"), 200, tmp_path / "cache", files=joined)
    with (genuine("instacart") / joined["joined"]).open(newline="") as file:
        lines = list(csv.DictReader(file))
    last = {}
    for line in lines:
        user, number = line["user_id"], int(line["order_number"])
        last[user] = max(last.get(user, 0), number)
    orders, prior, train = {}, [LINES], [LINES]
    for line in lines:
        kind = "train" if int(line["order_number"]) == last[line["user_id"]] else "prior"
        orders[line["order_id"]] = ",".join(
            (
                line["order_id"],
                line["user_id"],
                kind,
                line["order_number"],
                line["order_dow"],
                f'"{int(line["order_hour_of_day"]):02d}"',
                line["days_since_prior_order"],
            )
        )
        (train if kind == "train" else prior).append(f"{line['order_id']},{line['product_id']},1,0")
    made_rows = {
        "orders.csv": [ORDERS, *orders.values()],
        "order_products__prior.csv": prior,
        "order_products__train.csv": train,
    }
    for name, text in made_rows.items():
        (tmp_path / name).write_text("\n".join(text) + "\n")
    for name in ("products.csv", "aisles.csv", "departments.csv"):
        (tmp_path / name).write_bytes((genuine("instacart") / name).read_bytes())
    rows = read_instacart(tmp_path, 200, tmp_path / "cache")
    assert rows.label_names == expected.label_names
    for period in ("train", "validation", "test"):
        one, two = getattr(expected, period), getattr(rows, period)
        np.testing.assert_array_equal(one.X.toarray(), two.X.toarray())
        np.testing.assert_array_equal(one.Y.toarray(), two.Y.toarray())
        assert one.row_ids.tolist() == two.row_ids.tolist()


def test_samples_that_do_not_belong_together_are_recognised(tmp_path, genuine):
    names = {
        "orders": "sample_orders.csv",
        "prior": "sample_order_products__prior.csv",
        "train": None,
    }
    with pytest.raises(UnreadableFile, match=r"must hold prior orders of sample_orders.csv only"):
        read_instacart(genuine("instacart"), cache=tmp_path, files=names)
