"""Where data sets are looked for, and what the pinned ones must be."""

import hashlib
import os
import subprocess
import sys

import pytest

from experiments.datasets.baskets.instacart import read_instacart
from experiments.datasets.baskets.tafeng import read_tafeng
from experiments.datasets.mulan import files
from experiments.datasets.mulan.files import (
    SOURCES,
    find_data,
    list_files,
    list_pinned,
    name_pinned,
    read_registry,
)
from experiments.datasets.santander.sample import read_santander_sample
from oddslip.errors import InvalidInput, UnreadableFile


def make_set(folder, name="some", ending=".arff"):
    folder.mkdir(parents=True)
    for file in (f"{name}.xml", f"{name}-train{ending}", f"{name}-test{ending}"):
        (folder / file).touch()
    return folder


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An empty world: a data folder and a cache."""
    monkeypatch.setenv("ODDSLIP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files.sys, "platform", "linux")
    return tmp_path


@pytest.mark.parametrize("name", SOURCES)
def test_the_pins_are_those_of_the_genuine_files(name, genuine):
    files = find_data(name, genuine("mulan"))
    for path, pin in zip(
        (files.labels, files.train, files.test), list_pinned(name).items(), strict=True
    ):
        assert (f"{name}/{path.name}", hashlib.sha256(path.read_bytes()).hexdigest()) == pin


def test_every_pinned_set_has_a_source_and_three_different_files():
    hashes = read_registry().values()
    assert len(set(hashes)) == 33
    assert all(len(each) == 64 for each in hashes)
    assert [len(list_pinned(name)) for name in SOURCES] == [3] * 11


def test_a_set_is_pinned_only_if_all_of_its_files_are():
    hashes = list(list_pinned("flags").values())
    assert name_pinned(hashes) == "flags"
    assert name_pinned([*hashes[:2], *list(list_pinned("birds").values())[2:]]) is None
    assert name_pinned(hashes[:2]) is None


def test_the_variable_comes_before_the_cache(places):
    data_folder, cached = places / "data" / "some", places / "cache" / "oddslip" / "mulan" / "some"
    for folder in (cached, data_folder):
        make_set(folder)
        assert find_data("some").labels.parent == folder


def test_without_an_argument_data_is_looked_for_in_the_variables_folder_and_the_cache_alone(
    places, monkeypatch
):
    # As if this were a checkout with a data folder beside it, and run from there.
    home = places / "project" / "src" / "oddslip" / "datasets"
    monkeypatch.setattr(files, "__file__", str(home / "files.py"))
    for folder in (places / "shared" / "data", places / "project"):
        make_set(folder / "mulan" / "some")
    monkeypatch.chdir(places / "project")
    assert files.search_path() == [places / "data", places / "cache" / "oddslip"]
    with pytest.raises(UnreadableFile, match="'some' must be a folder of"):
        find_data("some")
    monkeypatch.delenv("ODDSLIP_DATA")
    assert files.search_path() == [places / "cache" / "oddslip"]


READERS = {
    "mulan": lambda: find_data("some"),
    "tafeng": read_tafeng,
    "instacart": read_instacart,
    "santander sample": read_santander_sample,
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_says_where_it_looked_and_how_to_point_at_data(name, places):
    with pytest.raises(UnreadableFile) as caught:
        READERS[name]()
    for part in (str(places / "data"), str(places / "cache" / "oddslip"), "ODDSLIP_DATA", "Pass "):
        assert part in str(caught.value)


@pytest.mark.parametrize(("variables", "code"), [({}, 0), ({"CI": "true"}, 1)])
def test_where_tests_are_required_missing_data_is_a_failure_and_else_a_skip(
    variables, code, tmp_path
):
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"ODDSLIP_DATA": str(tmp_path), **variables}
    test = f"{__file__}::test_the_pins_are_those_of_the_genuine_files"
    command = [sys.executable, "-m", "pytest", test, "-p", "no:cacheprovider", "-p", "no:xdist"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == code
    assert ("11 skipped" if code == 0 else "needs genuine data in") in ran.stdout


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
    files = find_data("some", tmp_path)
    assert files.name == "SOME"
    assert files.train.name == "SOME-train-Sparse.ARFF"


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
