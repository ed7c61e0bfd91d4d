"""Where data sets are looked for, and what the pinned ones must be."""

import hashlib
import os
from pathlib import Path

import pytest

from oddslip.datasets import files, find_data
from oddslip.datasets.files import list_files, name_pinned
from oddslip.datasets.pins import PINS
from oddslip.errors import InvalidInput, UnreadableFile

DATA = Path(os.environ.get("ODDSLIP_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(not (DATA / "mulan").is_dir(), reason="no data beside the project")


def make_set(folder, name="some", ending=".arff"):
    folder.mkdir(parents=True)
    for file in (f"{name}.xml", f"{name}-train{ending}", f"{name}-test{ending}"):
        (folder / file).touch()
    return folder


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An empty world: a data folder and a cache, and nothing beside the checkout."""
    monkeypatch.setenv("ODDSLIP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files.sys, "platform", "linux")
    monkeypatch.setattr(files, "__file__", str(tmp_path / "a" / "b" / "c" / "files.py"))
    return tmp_path


@needs_data
@pytest.mark.parametrize("name", PINS)
def test_the_pins_are_those_of_the_files_beside_the_project(name):
    found = find_data(name, DATA)
    for path, pin in zip((found.labels, found.train, found.test), PINS[name].files, strict=True):
        raw = path.read_bytes()
        assert (path.name, len(raw), hashlib.sha256(raw).hexdigest()) == pin


def test_every_pinned_set_has_a_source_and_three_different_files():
    hashes = [file.sha256 for each in PINS.values() for file in each.files]
    assert len(set(hashes)) == 33
    assert all(len(each) == 64 for each in hashes)
    assert all(each.source for each in PINS.values())


def test_a_set_is_pinned_only_if_all_of_its_files_are():
    hashes = [file.sha256 for file in PINS["flags"].files]
    assert name_pinned(hashes) == "flags"
    assert name_pinned([*hashes[:2], PINS["birds"].test.sha256]) is None
    assert name_pinned(hashes[:2]) is None


def test_the_variable_comes_before_the_checkout_and_the_checkout_before_the_cache(
    places, monkeypatch
):
    monkeypatch.setattr(
        files, "__file__", str(places / "project" / "src" / "oddslip" / "x" / "files.py")
    )
    told, beside = places / "data" / "some", places / "shared" / "data" / "mulan" / "some"
    cached = places / "cache" / "oddslip" / "mulan" / "some"
    for folder in (cached, beside, told):
        make_set(folder)
        assert find_data("some").labels.parent == folder


def test_a_folder_that_is_given_is_the_only_one_looked_into(places):
    make_set(places / "data" / "some")
    with pytest.raises(UnreadableFile, match="'some' must be a folder of"):
        find_data("some", places / "elsewhere")


def test_a_set_that_lacks_a_file_in_one_place_is_taken_from_another(places):
    half = make_set(places / "data" / "some")
    (half / "some-test.arff").unlink()
    with pytest.raises(UnreadableFile, match=r"must hold some-test-sparse.arff or some-test.arff"):
        find_data("some")
    whole = make_set(places / "cache" / "oddslip" / "mulan" / "some")
    assert find_data("some").test.parent == whole


def test_a_set_that_is_nowhere_says_where_was_looked_and_what_to_do(places):
    with pytest.raises(UnreadableFile) as caught:
        find_data("some")
    assert str(places / "data") in str(caught.value)
    assert "ODDSLIP_DATA" in str(caught.value)


def test_names_of_folders_and_files_match_in_any_case_and_sparse_files_too(tmp_path):
    make_set(tmp_path / "Some", "SOME", "-Sparse.ARFF")
    found = find_data("some", tmp_path)
    assert found.name == "SOME"
    assert found.train.name == "SOME-train-Sparse.ARFF"


def test_the_sparse_file_is_taken_where_both_are(tmp_path):
    folder = make_set(tmp_path / "some")
    (folder / "some-train-sparse.arff").touch()
    assert list_files(folder).train.name == "some-train-sparse.arff"


def test_a_folder_without_a_label_list_and_no_folder_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"one label list NAME\.xml, got none"):
        list_files(tmp_path)
    with pytest.raises(UnreadableFile, match="must be a folder with a MULAN data set"):
        list_files(tmp_path / "none")


def test_a_name_never_leads_out_of_the_folder(tmp_path):
    make_set(tmp_path / "secret")
    (tmp_path / "data").mkdir()
    with pytest.raises(UnreadableFile):
        find_data("../secret", tmp_path / "data")


def test_of_two_spellings_the_very_one_asked_for_is_taken(tmp_path):
    folder = make_set(tmp_path / "some")
    (folder / "SOME.xml").touch()
    assert list_files(folder, "some").labels.name == "some.xml"
