"""Repairs and diagnoses in MLflow, kept in a local folder."""

import json
import os
import sys

import numpy as np
import pytest

import oddslip
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput, MissingDependency

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read when it is imported
import mlflow

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
PAIR = synthetic_pair(600, 6, seed=1)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(before)


def test_a_logged_repair_serves_our_ranking_without_a_pickle(store):
    repair = oddslip.Repair(k=3, rule="paper").fit(PAIR.weighted, PAIR.labels)
    with mlflow.start_run() as run:
        logged = oddslip.mlflow.log_repair(repair)
    served = mlflow.pyfunc.load_model(logged.model_uri)
    np.testing.assert_array_equal(served.predict(PAIR.weighted), repair.rank(PAIR.weighted))
    first = served.predict(PAIR.weighted, params={"k": 1})
    np.testing.assert_array_equal(first, repair.rank(PAIR.weighted, k=1))
    mapped = served.predict(PAIR.weighted, params={"k": 0})
    np.testing.assert_array_equal(mapped, repair.transform(PAIR.weighted))
    data = mlflow.get_run(run.info.run_id).data
    assert data.params["repair.calibrator"] == "Repair"
    assert data.params["repair.chosen"] == repair.chosen_
    means = dict(zip(repair.table_.candidates, repair.table_.means, strict=True))
    assert data.metrics["repair/out_of_fold_map_at_3/raw"] == pytest.approx(means["raw"])
    files = [path for path in store.rglob("*") if path.is_file()]
    assert any(path.name == "repair.oddslip" for path in files)
    assert not [path for path in files if path.suffix in (".pkl", ".pickle")]
    assert not any(path.read_bytes().startswith(b"\x80") for path in files)  # how pickles begin


def test_a_logged_diagnosis_has_metrics_verdict_and_report(store):
    diagnosis = oddslip.diagnose(PAIR.weighted, PAIR.labels, k=3, n_replicates=50)
    with mlflow.start_run() as run:
        oddslip.mlflow.log_diagnosis(diagnosis)
    data = mlflow.get_run(run.info.run_id).data
    assert data.metrics["diagnosis/map_at_3/raw"] == diagnosis.ladder.value("raw")
    assert "diagnosis/map_at_3/isotonic exclude" in data.metrics
    assert data.tags["diagnosis.verdict"] == diagnosis.verdict.code
    (document,) = store.rglob("diagnosis.json")
    assert json.loads(document.read_text())["verdict"]["code"] == diagnosis.verdict.code
    (report,) = store.rglob("report.html")
    assert "<html" in report.read_text()


def test_what_is_no_repair_or_diagnosis_is_refused(store):
    with pytest.raises(InvalidInput, match="log_repair needs a fitted repair, got dict"):
        oddslip.mlflow.log_repair({})
    with pytest.raises(InvalidInput, match="log_diagnosis needs a diagnosis, got dict"):
        oddslip.mlflow.log_diagnosis({})


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependency, match=r'pip install "oddslip\[mlflow\]"'):
        oddslip.mlflow.log_diagnosis({})
