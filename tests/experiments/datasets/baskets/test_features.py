"""What is known of a user before the reference order: right, and never later."""

import csv

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.datasets.baskets.features import (
    Split,
    build_features,
    build_labels,
    build_recommendation,
    choose_labels,
    name_features,
    split_orders,
)
from experiments.datasets.baskets.table import gather_baskets

N_ITEMS = 8
AISLE_OF = [0, 0, 1, 1, 2, 2, 2, 1]
DEPARTMENT_OF = [0, 0, 0, 0, 1, 1, 1, 0]

orders = st.fixed_dictionaries(
    {
        "items": st.sets(st.integers(0, N_ITEMS - 1), min_size=1),
        "dow": st.integers(0, 6),
        "hour": st.integers(0, 23),
        # Tenths have no exact binary form: a sum over other users would show in the last bit.
        "days": st.integers(0, 300).map(lambda tenths: float(np.float32(tenths / 10))),
    }
)
histories_of = st.lists(st.lists(orders, min_size=4, max_size=7), min_size=1, max_size=4)


def make_baskets(histories, *, plain=False):
    lines = [
        (user, place, item, order["dow"], order["hour"], order["days"] if place else None)
        for user, history in enumerate(histories)
        for place, order in enumerate(history)
        for item in sorted(order["items"])
    ]
    names = ["user", "order", "item", "dow", "hour", "days_since_prior"]
    table = pl.DataFrame(lines, schema=names, orient="row")
    table = table.with_columns(pl.col("days_since_prior").cast(pl.Float32))
    items = pl.DataFrame({"item": range(N_ITEMS), "aisle": AISLE_OF, "department": DEPARTMENT_OF})
    if plain:
        return gather_baskets(table.select("user", "order", "item").lazy(), "lines")
    return gather_baskets(table.lazy(), "lines", items, "items")


def describe_slowly(history, place, labels, groups):
    """All features of one row, by their definitions, one number at a time."""
    earlier, reference = history[:place], history[place]
    row = []
    row += [sum(label in o["items"] for o in earlier) / len(earlier) for label in labels]
    for label in labels:
        since = [back for back, o in enumerate(reversed(earlier), 1) if label in o["items"]]
        row.append(1 / since[0] if since else 0.0)
    all_lines = [item for o in earlier for item in o["items"]]
    last_lines = list(earlier[-1]["items"])
    for group_of, n_kinds in groups:
        for lines in (all_lines, last_lines):
            row += [
                sum(group_of[item] == kind for item in lines) / len(lines)
                for kind in range(n_kinds)
            ]
    earlier_items, repeats, last_repeats = set(), 0, 0
    for o in earlier:
        last_repeats = sum(item in earlier_items for item in o["items"])
        repeats += last_repeats
        earlier_items |= o["items"]
    row += [len(earlier), len(all_lines) / len(earlier), len(last_lines), len(earlier_items)]
    row += [repeats / len(all_lines), last_repeats / len(last_lines)]
    gaps = [o["days"] for o in history[1 : place + 1]]
    return [*row, reference["days"], sum(gaps) / len(gaps), reference["dow"], reference["hour"]]


def same(A, B):
    """Whether two CSR matrices are the same to the bit."""
    return A.shape == B.shape and all(
        getattr(A, part).tobytes() == getattr(B, part).tobytes()
        for part in ("data", "indices", "indptr")
    )


@given(histories_of, st.integers(1, N_ITEMS))
@settings(deadline=None, max_examples=60)
def test_features_and_labels_equal_those_computed_one_by_one(histories, n_labels):
    rows = build_recommendation(make_baskets(histories), n_labels, name="some")
    bought = [o["items"] for h in histories for o in [h[-3]]]
    by_count = sorted(range(N_ITEMS), key=lambda i: (-sum(i in b for b in bought), i))
    labels = sorted(by_count[:n_labels])
    assert rows.label_names == tuple(map(str, labels))
    groups = [(AISLE_OF, 3), (DEPARTMENT_OF, 2)]
    for period, back in ((rows.train, 3), (rows.validation, 2), (rows.test, 1)):
        slow = [describe_slowly(h, len(h) - back, labels, groups) for h in histories]
        np.testing.assert_allclose(period.X.toarray(), np.float32(slow), rtol=2e-7, atol=1e-7)
        true = [[label in h[-back]["items"] for label in labels] for h in histories]
        np.testing.assert_array_equal(period.Y.toarray(), true)
        assert period.X.shape[1] == len(rows.feature_names)
        assert len(set(rows.feature_names)) == len(rows.feature_names)
        assert np.all(period.X.data != 0)


@given(histories_of, st.data())
@settings(deadline=None, max_examples=60)
def test_no_feature_sees_the_reference_order_or_a_later_one(histories, data):
    back = data.draw(st.integers(1, 3))
    places = np.array([len(h) - back for h in histories])
    changed = []
    for history, place in zip(histories, places, strict=True):
        # The reference order keeps its moment; its items, and all that follows, are others.
        items = data.draw(orders)["items"]
        reference = {**history[place], "items": items}
        later = data.draw(st.lists(orders, max_size=4))
        changed.append([*history[:place], reference, *later])
    split = Split(np.arange(len(histories)), {})
    labels = np.arange(N_ITEMS)
    before = build_features(make_baskets(histories), split, places, labels)
    after = build_features(make_baskets(changed), split, places, labels)
    assert same(before, after)


@given(histories_of, st.data())
@settings(deadline=None, max_examples=40)
def test_only_its_moment_is_taken_from_the_reference_order(histories, data):
    places = np.array([len(h) - 1 for h in histories])
    changed = [[*h[:-1], {**data.draw(orders), "items": h[-1]["items"]}] for h in histories]
    split, labels = Split(np.arange(len(histories)), {}), np.arange(N_ITEMS)
    before = build_features(make_baskets(histories), split, places, labels)
    after = build_features(make_baskets(changed), split, places, labels)
    n_moments = 4
    assert same(before[:, :-n_moments], after[:, :-n_moments])
    np.testing.assert_array_equal(after[:, -2].toarray()[:, 0], [h[-1]["dow"] for h in changed])
    np.testing.assert_array_equal(after[:, -1].toarray()[:, 0], [h[-1]["hour"] for h in changed])


@given(histories_of, st.integers(1, N_ITEMS), st.data())
@settings(deadline=None, max_examples=40)
def test_labels_and_training_rows_do_not_depend_on_later_baskets(histories, n_labels, data):
    changed = [[*h[:-2], data.draw(orders), data.draw(orders)] for h in histories]
    before = build_recommendation(make_baskets(histories), n_labels, name="some")
    after = build_recommendation(make_baskets(changed), n_labels, name="some")
    assert before.label_names == after.label_names
    assert same(before.train.X, after.train.X)
    assert same(before.train.Y, after.train.Y)


@given(histories_of, st.data())
@settings(deadline=None, max_examples=30)
def test_without_a_list_of_items_later_baskets_still_choose_no_label(histories, data):
    changed = [[*h[:-2], data.draw(orders), data.draw(orders)] for h in histories]
    chosen = []
    for each in (histories, changed):
        baskets = make_baskets(each, plain=True)
        chosen.append(baskets.items[choose_labels(baskets, split_orders(baskets), 1)])
    assert chosen[0] == chosen[1]


@given(histories_of, st.data())
@settings(deadline=None, max_examples=30)
def test_a_row_does_not_depend_on_other_users(histories, data):
    others = data.draw(st.lists(st.lists(orders, min_size=4, max_size=7), max_size=3))
    labels = np.arange(N_ITEMS)
    alone, crowded = make_baskets(histories[:1]), make_baskets([*histories[:1], *others])
    places = np.array([len(histories[0]) - 1])
    one = Split(np.array([0]), {})
    assert same(
        build_features(alone, one, places, labels), build_features(crowded, one, places, labels)
    )


def test_items_that_are_no_labels_still_count_in_what_is_known_of_the_user():
    order = {"dow": 1, "hour": 2, "days": 3.0}
    history = [{**order, "items": items} for items in ({0, 5}, {0}, {0, 6}, {0})]
    rows = build_recommendation(make_baskets([history]), 1, name="some")
    assert rows.label_names == ("0",)
    values = dict(zip(rows.feature_names, rows.test.X.toarray()[0], strict=True))
    assert values["distinct items"] == 3
    assert values["share of earlier lines of aisle 2"] == np.float32(2 / 5)
    assert values["share of last order's lines of department 1"] == np.float32(1 / 2)


def test_names_and_columns_leave_out_what_the_source_does_not_know():
    order = {"items": {0, 1}, "dow": 1, "hour": 2, "days": 3.0}
    baskets = make_baskets([[order] * 4], plain=True)
    split = split_orders(baskets)
    X = build_features(baskets, split, split.places["train"], np.array([0, 1]))
    names = name_features(baskets, ("a", "b"))
    assert X.shape == (1, 2 * 2 + 6) == (1, len(names))
    assert not any("aisle" in name or "day" in name or "hour" in name for name in names)


def test_only_labels_are_true_cells():
    order = {"items": {1, 3, 7}, "dow": 1, "hour": 2, "days": 3.0}
    baskets = make_baskets([[order] * 4])
    split = split_orders(baskets)
    Y = build_labels(baskets, split, split.places["test"], np.array([0, 3, 7]))
    np.testing.assert_array_equal(Y.toarray(), [[False, True, True]])


def test_the_ten_genuine_users_have_the_features_computed_one_by_one(tmp_path, genuine):
    from experiments.datasets.baskets.instacart import read_instacart

    folder = genuine("instacart")
    rows = read_instacart(folder, cache=tmp_path, files={"joined": "ten_users_full_history.csv"})
    with (folder / "products.csv").open(newline="", encoding="utf-8") as file:
        products = {int(line["product_id"]): line for line in csv.DictReader(file)}
    names = {}
    for kind in ("aisle", "department"):
        with (folder / f"{kind}s.csv").open(newline="", encoding="utf-8") as file:
            names[kind] = {line[f"{kind}_id"]: line[kind] for line in csv.DictReader(file)}
    histories = {}
    with (folder / "ten_users_full_history.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            order = histories.setdefault(int(line["user_id"]), {}).setdefault(
                int(line["order_number"]),
                {
                    "items": set(),
                    "dow": int(line["order_dow"]),
                    "hour": int(line["order_hour_of_day"]),
                    "days": float(line["days_since_prior_order"] or "nan"),
                },
            )
            order["items"].add(int(line["product_id"]))
    users = sorted(histories)
    histories = [[h[n] for n in sorted(h)] for h in (histories[user] for user in users)]
    bought = [item for h in histories for item in h[-3]["items"]]
    labels = sorted(sorted(products, key=lambda i: (-bought.count(i), i))[:4000])
    groups = []
    for kind in ("aisle", "department"):
        kinds = {name: at for at, name in enumerate(sorted(names[kind].values()))}
        of = {item: kinds[names[kind][line[f"{kind}_id"]]] for item, line in products.items()}
        groups.append((of, len(kinds)))
    assert len(rows.label_names) == len(set(rows.label_names)) == 4000
    for period, back in ((rows.train, 3), (rows.validation, 2), (rows.test, 1)):
        assert period.row_ids.tolist() == users
        assert period.X.shape == (10, 8320)
        slow = [describe_slowly(h, len(h) - back, labels, groups) for h in histories]
        np.testing.assert_allclose(period.X.toarray(), np.float32(slow), rtol=2e-7, atol=1e-7)
        true = [[label in h[-back]["items"] for label in labels] for h in histories]
        np.testing.assert_array_equal(period.Y.toarray(), true)
