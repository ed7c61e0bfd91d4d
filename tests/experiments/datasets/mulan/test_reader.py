"""MULAN data sets: the paper's numbers on the real files, the protocols' laws on made ones."""

import hashlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse import issparse

from experiments.datasets.mulan import reader
from experiments.datasets.mulan.files import list_pinned
from experiments.datasets.mulan.reader import apply_scale, measure_scale, read_mulan
from oddslip.errors import InvalidInput, UnreadableFile

# Table 2 of the paper, the columns that need no model:
# L, K, n_fit, n_test, cal. pos., min r, max r, pop.
TABLE_2 = {
    "emotions": "6 6 274 202 32 1.5 3 0.588",
    "scene": "6 6 848 1196 60 3.5 6 0.430",
    "flags": "7 7 79 65 22 0.3 6 0.802",
    "yeast": "14 7 1050 917 126 0.3 80 0.626",
    "birds": "15 7 226 323 5 7.7 112 0.392",
    "genbase": "27 7 325 199 5 1.0 324 0.425",
    "medical": "45 7 234 645 1 1.0 233 0.355",
    "enron": "53 7 787 579 6 0.9 786 0.437",
    "bibtex": "159 7 3416 2515 17 5.8 227 0.107",
    "corel5k": "374 7 3150 500 4 1.0 3149 0.166",
    "delicious": "983 7 9044 3185 26 1.5 903 0.218",
}


def popularity_map(data):
    """MAP@K, in the definition of the conventions, of ranking every row by prevalence."""
    order = np.argsort(-data.prevalence, kind="stable")[: data.k]
    sums = []
    for row in data.Y_test[data.Y_test.any(axis=1)]:
        hits, total = 0, 0.0
        for rank, label in enumerate(order, start=1):
            hits += row[label]
            total += hits / rank if row[label] else 0
        sums.append(total / min(data.k, row.sum()))
    return np.mean(sums)


@pytest.mark.parametrize("name", TABLE_2)
def test_the_columns_of_table_2_that_need_no_model_have_the_printed_digits(name, genuine):
    data = read_mulan(name, data=genuine("mulan"), standardise=False)
    ours = [
        f"{data.n_labels}",
        f"{data.k}",
        f"{data.fitted.size}",
        f"{len(data.Y_test)}",
        f"{round(float(np.median(data.calibration_positives)))}",
        f"{data.r.min():.1f}",
        f"{data.r.max():.0f}",
        f"{popularity_map(data):.3f}",
    ]
    assert ours == TABLE_2[name].split()
    assert data.pinned
    assert data.name == name
    assert data.sha256 == {
        place.removeprefix(f"{name}/"): each for place, each in list_pinned(name).items()
    }


def test_birds_has_15_labels_in_the_paper_and_19_when_read_with_care(genuine):
    paper, clean = (
        read_mulan("birds", data=genuine("mulan"), protocol=each) for each in ("paper", "clean")
    )
    missing = {
        "Swainson's Thrush",
        "Hammond's Flycatcher",
        "MacGillivray's Warbler",
        "Stellar's Jay",
    }
    assert (paper.n_labels, clean.n_labels) == (15, 19)
    assert set(paper.unmatched) == missing
    assert clean.unmatched == ()
    assert missing <= set(paper.feature_names)
    assert missing <= set(clean.label_names)
    assert_array_equal(paper.fitted, clean.fitted)


def test_delicious_has_all_its_labels_in_both_protocols(genuine):
    for protocol in ("paper", "clean"):
        assert read_mulan("delicious", data=genuine("mulan"), protocol=protocol).n_labels == 983


# Made sets

NAMES = ["red", "f1", "it's", "f2", "f3"]
KINDS = ["{0,1}", "numeric", "{1,0}", "{a,b,c}", "real"]


def declare(names=NAMES, kinds=KINDS):
    lines = [
        f"@attribute '{n.replace(chr(39), chr(92) + chr(39))}' {k}"
        for n, k in zip(names, kinds, strict=True)
    ]
    return "\n".join(["@relation made", *lines, "@data", ""])


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        rows.append(
            [
                rng.integers(2),
                round(rng.normal(3, 2), 3),
                rng.integers(2),
                rng.choice(list("abc")),
                0.1,
            ]
        )
    return rows


def make_set(folder, *, name="made", sparse=False, n_train=80, labels=("it's", "red"), suffix=""):
    folder.mkdir(exist_ok=True)
    items = "".join(f'<label name="{each}"/>' for each in labels)
    (folder / f"{name}.xml").write_text(f"<labels>{items}</labels>")
    for part, n in (("train", n_train), ("test", 30)):
        lines = []
        for row in make_rows(n, len(part)):
            first = dict(enumerate([0, 0, 1, "a", 0]))
            pairs = ", ".join(f"{at} {v}" for at, v in enumerate(row) if v != first[at])
            lines.append("{" + pairs + "}" if sparse else ",".join(str(v) for v in row))
        (folder / f"{name}-{part}{suffix}.arff").write_text(declare() + "\n".join(lines))
    return folder


def test_labels_may_stand_anywhere_and_mean_what_their_values_say(tmp_path):
    data = read_mulan(make_set(tmp_path / "made"), protocol="clean", standardise=False)
    rows = make_rows(80, len("train"))
    assert data.label_names == ("red", "it's"), "in the order of the attributes"
    assert data.feature_names == ("f1", "f2", "f3")
    assert_array_equal(data.Y_train, [[row[0] == 1, row[2] == 1] for row in rows])
    assert_array_equal(data.X_train, [[row[1], "abc".index(row[3]), 0.1] for row in rows])
    assert data.X_train.flags.c_contiguous


def test_a_sparse_set_equals_the_dense_one(tmp_path):
    one = make_set(tmp_path / "dense")
    two = make_set(tmp_path / "sparse", sparse=True, suffix="-sparse")
    for protocol in ("paper", "clean"):
        ours, theirs = (read_mulan(folder, protocol=protocol) for folder in (one, two))
        for each in ("X_train", "Y_train", "X_test", "Y_test", "fitted"):
            assert_array_equal(getattr(ours, each), getattr(theirs, each))
    assert issparse(read_mulan(two, standardise=False).X_train)


def test_the_paper_matches_names_literally_and_keeps_the_rest_among_the_features(tmp_path):
    data = read_mulan(make_set(tmp_path / "made"), protocol="paper")
    assert data.label_names == ("red",)
    assert data.unmatched == ("it's",)
    assert data.feature_names == ("f1", "it's", "f2", "f3")


def test_the_paper_standardises_each_file_by_itself(tmp_path):
    data = read_mulan(make_set(tmp_path / "made"), protocol="paper")
    for X in (data.X_train, data.X_test):
        assert_allclose(X[:, :3].mean(axis=0), 0, atol=1e-12)
        assert_allclose(X[:, :3].std(axis=0), 1)
        assert_array_equal(X[:, 3], 0)


def test_clean_takes_its_statistics_from_the_fitted_rows_only(tmp_path):
    folder = make_set(tmp_path / "made")
    raw = read_mulan(folder, protocol="clean", standardise=False)
    data = read_mulan(folder, protocol="clean")
    fitted = raw.X_train[raw.fitted, :2]
    mean, deviation = fitted.mean(axis=0), fitted.std(axis=0)
    assert_allclose(data.X_train[:, :2], (raw.X_train[:, :2] - mean) / deviation)
    assert_allclose(data.X_test[:, :2], (raw.X_test[:, :2] - mean) / deviation)


@pytest.mark.parametrize(("n", "expected"), [(51, 50), (166, 50), (170, 51), (333, 99)])
def test_the_split_is_the_stated_permutation_with_30_percent_or_50_rows(tmp_path, n, expected):
    data = read_mulan(make_set(tmp_path / "made", n_train=n))
    order = np.random.default_rng(42).permutation(n)
    assert_array_equal(data.calibration, order[:expected])
    assert_array_equal(data.fitted, order[expected:])


def test_r_is_negatives_by_positives_of_the_fitted_rows_and_1_without_a_positive(tmp_path):
    folder = make_set(tmp_path / "made")
    full = read_mulan(folder, protocol="clean")
    path = folder / "made-train.arff"
    head, rows = path.read_text().split("@data\n")
    lines = rows.splitlines()
    for row in full.fitted:
        lines[row] = "0" + lines[row][1:]
    path.write_text(head + "@data\n" + "\n".join(lines))
    data = read_mulan(folder, protocol="clean")
    y = full.Y_train[full.fitted, 1]
    assert_allclose(data.r, [1, (~y).sum() / y.sum()])
    assert_allclose(data.prevalence, [0, y.mean()])
    assert_array_equal(data.calibration_positives, full.Y_train[full.calibration].sum(axis=0))
    assert (data.sha256["made-train.arff"], data.pinned) == (
        hashlib.sha256(path.read_bytes()).hexdigest(),
        False,
    )


def test_missing_features_can_be_kept_and_do_not_enter_the_statistics(tmp_path):
    folder = make_set(tmp_path / "made")
    path = folder / "made-train.arff"
    head, rows = path.read_text().split("@data\n")
    lines = rows.splitlines()
    cells = lines[5].split(",")
    cells[1] = "?"
    lines[5] = ",".join(cells)
    path.write_text(head + "@data\n" + "\n".join(lines))
    with pytest.raises(UnreadableFile, match=r"made-train.arff, line 13: .*missing"):
        read_mulan(folder)
    X = read_mulan(folder, missing="nan").X_train
    assert np.isnan(X[5, 0])
    assert np.isnan(X).sum() == 1
    assert_allclose(np.nanmean(X[:, 0]), 0, atol=1e-12)
    assert_allclose(np.nanstd(X[:, 0]), 1)


def test_a_constant_feature_becomes_exactly_0_and_one_of_nan_stays_so():
    X = np.full((7, 2), 0.1)
    X[:, 1] = np.nan
    apply_scale(X, measure_scale(X))
    assert_array_equal(X, np.column_stack([np.zeros(7), np.full(7, np.nan)]))


def test_a_set_is_found_by_folder_by_folder_and_name_and_by_name(tmp_path, monkeypatch):
    folder = make_set(tmp_path / "sets")
    make_set(folder, name="other")
    with pytest.raises(InvalidInput, match=r"one label list NAME\.xml, got made, other"):
        read_mulan(folder)
    assert read_mulan(folder / "other").name == "other"
    assert read_mulan(f"{folder}/MADE").name == "made"
    make_set(tmp_path / "made")
    assert read_mulan("made", data=tmp_path).name == "made"
    monkeypatch.chdir(tmp_path)
    assert read_mulan("made").name == "made"


# What is refused


def edit(folder, file, old, new):
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_an_unknown_protocol_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match='"paper" or "clean", got protocol=\'best\''):
        read_mulan(tmp_path, protocol="best")


def test_a_listed_label_without_an_attribute_is_refused_by_clean(tmp_path):
    folder = make_set(tmp_path / "made", labels=("red", "blue"))
    with pytest.raises(UnreadableFile, match="'blue', which is none"):
        read_mulan(folder, protocol="clean")
    assert read_mulan(folder, protocol="paper").unmatched == ("blue",)


def test_a_list_of_which_no_label_is_an_attribute_is_refused_by_both(tmp_path):
    folder = make_set(tmp_path / "made", labels=("blue",))
    for protocol in ("paper", "clean"):
        with pytest.raises(UnreadableFile, match="'blue', which is none"):
            read_mulan(folder, protocol=protocol)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("'f1'", "'g1'", "'f1' there is 'g1' here"),
        ("{a,b,c}", "{c,b,a}", "'f2' there is 'f2' here with other values"),
    ],
)
def test_a_test_file_with_other_attributes_is_refused(tmp_path, old, new, reason):
    folder = make_set(tmp_path / "made")
    edit(folder, "made-test.arff", old, new)
    with pytest.raises(UnreadableFile, match=reason):
        read_mulan(folder)


def test_a_test_file_with_more_attributes_is_refused(tmp_path):
    folder = make_set(tmp_path / "made")
    (folder / "made-test.arff").write_text(declare([*NAMES, "more"], [*KINDS, "real"]))
    with pytest.raises(UnreadableFile, match=r"the 5 attributes of made-train\.arff, got 6"):
        read_mulan(folder)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [("numeric", "2", "2"), ("{0,1,maybe}", "maybe", "'maybe'"), ("{0,1}", "?", "a missing value")],
)
def test_a_label_that_is_neither_0_nor_1_is_refused(tmp_path, kind, value, text):
    folder = make_set(tmp_path / "made")
    for part in ("train", "test"):
        edit(folder, f"made-{part}.arff", "'red' {0,1}", f"'red' {kind}")
    path = folder / "made-train.arff"
    head, rows = path.read_text().split("@data\n")
    path.write_text(head + "@data\n" + value + rows[1:])
    with pytest.raises(
        UnreadableFile, match=f"label 'red' must be 0 or 1, got {text} in data row 0"
    ):
        read_mulan(folder, missing="nan")


def test_a_training_file_too_short_to_split_is_refused(tmp_path):
    with pytest.raises(UnreadableFile, match=r"must have more than 50 rows.*got 50"):
        read_mulan(make_set(tmp_path / "made", n_train=50))


def test_features_that_would_not_fit_dense_are_refused_before_they_are_made(tmp_path, monkeypatch):
    rows = sparse.random(80, 200, 0.02, "csr", random_state=0)
    monkeypatch.setattr(reader, "free_memory", lambda: 100_000)
    with pytest.raises(InvalidInput, match="standardise=False"):
        reader._standardise(rows, rows, None)


@pytest.mark.parametrize("n_features", [1, 2, 64, 65, 129])
@pytest.mark.parametrize("by_fitted", [True, False])
def test_features_scaled_a_few_at_a_time_are_those_scaled_together(n_features, by_fitted):
    rng = np.random.default_rng(4)
    tables = [
        rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.3) for n in (90, 60)
    ]
    fitted = rng.permutation(90)[:60] if by_fitted else None
    expected = [table.copy() for table in tables]
    common = measure_scale(tables[0][fitted]) if by_fitted else None
    for table in expected:
        apply_scale(table, common or measure_scale(table))
    for form in (sparse.csr_matrix, np.array):
        actual = reader._standardise(*map(form, tables), fitted)
        assert all(np.array_equal(*pair) for pair in zip(actual, expected, strict=True))
