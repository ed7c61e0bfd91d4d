"""Laws of training: groups of labels trained in tasks are the models of one machine, to the bit.

Spark's tasks are held to the same in `tests/engines`.
"""

import os

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

pytest.importorskip("lightgbm")

from tests.support.processes import ProcessWorkers

from oddslip import InvalidInput, MatchedPair, OneVsRest
from oddslip.learners import distributed_training
from oddslip.learners.backends.base import get_backend
from oddslip.spark import jobs, tasks

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 5))
Y = X @ RNG.normal(size=(5, 6)) + RNG.logistic(size=(300, 6)) > 2
QUICK = {
    "lightgbm": {"num_iterations": 4, "num_leaves": 5},
    "xgboost": {"n_estimators": 4},
    "hist": {"max_iter": 4},
    "logistic": {},
}
HERE = ProcessWorkers(1)


def arm(learner="lightgbm", **options):
    return OneVsRest(learner, weights="balanced", parameters=QUICK[learner], **options)


def saved(model, path):
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("learner", QUICK)
@pytest.mark.parametrize("form", ["rows", "columns", "sparse"])
def test_models_have_the_bits_of_this_machine(tmp_path, learner, form):
    features = {"rows": X, "columns": np.asfortranarray(X), "sparse": sparse.csr_matrix(X)}[form]
    one = arm(learner, engine=HERE).fit(features, Y)
    other = arm(learner, threads=1).fit(features, Y)
    if learner == "logistic":  # sums of BLAS depend on its threads
        assert np.allclose(one.predict_margin(X), other.predict_margin(X), atol=1e-9)
    else:
        assert saved(one, tmp_path / "one") == saved(other, tmp_path / "other")


def test_processes_that_share_nothing_train_the_same(tmp_path):
    one = arm(engine=ProcessWorkers(2)).fit(X, Y)
    other = arm(threads=2).fit(X, Y)
    assert saved(one, tmp_path / "one") == saved(other, tmp_path / "other")


def test_a_training_in_tasks_takes_up_what_another_one_left(tmp_path):
    expected = arm(memory_bytes=1).fit(X, Y)
    arm(memory_bytes=1, checkpoint=tmp_path, threads=1).fit(X, Y)
    groups = sorted(tmp_path.glob("group-*"))
    contents = {path.name: path.read_bytes() for path in groups}
    assert len(groups) == 6
    for path in groups[2:]:
        path.unlink()
    again = arm(memory_bytes=1, checkpoint=tmp_path, engine=HERE).fit(X, Y)
    assert np.array_equal(again.predict_margin(X), expected.predict_margin(X))
    assert {path.name: path.read_bytes() for path in tmp_path.glob("group-*")} == contents


def test_a_group_that_another_attempt_is_writing_comes_home(tmp_path, monkeypatch):
    from oddslip.io.files import lock

    path = tmp_path / "group"
    with lock(path):
        monkeypatch.setattr("oddslip.io.files._writers", {os.path.realpath(path): -1})
        assert not distributed_training._write(path, b"model")
    assert distributed_training._write(path, b"model")


def test_pairs_and_clones_train_where_their_model_does():
    pair = MatchedPair(arm(engine=HERE)).fit(X, Y)
    assert pair.weighted_.engine is clone(arm(engine=HERE)).engine is HERE
    other = MatchedPair(arm()).fit(X, Y)
    assert np.array_equal(pair.panels(X).weighted.scores, other.panels(X).weighted.scores)
    prepared = arm(engine=HERE).prepare(X)  # made ready by tasks, or later by whoever needs it
    assert np.array_equal(
        arm().fit(prepared, Y).predict_margin(X), other.weighted_.predict_margin(X)
    )


@pytest.mark.parametrize("engine", ["dask", 3])
def test_an_engine_that_is_none_is_refused(engine):
    with pytest.raises(InvalidInput, match='engine must be "spark" or a session'):
        arm(engine=engine).fit(X, Y)


# ----------------------------------------------------------------------------------------- refusals


def test_what_a_learner_refuses_in_a_task_is_one_line():
    model = OneVsRest(parameters={"num_iterations": 2, "max_bin": -7}, engine=HERE)
    with pytest.raises(InvalidInput, match=r"LightGBM refuses this: .*max_bin"):
        model.fit(X, Y)


def test_another_version_of_the_learner_in_a_task_is_one_line(monkeypatch):
    monkeypatch.setattr(jobs, "versions", lambda: tasks.versions() | {"oddslip": "9.9"})
    with pytest.raises(InvalidInput, match=r"every executor must run oddslip 9\.9"):
        arm(engine=HERE).fit(X, Y)
    monkeypatch.undo()
    backend = get_backend("lightgbm")
    versions = iter([{"lightgbm": "9.9"}, {"lightgbm": "1.0"}])
    monkeypatch.setattr(type(backend), "versions", lambda _: next(versions))
    with pytest.raises(InvalidInput, match=r"every executor must run lightgbm 9\.9, .* got 1\.0"):
        arm(engine=HERE).fit(X, Y)


def test_a_checkpoint_folder_that_an_executor_does_not_see_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(distributed_training, "is_checkpoint", lambda _: False)
    with pytest.raises(InvalidInput, match=r"a folder that every executor sees, got .*shared disk"):
        arm(engine=HERE, checkpoint=tmp_path).fit(X, Y)
