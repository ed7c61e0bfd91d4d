"""The MULAN study: published digits on the real data, kill and continue on made-up data."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import oddslip
from experiments.app import app
from experiments.datasets.mulan.reader import read_mulan
from experiments.mulan.arms import Identity, arm_configuration
from experiments.mulan.page import publish
from experiments.mulan.study import DESCRIPTIONS, MEASURES, reproduce_mulan
from experiments.mulan.table import COLUMNS, TABLE_2, compare_table_2, format_table_2
from experiments.store import CellStore
from oddslip.errors import InvalidInput

ROOT = Path(__file__).parents[3]
SMALL = ("flags", "emotions", "genbase", "medical", "birds")


@pytest.fixture
def tiny(tmp_path):
    """A MULAN-style data set made up on the spot."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "tiny"
    folder.mkdir()
    names = [f"label{j}" for j in range(9)]
    labels = "".join(f'<label name="{name}"></label>' for name in names)
    (folder / "tiny.xml").write_text(
        f'<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>'
    )
    for part, n in (("train", 260), ("test", 150)):
        X = rng.normal(size=(n, 4))
        chance = 1 / (1 + np.exp(-(X @ rng.normal(size=(4, 9)) - np.linspace(0.5, 3, 9))))
        Y = rng.random(chance.shape) < chance
        Y[0] = True
        head = ["@relation tiny"]
        head += [f"@attribute x{j} numeric" for j in range(4)]
        head += [f"@attribute {name} {{0,1}}" for name in names]
        body = [
            ",".join([*map(repr, x.tolist()), *map(str, y.astype(int))])
            for x, y in zip(X, Y, strict=True)
        ]
        (folder / f"tiny-{part}.arff").write_text("\n".join([*head, "@data", *body, ""]))
    return folder


def drop_cell(path, key):
    lines = path.read_text().splitlines(keepends=True)
    rows = [line for line in lines if json.loads(line)["key"] != key]
    assert len(rows) == len(lines) - 1
    path.write_text("".join(rows))


def run_tiny(tiny, folder, **options):
    return reproduce_mulan(
        datasets=[str(tiny / "tiny")],
        learners=["lightgbm", "logistic"],
        weights=["1", "r"],
        results=folder / "results",
        work=folder / "work",
        **options,
    )


@pytest.mark.parametrize("name", SMALL)
def test_the_published_digits_of_table_2(name, tmp_path, genuine):
    cells = reproduce_mulan(
        datasets=[name],
        learners=["lightgbm"],
        weights=["1", "r"],
        data=genuine("mulan"),
        results=tmp_path / "results",
        work=tmp_path / "work",
        choices=False,
    )
    entries = compare_table_2(cells)
    assert len(entries) == len(COLUMNS)
    assert {e.column: e.ours for e in entries} == TABLE_2[name]
    assert f"| {name} | " in format_table_2(cells)


def test_a_second_run_reads_what_the_first_kept(tiny, tmp_path, monkeypatch):
    first = run_tiny(tiny, tmp_path)
    assert {"tiny", "tiny-lightgbm-1", "tiny-lightgbm-r-choices"} <= first.keys()
    monkeypatch.setattr(
        "experiments.mulan.study.train_arm", lambda *_: pytest.fail("trained again")
    )
    assert run_tiny(tiny, tmp_path) == first


def test_a_lost_cell_is_measured_again_from_the_kept_scores(tiny, tmp_path, monkeypatch):
    first = run_tiny(tiny, tmp_path)
    drop_cell(tmp_path / "results/mulan-paper.jsonl", "tiny-lightgbm-r")
    monkeypatch.setattr("experiments.mulan.arms.OneVsRest", lambda *_, **__: pytest.fail("trained"))
    assert run_tiny(tiny, tmp_path) == first


def test_rungs_are_those_of_the_public_verbs(tiny, tmp_path):
    from experiments.mulan.arms import train_arm
    from oddslip.calibrators import Isotonic

    cells = run_tiny(tiny, tmp_path, choices=False)
    data = read_mulan(tiny / "tiny")
    arm = train_arm(data, "logistic", "r", tmp_path / "work/paper")
    isotonic = Isotonic(prior=data.prevalence).fit(arm.calibration, data.Y_train[data.calibration])
    evaluation = oddslip.evaluate(isotonic.transform(arm.test), data.Y_test, k=7, n_replicates=0)
    assert cells["tiny-logistic-r"]["map"]["isotonic"] == pytest.approx(evaluation["map"].value)
    raw = oddslip.evaluate(arm.test, data.Y_test, k=7, n_replicates=0)["map"].value
    assert cells["tiny-logistic-r"]["map"]["raw"] == pytest.approx(raw)


def test_killed_in_the_middle_it_continues_and_ends_the_same(tiny, tmp_path):
    expected = run_tiny(tiny, tmp_path / "whole")
    command = [
        sys.executable,
        "-m",
        "experiments",
        "mulan",
        "--dataset",
        str(tiny / "tiny"),
        "--learner",
        "lightgbm",
        "--learner",
        "logistic",
        "--weight",
        "1",
        "--weight",
        "r",
        "--results",
        str(tmp_path / "killed/results"),
        "--work",
        str(tmp_path / "killed/work"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    store = CellStore(tmp_path / "killed/results", "mulan-paper")
    for _ in range(600):
        if "tiny-lightgbm-1" in store.cells() or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    _, output = process.communicate()
    first = store.cells()["tiny-lightgbm-1"]
    assert first, output
    assert run_tiny(tiny, tmp_path / "killed") == expected
    assert store.cells()["tiny-lightgbm-1"] == first  # its seconds too: it was not measured again


def test_a_figure_without_anything_to_draw_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="must have a data set of the paper"):
        publish({}, "paper", figure=tmp_path / "doses.png")


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """A world without data sets and without a network."""

    def refuse(*_, **__):
        raise AssertionError("a finished study must need neither data nor a network")

    monkeypatch.setenv("ODDSLIP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no cache"))
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("experiments.datasets.mulan.files.fetch_mulan", refuse)
    monkeypatch.setattr("experiments.mulan.study.read_mulan", refuse)


def test_finished_cells_of_other_settings_or_files_are_left_out(tiny, tmp_path, no_data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.mulan.study.read_mulan", read_mulan)
        whole = run_tiny(tiny, tmp_path, choices=False)
    assert run_tiny(tiny, tmp_path, choices=False, finished=True) == whole
    changes = {"tiny-lightgbm-1": {"measures": 0}, "tiny-logistic-r": {"inputs": {"a": "b"}}}
    store = CellStore(tmp_path / "results", "mulan-paper")
    for key, change in changes.items():
        cell = store.cells()[key]
        store.write(key, cell["configuration"] | change, cell["values"], seconds=1.0, command="-")
    cells = run_tiny(tiny, tmp_path, choices=False, finished=True)
    assert cells.keys() == whole.keys() - {"tiny-lightgbm-1", "tiny-logistic-r"}


def test_a_set_without_a_finished_cell_of_its_own_is_left_out(tmp_path, no_data):
    assert reproduce_mulan(datasets=["flags"], results=tmp_path, finished=True) == {}


@pytest.mark.parametrize("name", ["tmc2007-500", "lightgbm-1", "a-b-choices"])
def test_a_data_set_is_shown_under_its_whole_name(name, tmp_path, no_data):
    store = CellStore(tmp_path, "mulan-paper")
    about = Identity(name, "paper", {"a.arff": "0" * 64})
    record = {"seconds": 1.0, "command": "python -m experiments mulan"}
    store.write(name, {"inputs": about.sha256, "measures": DESCRIPTIONS}, {"n_labels": 9}, **record)
    rungs = dict.fromkeys(("raw", "isotonic", "pooled", "ceiling"), 0.25)
    for learner in ("lightgbm", "lightgbm-regularised"):
        configuration = arm_configuration(about, learner, "10r") | {"measures": MEASURES}
        cell = {"map": rungs, "auc": 0.75}
        store.write(f"{name}-{learner}-10r", configuration, cell, **record)
    words = ["mulan", "--finished", "--dataset", name, "--results", str(tmp_path)]
    output = CliRunner().invoke(app, words, env={"COLUMNS": "200"}).stdout
    rows = [line.split() for line in output.splitlines() if "0.750" in line]
    assert [row[:3] for row in rows] == [
        [name, "lightgbm", "10r"],
        [name, "lightgbm-regularised", "10r"],
    ]


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(oddslip.InvalidInput, match="learners must be among"):
        reproduce_mulan(datasets=["flags"], learners=["forest"], results=tmp_path, work=tmp_path)
    with pytest.raises(oddslip.InvalidInput, match="weights must be among"):
        reproduce_mulan(datasets=["flags"], weights=["2r"], results=tmp_path, work=tmp_path)
