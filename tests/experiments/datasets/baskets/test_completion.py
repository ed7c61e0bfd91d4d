"""Carts as basket completion: halves by the order of adding, three parts at random."""

import numpy as np
import polars as pl
import pytest

from experiments.datasets.baskets.completion import read_instacart_baskets, split_rows
from oddslip.errors import UnreadableFile

# Nine carts of four products, one of five, and two that are too small.
SIZES = dict.fromkeys(range(101, 110), 4) | {110: 5, 111: 3, 112: 1}
CARTS = [
    (cart, 1 + (7 * cart + 3 * place) % 11, place)
    for cart, size in SIZES.items()
    for place in range(1, size + 1)
]


@pytest.fixture
def read(tmp_path):
    def read(lines=CARTS, n_labels=None, **options):
        folder = tmp_path / "instacart"
        folder.mkdir(exist_ok=True)
        names = ("order_id", "product_id", "add_to_cart_order")
        table = pl.DataFrame(lines, schema=names, orient="row")
        table.write_parquet(folder / "order_products__train.parquet")
        products = [f"{item},Tea {item},{1 + item % 2},1" for item in range(1, 12)]
        header = "product_id,product_name,aisle_id,department_id"
        (folder / "products.csv").write_text("\n".join([header, *products]) + "\n")
        (folder / "aisles.csv").write_text("aisle_id,aisle\n1,green\n2,black\n")
        (folder / "departments.csv").write_text("department_id,department\n1,tea\n")
        return read_instacart_baskets(tmp_path, n_labels, tmp_path / "cache", **options)

    return read


def all_rows(data):
    """(cart, known products, products that follow) of every row of the three parts."""
    for period in (data.train, data.validation, data.test):
        for row, cart in enumerate(period.row_ids.tolist()):
            known = period.X[row, : data.n_labels].nonzero()[1] + 1
            yield cart, set(known.tolist()), set((period.Y[row].indices + 1).tolist())


def test_the_first_half_by_the_order_of_adding_is_known_and_the_rest_follows(read):
    rows = {cart: (known, following) for cart, known, following in all_rows(read())}
    assert sorted(rows) == [cart for cart, size in SIZES.items() if size >= 4]
    for cart, halves in rows.items():
        items = [item for order, item, _ in CARTS if order == cart]
        half = len(items) // 2
        assert halves == (set(items[:half]), set(items[half:]))


def test_the_order_of_the_lines_in_the_file_does_not_matter(read):
    one, other = read(), read(CARTS[::-1])
    assert list(all_rows(one)) == list(all_rows(other))


def test_features_see_nothing_of_what_follows(read):
    changed = [
        (cart, item if 2 * place <= SIZES[cart] else 1 + item % 11, place)
        for cart, item, place in CARTS
    ]
    # The moved product must not meet another of its cart.
    assert len({line[:2] for line in changed}) == len(changed)
    one, other = read(), read(changed)
    for name in ("train", "validation", "test"):
        assert (getattr(one, name).X != getattr(other, name).X).nnz == 0
        assert (getattr(one, name).Y != getattr(other, name).Y).nnz > 0


def test_groups_are_shares_of_the_known_half_and_its_size_is_the_last_column(read):
    data = read()
    assert data.feature_names[-4:] == (
        "share of aisle black",
        "share of aisle green",
        "share of department tea",
        "known products",
    )
    shares = data.train.X.toarray()
    known = shares[:, : data.n_labels]
    black = known[:, 0::2].sum(axis=1)  # products 1, 3, ... are of aisle 2
    np.testing.assert_allclose(shares[:, -4], black / known.sum(axis=1))
    np.testing.assert_allclose(shares[:, -4] + shares[:, -3], 1)
    np.testing.assert_array_equal(shares[:, -1], known.sum(axis=1))


def test_labels_are_the_products_that_follow_most_often_in_training_rows(read):
    every, some = read(), read(n_labels=3)
    counts = every.positives
    best = np.sort(np.argsort(-counts, kind="stable")[:3])
    assert some.label_names == tuple(every.label_names[code] for code in best)
    assert (some.positives == counts[best]).all()


def test_small_carts_are_left_out_and_counted(read):
    settings = read().settings
    assert (settings["n_carts"], settings["n_carts_left_out"]) == (12, 2)


@pytest.mark.parametrize("n_rows", [3, 10, 11, 108_963])
def test_three_equal_parts_hold_every_row_once(n_rows):
    parts = split_rows(n_rows)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(n_rows))
    assert parts["validation"].size == parts["test"].size == n_rows // 3
    assert all((np.diff(rows) > 0).all() for rows in parts.values())


def test_a_split_depends_on_its_seed_alone(read):
    one, again, other = (split_rows(1000, seed) for seed in (0, 0, 1))
    assert all((one[name] == again[name]).all() for name in one)
    assert not all((one[name] == other[name]).all() for name in one)
    ids = [read(seed=seed).test.row_ids.tolist() for seed in (3, 3, 4)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (CARTS[1:], "from 1 on without gaps, got order_id 101"),
        ([*CARTS, (112, 5, 3)], "from 1 on without gaps, got order_id 112"),
        ([*CARTS, (112, 5, 1)], "from 1 on without gaps, got order_id 112"),
        ([*CARTS, (112, CARTS[-1][1], 2)], "at most once in a cart"),
        ([*CARTS, (112, 99, 2), (112, 98, 3), (112, 97, 4)], "of .*products.csv only"),
        ([(*line[:2], None) for line in CARTS], "a value in every add_to_cart_order"),
    ],
)
def test_damaged_carts_are_refused(read, lines, line):
    with pytest.raises(UnreadableFile, match=line):
        read(lines)


def test_a_folder_without_the_carts_is_told(tmp_path):
    with pytest.raises(UnreadableFile, match=r"none\. .*order_products__train"):
        read_instacart_baskets(tmp_path)
