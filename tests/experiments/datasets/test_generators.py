"""Generated files: the readers read them, their shares are as promised, same seed same bytes."""

import hashlib
import json

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from experiments.commands.data import generate
from experiments.datasets.baskets.instacart import read_instacart
from experiments.datasets.generators import generate_baskets, generate_instacart, generate_santander
from experiments.datasets.generators.customers import HABITS
from experiments.datasets.origin import NOTE, is_generated, note_generated
from experiments.datasets.santander.columns import COLUMNS, PRODUCTS
from experiments.datasets.santander.reader import read_santander
from oddslip.errors import InvalidInput

N_ROWS, N_USERS = 150_000, 1_500
FILES = (
    "aisles.csv",
    "departments.csv",
    "order_products__prior.csv",
    "order_products__train.csv",
    "orders.csv",
    "products.csv",
)


def hash_folder(folder):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def test_rows_of_generated_files_say_so_as_long_as_the_files_are_theirs(tmp_path):
    folder = generate_instacart(tmp_path / "data", n_users=60, n_products=200, seed=1)
    generate_santander(folder, n_rows=2000)  # notes of both stand in one file
    notes = json.loads((folder / NOTE).read_text())
    assert notes["orders.csv"]["seed"] == 1
    assert notes["train_ver2.csv"]["form"] == "santander"
    assert read_instacart(folder, 50, tmp_path / "cache").generated is True
    assert read_santander(folder, tmp_path / "cache").generated is True
    # The kept rows are the same; what is known of their files is not.
    (folder / NOTE).unlink()
    assert read_instacart(folder, 50, tmp_path / "cache").generated is False
    assert read_santander(folder, tmp_path / "cache").generated is False


def test_a_file_that_took_the_place_of_a_generated_one_is_not_generated(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("made up")
    note_generated([path], seed=0)
    assert is_generated([path])
    path.write_text("genuine, and longer")
    assert not is_generated([path])
    (tmp_path / NOTE).write_text("[1]")
    assert not is_generated([path])


@pytest.fixture(scope="module")
def santander(tmp_path_factory):
    return generate_santander(tmp_path_factory.mktemp("santander"), n_rows=N_ROWS, seed=3)


@pytest.fixture(scope="module")
def raw(santander):
    return pl.read_csv(santander, infer_schema=False)


@pytest.fixture(scope="module")
def rows(santander, tmp_path_factory):
    return read_santander(santander, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def instacart(tmp_path_factory):
    return generate_instacart(tmp_path_factory.mktemp("instacart"), n_users=N_USERS, seed=3)


# --- Santander --------------------------------------------------------------------------------


def test_santander_has_the_rows_columns_and_months_of_the_real_file(raw):
    assert raw.columns == list(COLUMNS)
    assert raw.height == N_ROWS
    dates = raw["fecha_dato"]
    assert dates.is_sorted()
    assert (dates.n_unique(), dates[0], dates[-1]) == (17, "2015-01-28", "2016-05-28")
    assert raw.select("ncodpers", "fecha_dato").is_unique().all()
    assert 12.5 < N_ROWS / raw["ncodpers"].n_unique() < 15.5


def test_santander_has_the_quirks_of_the_real_file(raw):
    assert raw["age"].str.len_chars().unique().to_list() == [3]
    assert " NA" in raw["age"]
    assert raw["antiguedad"].str.len_chars().unique().to_list() == [7]
    assert {"1", "1.0", "P"} <= set(raw["indrel_1mes"])
    assert {"0", "1", "NA"} == set(raw["ind_nomina_ult1"])
    assert {"0", "1"} == set(raw["ind_recibo_ult1"])
    assert "CORUÑA, A" in raw["nomprov"]
    assert raw["renta"].is_in(["NA"]).mean() == pytest.approx(0.205, abs=0.02)


def test_holdings_are_as_common_as_told(raw):
    for product, habit in zip(PRODUCTS, HABITS.values(), strict=True):
        share = (raw[product] == "1").mean()
        # Rows of a customer are alike: what counts is how many customers hold a product.
        noise = 4 * np.sqrt(habit.share / raw["ncodpers"].n_unique())
        assert abs(share - habit.share) < 0.25 * habit.share + noise, product
    assert min(habit.share for habit in HABITS.values()) == 0.00002
    assert max((raw[product] == "1").mean() for product in PRODUCTS) == pytest.approx(
        0.62, abs=0.05
    )


def test_about_three_rows_in_a_hundred_are_followed_by_an_addition(rows):
    text = rows.describe()
    share = sum(text["rows_with_a_true_label"].values()) / sum(text["rows"].values())
    assert 0.023 < share < 0.035
    assert rows.label_names[int(np.argmax(rows.prevalence))] == "ind_recibo_ult1"
    assert 0.007 < rows.prevalence.max() < 0.016


def test_holdings_mostly_stay_as_they_are(rows):
    X = np.asarray(rows.train.X)
    later = X[:, rows.feature_names.index("rows_so_far")] > 1
    assert (X[later, :24] == X[later, 24:48]).mean() > 0.995


def test_demographics_tell_something_of_additions(rows):
    X, adds = np.asarray(rows.train.X), np.diff(rows.train.Y.indptr) > 0
    active = X[:, rows.feature_names.index("active")] == 1
    assert adds[active].mean() > 2 * adds[~active].mean()


def test_the_history_tells_something_of_additions(rows):
    X, label = np.asarray(rows.train.X), PRODUCTS.index("ind_recibo_ult1")
    adds = rows.train.Y[:, [label]].toarray()[:, 0] == 1
    free = X[:, label] == 0
    once = free & (X[:, 48 + label] > 0)
    assert adds[once].mean() > 2 * adds[free & ~once].mean()


def test_the_reader_finds_everyone(rows, raw):
    assert rows.settings["n_rows_read"] == N_ROWS
    assert rows.settings["n_customers"] == raw["ncodpers"].n_unique()
    assert np.isfinite(rows.train.X).all()


@pytest.mark.parametrize("n_rows", [1, 500, 1234])
def test_santander_has_exactly_the_rows_asked_for(tmp_path, n_rows):
    path = generate_santander(tmp_path, n_rows=n_rows, seed=1)
    assert len(path.read_bytes().splitlines()) == n_rows + 1


def test_santander_has_the_customers_asked_for(tmp_path):
    path = generate_santander(tmp_path, n_customers=321)
    assert pl.read_csv(path, infer_schema=False)["ncodpers"].n_unique() == 321


# --- Instacart --------------------------------------------------------------------------------


def test_instacart_has_the_six_files_with_their_columns(instacart):
    tables = {name: pl.read_csv(instacart / name, infer_schema=False) for name in FILES}
    assert sorted(path.name for path in instacart.iterdir()) == sorted([*FILES, NOTE])
    assert tables["orders.csv"].columns == [
        "order_id",
        "user_id",
        "eval_set",
        "order_number",
        "order_dow",
        "order_hour_of_day",
        "days_since_prior_order",
    ]
    for name in ("order_products__prior.csv", "order_products__train.csv"):
        assert tables[name].columns == ["order_id", "product_id", "add_to_cart_order", "reordered"]
    heights = [tables[f"{name}.csv"].height for name in ("products", "aisles", "departments")]
    assert heights == [49_688, 134, 21]
    assert tables["products.csv"]["product_name"].str.contains(",").any()
    assert tables["products.csv"]["aisle_id"].n_unique() == 134
    assert tables["products.csv"]["department_id"].n_unique() == 21


def test_users_have_4_to_100_orders_numbered_in_turn(instacart):
    orders = pl.read_csv(instacart / "orders.csv")
    of_user = orders.group_by("user_id", maintain_order=True).agg("order_number", "eval_set")
    for numbers, kinds in of_user.select("order_number", "eval_set").iter_rows():
        assert numbers == list(range(1, len(numbers) + 1))
        assert 4 <= len(numbers) <= 100
        assert set(kinds[:-1]) == {"prior"}
        assert kinds[-1] in ("train", "test")
    assert (orders["eval_set"] == "test").sum() == N_USERS // 3
    assert orders["order_id"].is_unique().all()
    first = orders["order_number"] == 1
    assert (orders["days_since_prior_order"].is_null() == first).all()
    assert orders["days_since_prior_order"].max() <= 30


def test_lines_belong_to_the_orders_of_their_file_and_each_product_stands_once(instacart):
    orders = pl.read_csv(instacart / "orders.csv")
    for kind in ("prior", "train"):
        lines = pl.read_csv(instacart / f"order_products__{kind}.csv")
        expected = orders.filter(pl.col("eval_set") == kind)["order_id"]
        assert set(lines["order_id"]) == set(expected)
        assert lines.select("order_id", "product_id").is_unique().all()
        assert lines["order_id"].is_sorted()


def test_reordered_means_bought_in_an_earlier_order(instacart):
    names = ("order_products__prior.csv", "order_products__train.csv")
    lines = pl.concat([pl.read_csv(instacart / name) for name in names])
    joined_lines = lines.join(pl.read_csv(instacart / "orders.csv"), on="order_id")
    joined_lines = joined_lines.filter(pl.col("user_id") <= 40).sort(
        "user_id", "order_number", "add_to_cart_order"
    )
    earlier_items = set()
    for user, item, again in joined_lines.select("user_id", "product_id", "reordered").iter_rows():
        assert again == ((user, item) in earlier_items)
        earlier_items.add((user, item))
    assert len(earlier_items) > 1000


def test_baskets_have_ten_products_of_which_six_were_bought_before(instacart):
    lines = pl.read_csv(instacart / "order_products__prior.csv")
    assert lines.group_by("order_id").len()["len"].mean() == pytest.approx(10, abs=1)
    assert lines["reordered"].mean() == pytest.approx(0.6, abs=0.05)
    counts = lines["product_id"].value_counts()["count"].sort(descending=True)
    assert 0.06 < counts[0] / lines["order_id"].n_unique() < 0.25
    assert counts[:500].sum() > 0.3 * lines.height


def test_the_reader_of_instacart_finds_the_training_users(instacart, tmp_path):
    from experiments.datasets.baskets.instacart import read_instacart

    rows = read_instacart(instacart, n_labels=100, cache=tmp_path)
    assert rows.describe()["rows"] == dict.fromkeys(
        ["train", "validation", "test"], N_USERS * 2 // 3
    )
    # Who bought a product before buys it again far more often than others.
    share = np.asarray(rows.test.X[:, :100].todense()) > 0
    truth = rows.test.Y.toarray() > 0
    assert truth[share].mean() > 5 * truth[~share].mean()


def test_the_reader_of_baskets_reads_generated_ones(tmp_path):
    from experiments.datasets.baskets.table import read_baskets

    path = generate_baskets(tmp_path / "made", n_users=200, n_products=500)
    rows = read_baskets(path, 50, items=path.with_name("items.parquet"), cache=tmp_path / "cache")
    assert rows.test.n_rows == 200


# --- all --------------------------------------------------------------------------------------

SMALL = {
    "santander": lambda folder, seed: generate_santander(folder, n_rows=3000, seed=seed),
    "instacart": lambda folder, seed: generate_instacart(folder, n_users=60, seed=seed),
    "baskets": lambda folder, seed: generate_baskets(folder, n_users=60, seed=seed),
}


@pytest.mark.parametrize("form", SMALL)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path, form):
    for name, seed in (("one", 5), ("same", 5), ("other", 6)):
        SMALL[form](tmp_path / name, seed)
    one, same, other = (hash_folder(tmp_path / name) for name in ("one", "same", "other"))
    assert one == same
    assert one != other


@pytest.mark.parametrize("form", SMALL)
def test_what_breaks_off_leaves_no_file(tmp_path, form, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    name = "write_month" if form == "santander" else "draw_blocks"
    monkeypatch.setattr(f"experiments.datasets.generators.{form}.{name}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        SMALL[form](tmp_path / "made", 0)
    assert list((tmp_path / "made").iterdir()) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: generate_santander(f), "one of n_customers and n_rows"),
        (lambda f: generate_santander(f, n_rows=5, n_customers=5), "one of n_customers and n_rows"),
        (lambda f: generate_santander(f, n_rows=0), "n_rows must be an integer from 1"),
        (
            lambda f: generate_santander(f, n_rows=5, seed=-1),
            "seed must be an integer of at least 0",
        ),
        (lambda f: generate_instacart(f, n_users=2.5), "n_users must be an integer from 3"),
        (lambda f: generate_baskets(f, n_users=9, n_products=5), "n_products must be an integer"),
    ],
)
def test_sizes_that_can_not_be_are_refused(tmp_path, make, message):
    with pytest.raises(InvalidInput, match=message):
        make(tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="must be a folder to write to"):
        generate_santander(tmp_path / "file", n_rows=5)


@pytest.mark.parametrize(
    ("form", "name"),
    [("santander", "train_ver2.csv"), ("instacart", "orders.csv"), ("baskets", "baskets.parquet")],
)
def test_the_command_writes_what_the_function_writes(tmp_path, form, name):
    app = typer.Typer()
    app.command()(generate)
    size = 3000 if form == "santander" else 60
    arguments = [form, "--size", str(size), "--seed", "5", "-o", str(tmp_path / "told")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert f"{size:,}" in result.output
    SMALL[form](tmp_path / "called", 5)
    assert hash_folder(tmp_path / "told")[name] == hash_folder(tmp_path / "called")[name]
