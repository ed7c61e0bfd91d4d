"""Files that older versions wrote are read by this one, with the same answers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oddslip
from oddslip.io.json import with_checksum

SAVED = Path(__file__).parents[1] / "saved"
VERSIONS = sorted(path.name for path in SAVED.iterdir())


@pytest.fixture(params=VERSIONS)
def folder(request):
    return SAVED / request.param


def test_every_saved_repair_gives_the_numbers_it_gave_then(folder):
    then = np.load(folder / "repairs.npz")
    names = [name.removeprefix("transformed ") for name in then if name.startswith("transformed")]
    assert len(names) >= 14
    for name in names:
        repair = oddslip.load_repair(folder / f"{name}.oddslip")
        scores = then["margins" if repair.maps.kind == "margin" else "scores"]
        panel = oddslip.Panel(scores, kind=repair.maps.kind, label_names=repair.label_names)
        now = repair.transform(panel, dtype=np.float64)
        assert_allclose(now, then[f"transformed {name}"], rtol=0, atol=1e-15, err_msg=name)


def test_every_saved_model_gives_the_margins_it_gave_then(folder):
    then = np.load(folder / "models.npz")
    learners = [name.removeprefix("margins ") for name in then if name.startswith("margins")]
    learners.remove("checkpoint")
    assert len(learners) >= 4
    for learner in learners:
        model = oddslip.OneVsRest.load(folder / f"{learner}.oddslip")
        margins, expected = model.predict_margin(then["X"]), then[f"margins {learner}"]
        tolerance = 0 if learner == "lightgbm" else 1e-6
        assert_allclose(margins, expected, atol=tolerance, err_msg=learner)


def test_a_checkpoint_begun_then_is_continued_now(folder, tmp_path):
    then = np.load(folder / "models.npz")
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(folder / "checkpoint", checkpoint)
    (checkpoint / "group-00001.lgb.txt").unlink()
    kept = (checkpoint / "group-00000.lgb.txt").read_bytes()
    head = json.loads((checkpoint / "training.json").read_text())
    head["configuration"]["versions"] = versions_now(tmp_path, then)
    if head.pop("sha256", None):
        head = with_checksum(head)
    (checkpoint / "training.json").write_text(json.dumps(head))
    model = continue_training(checkpoint, then)
    assert_array_equal(model.predict_margin(then["X"]), then["margins checkpoint"])
    assert (checkpoint / "group-00000.lgb.txt").read_bytes() == kept


def versions_now(tmp_path, then):
    """A checkpoint is bound to the versions of its learner: those of this machine."""
    continue_training(tmp_path / "other", then)
    head = json.loads((tmp_path / "other" / "training.json").read_text())
    return head["configuration"]["versions"]


def continue_training(checkpoint, then):
    return oddslip.OneVsRest(
        weights="balanced",
        parameters={"num_iterations": 4, "num_leaves": 4},
        memory_bytes=1,
        checkpoint=checkpoint,
    ).fit(then["X"], then["Y"])
