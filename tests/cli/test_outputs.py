"""Reports, figures and JSON files that `diagnose` and `plan` write, and where they come from."""

import hashlib
import html
import json
import shlex

import numpy as np
import pytest
import scipy.sparse as sp

from oddslip.cli.app import main
from oddslip.core.provenance import describe_run, hash_files
from oddslip.datasets import synthetic_pair
from oddslip.errors import UnreadableFile

PAIR = synthetic_pair(600, 12, seed=2)
QUICK = ["-k", "3", "--bootstrap", "20"]
PLAN = ["plan", "y.npz", "--rounds", "60", "--learning-rate", "0.05"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", PAIR.weighted)
    np.save("u.npy", PAIR.unweighted)
    np.savetxt("w.txt", PAIR.weights)
    sp.save_npz("y.npz", sp.csr_array(PAIR.labels.astype(np.int8)))
    return tmp_path


def run(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_the_report_says_command_seed_versions_and_hashes(folder, capsys):
    file_name = "a report & more.html"
    arguments = ["diagnose", "s.npy", "y.npz", *QUICK, "--weights", "w.txt", "--seed", "77"]
    output = run(capsys, *arguments, "--unweighted", "u.npy", "--html", file_name)
    assert f"Written: {file_name}." in output
    page = html.unescape((folder / file_name).read_text(encoding="utf-8"))
    assert shlex.join(["oddslip", *arguments, "--unweighted", "u.npy", "--html", file_name]) in page
    assert np.__version__ in page
    for name in ("s.npy", "y.npz", "w.txt", "u.npy"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in page


def test_the_json_file_is_what_json_prints(folder, capsys):
    arguments = ["diagnose", "s.npy", "y.npz", *QUICK]
    printed = run(capsys, *arguments, "--json", "--json-file", "found.json")
    assert (folder / "found.json").read_text(encoding="utf-8") == printed
    assert json.loads(printed)["schema"] == "oddslip.diagnosis/1"
    printed = run(capsys, *PLAN, "--json", "--json-file", "plan.json")
    assert (folder / "plan.json").read_text(encoding="utf-8") == printed


def test_beside_json_nothing_else_is_printed(folder, capsys):
    output = run(capsys, "diagnose", "s.npy", "y.npz", *QUICK, "--json", "--html", "r.html")
    json.loads(output)
    assert (folder / "r.html").exists()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize("command", ["diagnose", "plan"])
def test_a_figure_is_drawn_in_the_format_of_its_ending(folder, capsys, command, ending):
    arguments = ["diagnose", "s.npy", "y.npz", *QUICK] if command == "diagnose" else PLAN
    run(capsys, *arguments, "--figure", f"f.{ending}")
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert (folder / f"f.{ending}").read_bytes().startswith(begins[ending])


@pytest.mark.parametrize(
    ("option", "place", "line"),
    [
        ("--html", "no/r.html", "existing folder"),
        ("--html", ".", "existing folder"),
        ("--json-file", "no/r.json", "existing folder"),
        ("--figure", "no/f.png", "existing folder"),
        ("--figure", "f.bmp", "must end in .png, .svg, .pdf"),
    ],
)
def test_a_place_that_can_not_be_written_is_refused_before_anything_is_read(
    folder, capsys, option, place, line
):
    before = sorted(folder.iterdir())
    assert main(["diagnose", "none.npy", "y.npz", option, place]) == 2
    output = capsys.readouterr().err
    assert line in output
    assert output.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_bad_input_leaves_no_report_behind(folder, capsys):
    assert main(["diagnose", "none.npy", "y.npz", "--html", "r.html", "--json-file", "r.json"]) == 2
    assert not (folder / "r.html").exists()
    assert not (folder / "r.json").exists()


def test_every_file_of_a_folder_is_hashed(tmp_path):
    parts = tmp_path / "scores.parquet"
    (parts / "day=1").mkdir(parents=True)
    (parts / "a.parquet").write_bytes(b"a")
    (parts / "day=1" / "b.parquet").write_bytes(b"bb")
    files = hash_files({"scores": parts})
    assert [file["bytes"] for file in files.values()] == [1, 2]
    assert [file["SHA-256"] for file in files.values()] == [
        hashlib.sha256(content).hexdigest() for content in (b"a", b"bb")
    ]


def test_files_longer_than_a_piece_are_hashed_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("oddslip.io.files.CHUNK_BYTES", 7)
    (tmp_path / "f").write_bytes(bytes(range(100)))
    files = hash_files({"scores": tmp_path / "f"})
    assert files["scores"]["SHA-256"] == hashlib.sha256(bytes(range(100))).hexdigest()


def test_a_file_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(UnreadableFile, match="gone"):
        hash_files({"scores": tmp_path / "gone"})


def test_inputs_that_were_not_given_are_not_told(tmp_path):
    assert describe_run(["diagnose"], {"weights": None}, seed=1)["inputs"] == {}


def test_a_command_is_quoted_for_the_shell():
    lines = describe_run(["diagnose", "my scores.npy", "$(boo)"], {}, seed=1)
    assert lines["command"] == "oddslip diagnose 'my scores.npy' '$(boo)'"
