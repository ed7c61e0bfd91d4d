"""Santander: labels and features against slow oracles, and no look into the future."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from experiments.datasets.santander.columns import FLAGS, name_features
from experiments.datasets.santander.features import (
    Histories,
    build_features,
    iterate_features,
    label_rows,
    split_customers,
    unpack,
)
from experiments.datasets.santander.reader import build_labels


@st.composite
def histories(draw, max_customers=6):
    """Customers with some of ten months each, and anything held in them."""
    customer, month, holdings = [], [], []
    for number in range(draw(st.integers(1, max_customers))):
        for each in sorted(draw(st.sets(st.integers(0, 9), min_size=1))):
            customer.append(number * 7)
            month.append(each)
            holdings.append(draw(st.integers(0, 2**24 - 1)))
    n = len(customer)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return Histories(
        np.array(customer, np.int64),
        np.array(month, np.int16),
        np.array(holdings, np.uint32),
        draw_demographics(n, random) if draw(st.booleans()) else None,
    )


def draw_demographics(n, random):
    return {
        "age": random.integers(-1, 90, n),
        "seniority": random.integers(-1, 200, n),
        "income": np.where(random.random(n) < 0.3, np.nan, random.random(n) * 1e5),
        "province": random.integers(-1, 53, n),
        "channel_place": random.random(n),
        "country_place": random.random(n),
        "flags": random.integers(0, 1 << len(FLAGS), n, np.uint32),
    }


# --- labels -----------------------------------------------------------------------------------


def slow_labels(rows, following):
    """Sets of added products by (month, customer), from a dictionary of what was held when."""
    products = {
        (int(who), int(when)): {j for j in range(24) if int(what) >> j & 1}
        for who, when, what in zip(rows.customer, rows.month, rows.holdings, strict=True)
    }
    labels = {}
    for who, when in products:
        later = [m for c, m in products if c == who and m > when]
        if not later or (following == "month" and min(later) != when + 1):
            continue
        labels[when, who] = products[who, min(later)] - products[who, when]
    return dict(sorted(labels.items()))


@given(histories(), st.sampled_from(["row", "month"]))
@settings(deadline=None, max_examples=80)
def test_labels_are_those_of_a_slow_computation_in_order_of_month_and_customer(rows, following):
    Y, customers = build_labels(rows, label_rows(rows, following))
    slow = slow_labels(rows, following)
    assert customers.tolist() == [who for _, who in slow]
    assert [set(row.nonzero()[0]) for row in Y.toarray()] == list(slow.values())


def test_a_product_held_before_and_after_a_gap_is_no_addition():
    rows = Histories(
        np.zeros(3, np.int64),
        np.array([0, 1, 4], np.int16),
        np.array([1, 0, 1], np.uint32),
        None,
    )
    assert label_rows(rows, "row").added.tolist() == [0, 1, 0]
    assert label_rows(rows, "month").has_next.tolist() == [True, False, False]
    assert label_rows(rows, "month").added.tolist() == [0, 0, 0]


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), st.integers(1, 32))
@settings(deadline=None)
def test_unpacked_bits_are_binary_digits(numbers, n):
    cells = unpack(np.array(numbers, np.uint32), n)
    assert cells.tolist() == [[number >> bit & 1 for bit in range(n)] for number in numbers]


# --- features ---------------------------------------------------------------------------------


def slow_history_features(rows, row):
    """The features of one row that do not come from demographics, from its customer's past."""
    who, now = rows.customer[row], rows.month[row]
    past = [
        (int(m), int(h))
        for c, m, h in zip(rows.customer, rows.month, rows.holdings, strict=True)
        if c == who and m <= now
    ]
    products = [[h >> j & 1 for j in range(24)] for _, h in past]
    before = products[-2] if len(past) > 1 else [0] * 24
    gap = past[-1][0] - past[-2][0] if len(past) > 1 else 0
    months_held = [sum(column) for column in zip(*products, strict=True)]
    return [
        *products[-1],
        *before,
        *months_held,
        sum(products[-1]),
        len(past),
        gap,
        int(now),
        int(now) % 12 + 1,
    ]


@given(histories())
@settings(deadline=None, max_examples=60)
def test_features_of_the_history_are_those_of_a_slow_computation(rows):
    X = build_features(rows)
    slow = [slow_history_features(rows, row) for row in range(len(rows.month))]
    assert_array_equal(X[:, : len(slow[0])], slow)
    assert X.shape[1] == len(name_features(rows.demographics is not None))


@given(histories(), st.integers(0, 9), st.data())
@settings(deadline=None, max_examples=80)
def test_no_change_of_a_later_month_changes_a_feature(rows, now, data):
    """Later months are dropped, or all they tell is drawn anew."""
    X = build_features(rows)
    early = rows.month <= now
    if data.draw(st.booleans()):
        demographics = rows.demographics
        early_rows = Histories(
            rows.customer[early],
            rows.month[early],
            rows.holdings[early],
            None
            if demographics is None
            else {name: each[early] for name, each in demographics.items()},
        )
        assert_array_equal(build_features(early_rows), X[early])
        return
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    holdings = random.integers(0, 1 << 24, len(early), np.uint32)
    changed = rows._replace(holdings=np.where(early, rows.holdings, holdings))
    if rows.demographics is not None:
        anew = draw_demographics(len(early), random)
        both = {n: np.where(early, rows.demographics[n], anew[n]) for n in anew}
        changed = changed._replace(demographics=both)
    assert_array_equal(build_features(changed)[early], X[early])


@given(histories(max_customers=12), st.integers(1, 9))
@settings(deadline=None, max_examples=60)
def test_blocks_of_customers_give_the_same_features_in_order_of_month_and_customer(rows, size):
    has_next = label_rows(rows).has_next
    X = np.full((int(has_next.sum()), len(name_features(rows.demographics is not None))), np.nan)
    for first, cells in iterate_features(rows, has_next, size):
        X[first : first + len(cells)] = cells
    chosen = np.flatnonzero(has_next)
    order = chosen[np.lexsort((rows.customer[chosen], rows.month[chosen]))]
    assert_array_equal(X, build_features(rows)[order])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 10))
@settings(deadline=None)
def test_no_range_parts_a_customer(customers, size):
    customer = np.sort(np.array(customers, np.int64))
    ranges = list(split_customers(customer, size))
    assert [place for first, stop in ranges for place in range(first, stop)] == [
        *range(len(customer))
    ]
    assert all(customer[stop - 1] != customer[stop] for _, stop in ranges[:-1])
