"""What was made once is kept whole, found again, and made anew when damaged."""

import dataclasses
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import random_array

from experiments.datasets.cache import (
    DESCRIPTION,
    MANIFEST,
    cached_entry,
    hash_file,
    hash_inputs,
    is_whole,
    load_rows,
    name_entry,
    recall_rows,
    save_rows,
    unchanged,
    whole_folder,
)
from experiments.datasets.recommendation import Period, Recommendation
from oddslip.errors import InvalidInput, UnreadableFile


def make_rows(seed=0, dense=False, ids=None):
    rng = np.random.default_rng(seed)
    periods = {}
    for name in ("train", "validation", "test"):
        X = random_array((5, 7), density=0.4, format="csr", dtype=np.float32, rng=rng)
        Y = random_array((5, 3), density=0.4, format="csr", rng=rng).astype(np.bool_)
        row_ids = np.arange(5) if ids is None else np.array(ids)
        periods[name] = Period(X.toarray() if dense else X, Y, row_ids)
    return Recommendation(
        name="some",
        **periods,
        label_names=("a", "é\n", "<b>"),
        feature_names=tuple("ABCDEFG"),
        settings={"n_labels": 3},
        sha256={"f": "0" * 64},
    )


def as_dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


def assert_same(A, B):
    for field in ("name", "label_names", "feature_names", "settings", "sha256"):
        assert getattr(A, field) == getattr(B, field)
    for name in ("train", "validation", "test"):
        one, two = getattr(A, name), getattr(B, name)
        np.testing.assert_array_equal(as_dense(one.X), as_dense(two.X))
        np.testing.assert_array_equal(one.Y.toarray(), two.Y.toarray())
        np.testing.assert_array_equal(one.row_ids, two.row_ids)
        assert one.X.dtype == two.X.dtype


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("ids", [None, ["x", "ü", "..", "", "z z"]])
def test_rows_come_back_as_they_were_kept(tmp_path, dense, ids):
    rows = make_rows(dense=dense, ids=ids)
    save_rows(tmp_path, rows)
    assert_same(load_rows(tmp_path), rows)


def test_a_dense_table_stays_on_disk(tmp_path):
    save_rows(tmp_path, make_rows(dense=True))
    assert isinstance(load_rows(tmp_path).train.X, np.memmap)


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        save_rows(tmp_path / name, make_rows())
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(files) == 10
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_rows_are_built_once_and_then_found(tmp_path):
    calls = []

    def build():
        calls.append(1)
        return make_rows()

    first = recall_rows(tmp_path, {"n": 1}, build)
    second = recall_rows(tmp_path, {"n": 1}, build)
    assert_same(first, second)
    assert len(calls) == 1
    recall_rows(tmp_path, {"n": 2}, build)
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["X_train.npz", "ids_test.npy", DESCRIPTION, MANIFEST])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_entry_is_made_anew(tmp_path, name, damage):
    rows = recall_rows(tmp_path, {"n": 1}, make_rows)
    path = tmp_path / name_entry({"n": 1}) / name
    raw = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(raw[:-5] if damage == "cut" else bytes([raw[0] ^ 1]) + raw[1:])
    calls = []
    again = recall_rows(tmp_path, {"n": 1}, lambda: calls.append(1) or make_rows())
    assert_same(rows, again)
    assert calls == [1]
    assert path.read_bytes() == raw


def test_an_interrupted_entry_leaves_nothing(tmp_path):
    def fill(entry):
        (entry / "half.txt").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_entry(tmp_path, {"n": 1}, fill)
    assert list(tmp_path.iterdir()) == []


def test_of_two_makers_of_one_entry_the_first_stays(tmp_path):
    def fill(entry):
        cached_entry(tmp_path, {"n": 1}, lambda other: (other / "a").write_text("first"))
        (entry / "a").write_text("second")

    entry = cached_entry(tmp_path, {"n": 1}, fill)
    assert (entry / "a").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == [entry.name]


@pytest.mark.parametrize("change", [{"n": 2}, {"m": 1}, {"n": None}, {"n": "1"}, {"n": 1, "m": 1}])
def test_other_settings_have_another_name(change):
    assert name_entry({"n": 1}) != name_entry(change)


def test_the_order_of_settings_does_not_change_the_name():
    assert name_entry({"n": 1, "m": 2}) == name_entry({"m": 2, "n": 1})


def test_a_folder_that_can_not_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnreadableFile, match=r"file can ?not be written .*Pass another folder"):
        cached_entry(tmp_path / "file", {"n": 1}, lambda entry: None)


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a")
    with (
        pytest.raises(UnreadableFile, match=r"some.csv changed while it was read"),
        unchanged([path]),
    ):
        path.write_text("ab")
    with (
        pytest.raises(UnreadableFile, match=r"some.csv changed while it was read"),
        unchanged([path]),
    ):
        path.unlink()


def test_a_file_that_does_not_change_may_be_read(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a")
    with unchanged([path]):
        text = path.read_text()
    assert text == path.read_text() == "a"


def test_inputs_are_hashed_by_name_and_a_missing_one_is_one_line(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("a")
    assert hash_inputs([path]) == {"some.csv": hash_file(path)}
    with pytest.raises(UnreadableFile, match=r"none.csv can ?not be read"):
        hash_inputs([tmp_path / "none.csv"])


def test_other_files_are_no_rows(tmp_path):
    with pytest.raises(UnreadableFile, match="must hold rows as they were kept"):
        load_rows(tmp_path)
    (tmp_path / DESCRIPTION).write_text("[]")
    with pytest.raises(UnreadableFile, match="must hold rows as they were kept"):
        load_rows(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"label_names": ("a", "b")},
        {"feature_names": tuple("ABCDEFGH")},
        {"label_names": ("a", "b", 3)},
        {"train": dataclasses.replace(make_rows().train, row_ids=np.arange(4))},
        {"test": dataclasses.replace(make_rows().test, Y=make_rows().test.Y[:4])},
    ],
)
def test_rows_that_do_not_fit_together_are_refused(change):
    with pytest.raises(InvalidInput, match="must "):
        dataclasses.replace(make_rows(), **change)


def test_nothing_is_unpickled(tmp_path):
    save_rows(tmp_path, make_rows())
    np.save(tmp_path / "ids_train.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableFile, match="must hold rows as they were kept"):
        load_rows(tmp_path)


def test_of_two_that_mend_one_entry_neither_removes_what_the_other_made(tmp_path, monkeypatch):
    def recall():
        return cached_entry(tmp_path, {"n": 1}, lambda folder: (folder / "a").write_text("whole"))

    entry = recall()
    (entry / "a").write_text("damaged")
    begun, second_done, removed = threading.Event(), threading.Event(), []
    rmtree = shutil.rmtree

    def slowly(path, **options):
        if path == entry and not begun.is_set():
            begun.set()
            second_done.wait(0.5)
            removed.append(is_whole(entry))
        rmtree(path, **options)

    monkeypatch.setattr("experiments.datasets.cache.shutil.rmtree", slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(recall)
        begun.wait(60)
        second = pool.submit(lambda: (recall(), second_done.set()))
        first.result()
        second.result()
    assert removed == [False]
    assert is_whole(entry)
    assert [path.name for path in tmp_path.iterdir()] == [entry.name]


def test_a_foreign_entry_under_the_name_gives_way_only_once_the_new_one_is_whole(tmp_path):
    target = tmp_path / "entry"
    target.mkdir()
    (target / "old").touch()
    with whole_folder(target) as unfinished:
        (unfinished / "new").touch()
        assert os.listdir(target) == ["old"]
    assert os.listdir(target) == ["new"]


def test_what_a_killed_run_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    dead = tmp_path / ".entry.0123456789ab"
    dead.mkdir()
    (dead / "half").touch()
    with whole_folder(tmp_path / "entry") as living:
        (living / "first").touch()
        with whole_folder(tmp_path / "entry") as other:
            (other / "second").touch()
            assert sorted(tmp_path.iterdir()) == sorted([living, other])
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


def test_a_full_disk_is_told_in_one_line_with_the_entry(tmp_path):
    with (
        pytest.raises(UnreadableFile, match=r"entry can ?not be written .No space left on device"),
        whole_folder(tmp_path / "entry"),
    ):
        raise OSError("9 requested and 0 written")  # as NumPy says it
    assert list(tmp_path.iterdir()) == []


def test_every_field_of_a_recommendation_is_kept():
    names = {"name", "train", "validation", "test", "label_names", "feature_names"}
    names |= {"settings", "sha256"}
    asked_anew = {"generated"}  # by every reader: a note may appear beside files already read
    assert {f.name for f in dataclasses.fields(Recommendation)} == names | asked_anew
