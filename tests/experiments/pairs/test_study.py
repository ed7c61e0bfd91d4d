"""The whole study: the same twice, continued after a kill, read again without its data."""

import inspect
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from experiments.pairs.study import reproduce_pairs
from experiments.store import CellStore
from oddslip.errors import InvalidInput, UnreadableFile

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("few_replicates")
ASKED = {"n_labels": 9, "parts": ["ladder", "splits"], "learners": ["lightgbm"]}


def numbers(cells):
    """Cells without what they took, which differs from run to run."""
    return {
        key: {name: value for name, value in cell.items() if name != "stages"}
        for key, cell in cells.items()
    }


def run(folder, products, **options):
    options = ASKED | options
    return reproduce_pairs(
        "products", products, results=folder / "results", work=folder / "work", **options
    )


@pytest.fixture(scope="module")
def whole(products, tmp_path_factory):
    """Cells of a run that nothing disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("cells", "protocols"):
            patch.setattr(f"experiments.pairs.{module}.N_REPLICATES", 40)
        return run(tmp_path_factory.mktemp("whole"), products)


def test_two_runs_of_the_same_seed_give_the_same_numbers(products, whole, tmp_path):
    assert numbers(run(tmp_path, products)) == numbers(whole)
    assert set(whole) == {
        "data",
        "lightgbm-1",
        "lightgbm-r",
        "splits-lightgbm-1",
        "splits-lightgbm-r",
    }


def test_finished_cells_are_read_without_data_and_without_training(
    finished_study, monkeypatch, products
):
    folder, cells = finished_study
    monkeypatch.setattr("experiments.pairs.study.Bench", lambda *_: pytest.fail("read"))
    again = reproduce_pairs("products", None, n_labels=9, results=folder / "results", finished=True)
    assert again == cells


def test_finished_arms_are_diagnosed_again_from_kept_scores_without_training(
    products, tmp_path, monkeypatch
):
    first = run(tmp_path, products)
    store = CellStore(tmp_path / "results", "products")
    cells = dict(store.cells())
    monkeypatch.setattr(
        "experiments.pairs.training.OneVsRest", lambda *_, **__: pytest.fail("trained")
    )
    options = {"parts": ["ladder", "splits", "doses"], "rediagnose": True}
    again = run(tmp_path, products, **options)
    assert numbers(again) == numbers(first)  # doses, which have no scores, are left out
    assert store.cells()["lightgbm-r"] != cells["lightgbm-r"]
    assert store.cells()["lightgbm-r"]["command"].endswith("--rediagnose")
    assert store.cells()["splits-lightgbm-r"] == cells["splits-lightgbm-r"]


def test_other_scores_than_those_of_a_finished_cell_are_not_diagnosed_in_its_place(
    products, tmp_path
):
    options = {"parts": ["ladder"], "weights": ["1"]}
    run(tmp_path, products, **options)
    for path in (tmp_path / "work").rglob("test.npy"):
        scores = np.load(path)
        scores[0, 0] /= 2
        np.save(path, scores)
    with pytest.raises(InvalidInput, match="scores of lightgbm-1 must be those of its finished"):
        run(tmp_path, products, rediagnose=True, **options)


def test_only_finished_cells_are_read(tmp_path):
    assert reproduce_pairs("products", None, results=tmp_path, finished=True) == {}


def test_nothing_is_trained_again(products, tmp_path, monkeypatch):
    options = {"parts": ["ladder"], "weights": ["1"]}
    first = run(tmp_path, products, **options)
    monkeypatch.setattr(
        "experiments.pairs.training.OneVsRest", lambda *_, **__: pytest.fail("trained")
    )
    assert run(tmp_path, products, **options) == first


def test_a_weighted_arm_alone_trains_its_twin_too(products, tmp_path):
    cells = run(tmp_path, products, parts=["ladder"], weights=["r"])
    assert set(cells) == {"data", "lightgbm-r"}
    assert cells["lightgbm-r"]["test-split"]["decomposition"]["loss"] is not None


def test_other_data_are_measured_again(products, tmp_path):
    options = {"parts": ["ladder"], "weights": ["1"]}
    first = run(tmp_path, products, **options)
    second = run(tmp_path, lambda n: products(n, seed=1), **options)
    assert first["lightgbm-1"]["auc"] != second["lightgbm-1"]["auc"]
    cell = CellStore(tmp_path / "results", "products").cells()["lightgbm-1"]
    assert cell["configuration"]["data"]["inputs"] == {"rows": f"{1:064x}"}
    assert cell["command"].endswith("--learner lightgbm --weight 1 --cap none --draw 0")


def test_all_products_are_another_label_set(finished_study):
    cells = finished_study[1]
    assert cells["data"]["n_labels"] == 9
    assert cells["data-all-products"]["n_labels"] == 14
    assert cells["mlp-r-all-products"]["test-split"]["n_labels"] == 14


def test_a_study_needs_data_or_finished_cells(tmp_path):
    with pytest.raises(InvalidInput, match="read must give the data"):
        reproduce_pairs("products", None, results=tmp_path)


def test_a_damaged_description_of_the_data_is_refused(tmp_path):
    (tmp_path / "products.jsonl").write_text("{half")
    with pytest.raises(UnreadableFile, match="not a finished cell"):
        reproduce_pairs("products", None, results=tmp_path, finished=True)


SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from scipy import sparse
from experiments.datasets.recommendation import Period, Recommendation
from experiments.pairs import cells, protocols
from experiments.pairs.study import reproduce_pairs

{make_products}

cells.N_REPLICATES = protocols.N_REPLICATES = 40
folder = Path(sys.argv[1])
reproduce_pairs(
    "products", make_products, results=folder / "results", work=folder / "work", **{asked}
)
"""


@pytest.mark.parametrize(
    "stage", ["work/*/training/group-*", "work/*/validation.npy", "results/products.jsonl"]
)
def test_killed_anywhere_it_continues_and_ends_the_same(products, whole, tmp_path, stage):
    script = tmp_path / "study.py"
    source = inspect.getsource(products)
    script.write_text(SCRIPT.format(make_products=source, asked=ASKED))
    killed = tmp_path / "killed"
    # With as many threads as this process has: BLAS sums in another order with another number of
    # them, and the last digit of a bootstrap interval shows it.
    process = subprocess.Popen(
        [sys.executable, str(script), str(killed)],
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    for _ in range(12_000):
        if any(killed.glob(stage)) or process.poll() is not None:
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    _, output = process.communicate()
    assert process.returncode == -signal.SIGKILL, output
    assert "splits-lightgbm-r" not in CellStore(killed / "results", "products").cells()
    assert numbers(run(killed, products)) == numbers(whole)
