"""Ta-Feng: one JSON object of users, each with baskets in order of time."""

import json

import numpy as np
import pytest

from experiments.datasets.baskets.tafeng import find_tafeng, read_tafeng
from experiments.datasets.mulan import files
from oddslip.errors import UnreadableFile

HISTORIES = {
    "10": [[3, 1], [1], [2], [1, 3], [2]],
    "9": [[5], [1, 2], [2], [3]],
    "7": [[1], [2], [3]],
}


@pytest.fixture
def read(tmp_path):
    def read(histories=HISTORIES, n_labels=2):
        text = histories if isinstance(histories, str) else json.dumps(histories)
        (tmp_path / "tafeng_merged.json").write_text(text)
        return read_tafeng(tmp_path, n_labels, tmp_path / "cache")

    return read


def test_the_last_three_baskets_are_the_three_periods(read):
    rows = read(n_labels=None)
    assert rows.label_names == ("1", "2", "3", "5")
    assert rows.train.row_ids.tolist() == [9, 10]
    np.testing.assert_array_equal(rows.train.Y.toarray(), [[1, 1, 0, 0], [0, 1, 0, 0]])
    np.testing.assert_array_equal(rows.validation.Y.toarray(), [[0, 1, 0, 0], [1, 0, 1, 0]])
    np.testing.assert_array_equal(rows.test.Y.toarray(), [[0, 0, 1, 0], [0, 1, 0, 0]])
    assert rows.settings["n_users_left_out"] == 1


def test_labels_are_the_most_frequent_of_training_baskets(read):
    assert read(n_labels=1).label_names == ("2",)
    assert read(n_labels=2).label_names == ("1", "2")


def test_the_order_of_users_and_of_items_in_the_file_does_not_matter(read):
    rows = read()
    other = read({user: [b[::-1] for b in HISTORIES[user]] for user in reversed(HISTORIES)})
    assert (rows.test.X != other.test.X).nnz == 0
    assert rows.test.row_ids.tolist() == other.test.row_ids.tolist()


def test_users_that_are_not_numbers_stay_text(read):
    rows = read({"b": HISTORIES["9"], "a\n": HISTORIES["10"], "01": HISTORIES["9"]})
    assert rows.train.row_ids.tolist() == ["01", "a\n", "b"]


def test_users_that_are_one_number_in_two_spellings_stay_two(read):
    rows = read({"1": HISTORIES["9"], "01": HISTORIES["9"]})
    assert rows.train.row_ids.tolist() == ["01", "1"]


@pytest.mark.parametrize(
    ("histories", "message"),
    [
        (json.dumps(HISTORIES)[:-9], "cut short or not JSON"),
        ('{"1": [[1]], "1": [[2]]}', "a user stands in it twice"),
        ("[" * 100_000, "cut short or not JSON"),
        ("[1]", "must be one object"),
        ('{"1": 5}', "must hold a list of baskets for every user"),
        ('{"1": [5]}', "must hold lists of items as baskets"),
        ('{"1": [["a"]]}', "must hold whole numbers as items"),
        ('{"1": [[1.5]]}', "must hold whole numbers as items"),
        ('{"1": [[true]]}', "must hold whole numbers as items"),
        ('{"1": [[99999999999999999999]]}', "must hold whole numbers as items"),
        (
            '{"1": [[1], [], [2], [3]]}',
            "in every order, got 1 without, the first of user '1', order 2",
        ),
        ('{"1": [[1], [2, 7, 2], [2], [3]]}', "the first item '2' of user '1', order 2 in time"),
        ("{}", "must hold at least one order"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_reason(read, histories, message):
    with pytest.raises(UnreadableFile) as caught:
        read(histories)
    assert "tafeng_merged.json" in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(read, tmp_path):
    (tmp_path / "tafeng_merged.json").write_bytes(b'{"\xff": [[1]]}')
    with pytest.raises(UnreadableFile, match="cut short or not JSON"):
        read_tafeng(tmp_path, 2, tmp_path / "cache")


def test_a_changed_file_gives_other_rows_from_the_same_cache(read):
    before = read()
    changed = {**HISTORIES, "9": [[5], [1, 2], [2], [1]]}
    after = read(changed)
    assert before.sha256 != after.sha256
    assert (before.test.Y != after.test.Y).nnz > 0


def test_the_file_is_found_by_itself_by_its_folder_and_by_the_one_above(tmp_path, monkeypatch):
    home = tmp_path / "tafeng"
    home.mkdir()
    path = home / "tafeng_merged.json"
    path.write_text("{}")
    assert find_tafeng(path) == find_tafeng(home) == find_tafeng(tmp_path) == path
    monkeypatch.setenv("ODDSLIP_DATA", str(tmp_path))
    assert find_tafeng() == path


def test_a_missing_file_is_one_line_that_says_where_it_is_from(tmp_path, monkeypatch):
    monkeypatch.setenv("ODDSLIP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(files, "__file__", str(tmp_path / "a" / "b" / "c" / "files.py"))
    with pytest.raises(UnreadableFile, match=r'nowhere.*"A Next Basket Recommendation Reality'):
        find_tafeng()


def test_the_genuine_file_has_the_counts_of_its_users(tmp_path, genuine):
    rows = read_tafeng(genuine("tafeng").parent, cache=tmp_path)
    raw = json.loads((genuine("tafeng") / "tafeng_merged.json").read_text())
    users = sorted(int(user) for user, baskets in raw.items() if len(baskets) >= 4)
    assert rows.train.row_ids.tolist() == users
    assert rows.train.X.shape == rows.test.X.shape == (10061, 2006)
    assert rows.settings["n_users_left_out"] == 13858 - 10061
    labels = set(map(int, rows.label_names))
    for period, back in ((rows.train, 3), (rows.validation, 2), (rows.test, 1)):
        true = [len(labels & set(raw[str(user)][-back])) for user in users]
        assert np.diff(period.Y.indptr).tolist() == true
    assert rows.positives.min() > 0
