"""Scores streamed into files: the cells of `predict_margin`, whatever happened on the way."""

import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("lightgbm")

from scipy import sparse

from oddslip.errors import InvalidInput
from oddslip.learners import OneVsRest, score_to_file
from oddslip.learners import scoring as scorings
from oddslip.sources import open_source

SCRIPT = """
import os, signal, sys
import numpy as np
from oddslip.learners import OneVsRest, score_to_file
from oddslip.learners import scoring as scorings

folder, path, kind, when = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

write = scorings.ResumableScores._write
written = []

def write_and_die(self, start, cells):
    written.append(start)
    if len(written) == 3 and when == "before the journal":
        self.log.close()
        self.log = type("Log", (), {"write": die, "close": lambda self: None})()
    write(self, start, cells)
    if len(written) == 3:
        die()

if when == "while renaming":
    scorings.ResumableScores.finish = die
else:
    scorings.ResumableScores._write = write_and_die
scorings._BLOCK_BYTES = 8 * 6 * 40
model = OneVsRest.load(folder + "/model")
score_to_file(model, np.load(folder + "/X.npy", mmap_mode="r"), path, kind=kind)
"""


def train(folder, names=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    Y = X @ rng.normal(size=(5, 6)) + rng.logistic(size=(300, 6)) > 2
    Y[:, 2] = False
    parameters = {"num_iterations": 4, "num_leaves": 5}
    model = OneVsRest(weights="balanced", parameters=parameters, memory_bytes=40 * 300 * 3)
    model.fit(X, Y, label_names=names).save(folder / "model")
    np.save(folder / "X.npy", X)
    return model, X


def read(path, kind="probability"):
    return np.concatenate([block.scores for block in open_source(path, kind=kind).blocks()])


@pytest.mark.parametrize("ending", ["npy", "parquet"])
@pytest.mark.parametrize("block", [8 * 6 * 40, 10**9])
def test_a_file_holds_what_predicting_at_once_gives(tmp_path, monkeypatch, ending, block):
    monkeypatch.setattr(scorings, "_BLOCK_BYTES", block)
    model, X = train(tmp_path, names=list("abcdef"))
    paths = score_to_file(model, X, tmp_path / f"s.{ending}", kind="both", row_ids=range(300))
    assert [path.name for path in paths] == [f"s.{ending}", f"s.margin.{ending}"]
    chances, margins = read(paths[0]), read(paths[1], "margin")
    assert chances.dtype == np.float32
    assert np.array_equal(chances, model.predict_proba(X).astype(np.float32))
    assert np.array_equal(margins, model.predict_margin(X))
    assert not chances[:, 2].any()
    if ending == "parquet":
        assert open_source(paths[0]).label_names == tuple("abcdef")
        assert open_source(paths[0]).row_ids().tolist() == list(range(300))
    assert not list(tmp_path.glob(".*"))


def test_sparse_rows_score_as_dense_ones_do(tmp_path):
    model, X = train(tmp_path)
    X = np.where(X > 1, X, 0)
    for number, form in enumerate((X, sparse.csr_matrix(X), sparse.csc_array(X))):
        path = tmp_path / f"{number}.npy"
        score_to_file(model, form, path, kind="margin", margin_dtype="float32")
        assert np.array_equal(np.load(path), model.predict_margin(X).astype(np.float32))


@pytest.mark.parametrize("ending", ["npy", "parquet"])
@pytest.mark.parametrize("when", ["after a block", "before the journal", "while renaming"])
def test_a_scoring_killed_without_warning_continues_and_ends_with_the_same_cells(
    tmp_path, monkeypatch, ending, when
):
    model, X = train(tmp_path)
    path = tmp_path / f"s.{ending}"
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(path), "both", when]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not path.exists()
    monkeypatch.setattr(scorings, "_BLOCK_BYTES", 8 * 6 * 40)
    scored = []
    score = scorings.ResumableScores._score

    def counted(self, start):
        scored.append(start)
        return score(self, start)

    monkeypatch.setattr(scorings.ResumableScores, "_score", counted)
    paths = score_to_file(OneVsRest.load(tmp_path / "model"), X, path, kind="both")
    missing = {"after a block": 5, "before the journal": 6, "while renaming": 0}
    assert len(scored) == missing[when]
    assert np.array_equal(read(paths[0]), model.predict_proba(X).astype(np.float32))
    assert np.array_equal(read(paths[1], "margin"), model.predict_margin(X))
    assert not list(tmp_path.glob(".*"))


def test_an_unfinished_scoring_of_other_rows_is_begun_again(tmp_path, monkeypatch):
    model, X = train(tmp_path)
    path = tmp_path / "s.npy"
    with monkeypatch.context() as broken:
        broken.setattr(scorings.ResumableScores, "finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            score_to_file(model, X, path)
    assert list(tmp_path.glob(".s.npy.*"))
    score_to_file(model, X[::-1], path)
    assert np.array_equal(np.load(path), model.predict_proba(X[::-1]).astype(np.float32))


def leave_unfinished(model, X, path, monkeypatch):
    """A scoring whose blocks are all on disk, and whose file has no name yet."""
    monkeypatch.setattr(scorings, "_BLOCK_BYTES", 8 * 6 * 40)
    with monkeypatch.context() as broken:
        broken.setattr(scorings.ResumableScores, "finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            score_to_file(model, X, path, kind="both")


def flip_cell(path):
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 64
    path.write_bytes(raw)


def swap_blocks(path):
    raw = path.read_bytes()
    head, body = raw[:128], raw[128:]
    width = 40 * 6 * (len(body) // 300 // 6)
    path.write_bytes(head + body[width : 2 * width] + body[:width] + body[2 * width :])


def change_header(path):
    path.write_bytes(path.read_bytes().replace(b"(300, 6)", b"(6, 300)"))


DAMAGES = {
    "a cell": (".s.npy.unfinished", flip_cell),
    "a margin": (".s.margin.npy.unfinished", flip_cell),
    "two blocks": (".s.npy.unfinished", swap_blocks),
    "the header": (".s.npy.unfinished", change_header),
    "all of it": (".s.npy.unfinished", lambda path: path.write_bytes(b"")),
    "its end": (".s.npy.unfinished", lambda path: path.write_bytes(path.read_bytes()[:-5])),
    "a line of the journal": (
        ".s.npy.journal",
        lambda path: path.write_text(path.read_text().replace("\n40 ", "\n4x ")),
    ),
    "bytes of the journal": (
        ".s.npy.journal",
        lambda path: path.write_bytes(path.read_bytes()[:-70] + b"\xff\xfe\n\n-1 a\n"),
    ),
    "all of the journal": (".s.npy.journal", lambda path: path.write_bytes(b"")),
    "the kind of the journal": (
        ".s.npy.journal",
        lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_was_altered_in_an_unfinished_scoring_is_scored_again(tmp_path, monkeypatch, what):
    model, X = train(tmp_path)
    path = tmp_path / "s.npy"
    leave_unfinished(model, X, path, monkeypatch)
    name, alter = DAMAGES[what]
    before = (tmp_path / name).read_bytes()
    alter(tmp_path / name)
    assert (tmp_path / name).is_symlink() or (tmp_path / name).read_bytes() != before
    paths = score_to_file(model, X, path, kind="both")
    assert np.array_equal(read(paths[0]), model.predict_proba(X).astype(np.float32))
    assert np.array_equal(read(paths[1], "margin"), model.predict_margin(X))


def test_what_was_not_altered_is_not_scored_again(tmp_path, monkeypatch):
    model, X = train(tmp_path)
    path = tmp_path / "s.npy"
    leave_unfinished(model, X, path, monkeypatch)
    flip_cell(tmp_path / ".s.npy.unfinished")
    scored = []
    score = scorings.ResumableScores._score
    monkeypatch.setattr(
        scorings.ResumableScores, "_score", lambda self, at: scored.append(at) or score(self, at)
    )
    score_to_file(model, X, path, kind="both")
    assert scored == [280]


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("s.txt", {}, "must end in .npy, .csv or .parquet"),
        ("no/s.npy", {}, "existing folder"),
        ("folder.npy", {}, "got a folder"),
        ("s.npy", {"kind": "both"}, "got a folder"),
        ("s.npy", {"kind": "logit"}, "kind must be one of"),
        ("s.npy", {"margin_dtype": "int8"}, "margin_dtype must be"),
    ],
)
def test_a_bad_target_is_refused_before_the_work(tmp_path, name, options, what):
    model, X = train(tmp_path)
    for folder in ("folder.npy", "s.margin.npy"):
        (tmp_path / folder).mkdir()
    with pytest.raises(InvalidInput, match=what):
        score_to_file(model, X, tmp_path / name, **options)
    assert not list(tmp_path.glob(".*.unfinished"))


@pytest.mark.parametrize("options", [{"threads": 0}, {"row_ids": [1]}, {"row_ids": 7}])
def test_a_bad_argument_is_refused_before_anything_is_written(tmp_path, options):
    X, Y = np.random.default_rng(0).random((30, 2)), np.eye(3)[np.arange(30) % 3]
    model = OneVsRest("logistic").fit(X, Y)
    with pytest.raises(InvalidInput, match=r"threads|row_ids"):
        score_to_file(model, X, tmp_path / "scores.parquet", **options)
    assert not list(tmp_path.iterdir())
