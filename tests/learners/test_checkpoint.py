"""Killed trainings continue, and end with the bits of one that was left alone."""

import hashlib
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("lightgbm")

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.learners import OneVsRest
from oddslip.learners.checkpoint import read_group, write_group

QUICK = {"num_iterations": 4, "num_leaves": 5}
SCRIPT = """
import os, signal, sys
import numpy as np
from oddslip.learners import OneVsRest
from oddslip.learners import checkpoint as checkpoints
from oddslip.io import files

folder, when = sys.argv[1], sys.argv[2]
keep, replace = checkpoints.Checkpoint.keep, os.replace

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def keep_and_die(self, number, model):
    if number == 2:
        if when == "within a write":
            files.os.replace = die
        keep(self, number, model)
        die()
    keep(self, number, model)

checkpoints.Checkpoint.keep = keep_and_die
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
Y = X @ rng.normal(size=(5, 6)) + rng.logistic(size=(300, 6)) > 2
OneVsRest(weights="balanced", parameters={"num_iterations": 4, "num_leaves": 5},
          checkpoint=folder, memory_bytes=1, threads=1).fit(X, Y)
"""


def make_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    return X, X @ rng.normal(size=(5, 6)) + rng.logistic(size=(300, 6)) > 2


def arm(**told):
    return OneVsRest(**{"weights": "balanced", "parameters": QUICK, "memory_bytes": 1, **told})


@pytest.mark.parametrize("when", ["between groups", "within a write"])
def test_a_training_killed_without_warning_continues_and_ends_with_the_same_bits(
    tmp_path, when, monkeypatch
):
    folder = tmp_path / "kept"
    killed = subprocess.run([sys.executable, "-c", SCRIPT, str(folder), when], check=False)
    assert killed.returncode == -signal.SIGKILL
    kept = sorted(path.name for path in folder.glob("group-*"))
    assert len(kept) == (3 if when == "between groups" else 2)
    X, Y = make_rows()
    expected = arm().fit(X, Y)
    trained = count_trained(monkeypatch)
    again = arm(checkpoint=folder, threads=2).fit(X, Y)
    assert len(trained) == 6 - len(kept)
    assert np.array_equal(again.predict_margin(X), expected.predict_margin(X))
    again.set_params(threads=None)
    again.save(tmp_path / "again")
    expected.save(tmp_path / "expected")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "expected").read_bytes()
    assert not list(folder.glob(".*"))


def count_trained(monkeypatch):
    from oddslip.learners.backends.lightgbm import LightGBM

    trained, train = [], LightGBM.train

    def counted(self, *told):
        trained.append(told[1].shape[1])
        return train(self, *told)

    monkeypatch.setattr(LightGBM, "train", counted)
    return trained


def test_a_finished_training_is_read_back_without_training_or_binning(tmp_path, monkeypatch):
    X, Y = make_rows()
    first = arm(checkpoint=tmp_path / "kept").fit(X, Y)
    from oddslip.learners.backends.lightgbm import LightGBM

    monkeypatch.delattr(LightGBM, "prepare")
    monkeypatch.delattr(LightGBM, "train")
    second = arm(checkpoint=tmp_path / "kept").fit(X, Y)
    assert np.array_equal(first.predict_margin(X), second.predict_margin(X))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"weights": "sqrt"}, "other weights"),
        ({"seed": 7}, "parameters, seed"),
        ({"max_delta_step": 1.0}, "other parameters"),
        ({"parameters": {"num_iterations": 5}}, "other parameters"),
        ({"mode": "exact"}, "other parameters"),
    ],
)
def test_another_configuration_is_refused_and_what_differs_is_named(tmp_path, change, what):
    X, Y = make_rows()
    arm(checkpoint=tmp_path).fit(X, Y)
    with pytest.raises(InvalidInput, match=what):
        arm(checkpoint=tmp_path, **change).fit(X, Y)


def test_other_features_or_labels_are_refused(tmp_path):
    X, Y = make_rows()
    arm(checkpoint=tmp_path).fit(X, Y)
    nudged = X.copy()
    nudged[17, 3] = np.nextafter(nudged[17, 3], 9)
    with pytest.raises(InvalidInput, match="other features"):
        arm(checkpoint=tmp_path).fit(nudged, Y)
    flipped = Y.copy()
    flipped[5, 5] ^= True
    with pytest.raises(InvalidInput, match="labels, weights"):
        arm(checkpoint=tmp_path).fit(X, flipped)


def test_a_plan_once_made_is_kept_whatever_memory_the_next_start_has(tmp_path):
    X, Y = make_rows()
    arm(checkpoint=tmp_path).fit(X, Y)
    (tmp_path / "group-00004.lgb.txt").unlink()
    again = arm(checkpoint=tmp_path, memory_bytes=10**9).fit(X, Y)
    assert [group.tolist() for group in again._groups] == [[j] for j in range(6)]


def test_an_altered_group_is_refused(tmp_path):
    X, Y = make_rows()
    arm(checkpoint=tmp_path).fit(X, Y)
    path = tmp_path / "group-00001.lgb.txt"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UnreadableFile, match="altered"):
        arm(checkpoint=tmp_path).fit(X, Y)


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"format": 99})])
def test_a_folder_with_a_foreign_manifest_is_refused(tmp_path, text):
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(UnreadableFile, match="not a checkpoint"):
        arm(checkpoint=tmp_path).fit(*make_rows())


def test_a_checkpoint_must_be_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreadableFile, match="must be a folder"):
        arm(checkpoint=tmp_path / "file").fit(*make_rows())


def unseal(path, versions):
    """A manifest as version 0.1.0 wrote it: format 1, without a checksum."""
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    manifest["format"] = 1
    manifest["configuration"]["versions"] |= versions
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("kept", [True, False])
def test_another_order_of_the_groups_is_refused(tmp_path, kept):
    X, Y = make_rows()
    arm(checkpoint=tmp_path).fit(X, Y)
    path = tmp_path / "training.json"
    manifest = json.loads(path.read_text())
    manifest["groups"] = manifest["groups"][::-1]
    if not kept:
        del manifest["sha256"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(UnreadableFile, match=r"altered .*checksum") as refused:
        arm(checkpoint=tmp_path).fit(X, Y)
    assert "\n" not in str(refused.value)


def test_a_manifest_without_a_checksum_gets_one_when_it_is_continued(tmp_path):
    X, Y = make_rows()
    margins = arm(checkpoint=tmp_path).fit(X, Y).predict_margin(X)
    written = (tmp_path / "training.json").read_text()
    unseal(tmp_path / "training.json", {})
    assert np.array_equal(arm(checkpoint=tmp_path).fit(X, Y).predict_margin(X), margins)
    assert (tmp_path / "training.json").read_text() == written


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 70 + "]" * 70])
def test_a_manifest_nested_too_deeply_is_refused(tmp_path, text):
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(UnreadableFile, match="nested too deeply"):
        arm(checkpoint=tmp_path).fit(*make_rows())


def test_a_checkpoint_that_names_pythons_json_among_its_versions_is_continued(
    tmp_path, monkeypatch
):
    X, Y = make_rows()
    margins = arm(checkpoint=tmp_path).fit(X, Y).predict_margin(X)
    unseal(tmp_path / "training.json", {"json": "2.0.9"})
    trained = count_trained(monkeypatch)
    assert np.array_equal(arm(checkpoint=tmp_path).fit(X, Y).predict_margin(X), margins)
    assert not trained


def test_a_model_saved_as_a_repair_is_warned_about_and_can_be_loaded(tmp_path):
    X, Y = make_rows()
    model = OneVsRest("logistic").fit(X, Y)
    with pytest.warns(
        FutureWarning, match=r"must be saved as .oddmodel, got .*m.oddslip"
    ) as caught:
        model.save(tmp_path / "m.oddslip")
    assert caught[0].filename == __file__
    loaded = OneVsRest.load(tmp_path / "m.oddslip")
    assert np.array_equal(loaded.predict_margin(X), model.predict_margin(X))


@pytest.mark.parametrize(("name", "noted"), [("m.oddslip", True), ("m.oddmodel", False)])
def test_the_command_line_notes_the_old_extension(tmp_path, monkeypatch, capsys, name, noted):
    from oddslip.cli.app import main

    monkeypatch.chdir(tmp_path)
    X, Y = make_rows()
    np.save("X.npy", X)
    np.save("Y.npy", Y.astype(np.int8))
    assert main(["train", "X.npy", "Y.npy", "--learner", "logistic", "-o", name]) == 0
    output = capsys.readouterr()
    assert ("end its name in .oddmodel" in " ".join(output.out.split())) == noted
    assert not output.err
    assert main(["score", name, "X.npy", "-o", "scores.npy"]) == 0


def test_a_group_of_an_older_version_is_read_and_an_altered_one_is_not(tmp_path):
    path = tmp_path / "group"
    body = b"a model\n of two lines"
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    assert read_group(path) == body
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(UnreadableFile, match="altered"):
        read_group(path)
    write_group(path, body)
    assert read_group(path) == body
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(UnreadableFile, match="not a saved group"):
        read_group(path)
