"""An archive holds every finished array with its hash, is written whole, and shows any change."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.app import app
from experiments.archive import MANIFEST, check_archive, write_archive
from oddslip.errors import InvalidInput, UnreadableFile


@pytest.fixture
def work(tmp_path):
    arm = tmp_path / "work/tafeng/0123"
    (arm / "training").mkdir(parents=True)
    np.save(arm / "test.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    (arm / "finished.json").write_text("{}")
    np.save(arm / "training/group.npy", np.ones(2))
    half = tmp_path / "work/tafeng/4567"
    half.mkdir()
    np.save(half / "test.npy", np.ones(2))  # its arm is not finished
    np.savez(tmp_path / "work/emotions.npz", test=np.ones(3))
    return tmp_path / "work"


def test_an_archive_holds_what_is_finished_with_its_hash(work, tmp_path):
    manifest = write_archive(work, tmp_path / "scores.zip")
    assert [each["path"] for each in manifest["files"]] == [
        "emotions.npz",
        "tafeng/0123/finished.json",
        "tafeng/0123/test.npy",
    ]
    with zipfile.ZipFile(tmp_path / "scores.zip") as archive:
        assert json.loads(archive.read(MANIFEST)) == manifest
        for each in manifest["files"]:
            raw = (work / each["path"]).read_bytes()
            assert archive.read(each["path"]) == raw
            assert each["sha256"] == hashlib.sha256(raw).hexdigest()
    assert check_archive(tmp_path / "scores.zip") == manifest


def test_the_same_files_give_the_same_bytes(work, tmp_path):
    for name in ("a.zip", "b.zip"):
        write_archive(work, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_an_array_that_needs_pickle_is_refused_and_nothing_is_written(work, tmp_path):
    np.save(work / "tafeng/0123/objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "scores.zip").write_text("before")
    with pytest.raises(UnreadableFile, match="without pickle"):
        write_archive(work, tmp_path / "scores.zip")
    assert (tmp_path / "scores.zip").read_text() == "before"


def test_an_altered_archive_is_found_out(work, tmp_path):
    path = tmp_path / "scores.zip"
    write_archive(work, path)
    raw = bytearray(path.read_bytes())
    at = raw.find(np.float32(5).tobytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(UnreadableFile, match="was altered"):
        check_archive(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", "x")
    with pytest.raises(UnreadableFile, match="not an archive"):
        check_archive(path)


def test_a_folder_without_arrays_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="got none"):
        write_archive(tmp_path, tmp_path / "scores.zip")
    with pytest.raises(InvalidInput, match="must be a folder"):
        write_archive(tmp_path / "nowhere", tmp_path / "scores.zip")


def test_the_command_writes_and_checks(work, tmp_path):
    path = str(tmp_path / "scores.zip")
    words = ["archive"]
    written = CliRunner().invoke(app, [*words, "--work", str(work), "-o", path])
    assert written.exit_code == 0, written.output
    checked = CliRunner().invoke(app, [*words, "--check", path, "--json"])
    assert json.loads(checked.stdout)["n_files"] == 3
    refused = CliRunner().invoke(app, words).exception
    assert isinstance(refused, InvalidInput)  # which the program ends with code 2
