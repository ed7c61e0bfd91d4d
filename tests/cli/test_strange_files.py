"""Files that lie, never end or never begin: one line and exit code 2, before memory is taken."""

import hashlib
import io
import os
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oddslip.cli.app import main

EVALUATE = ["evaluate", "{}", "y.npy", "-k", "1"]
LABELS = ["evaluate", "s.npy", "{}", "-k", "1"]
PLAN = ["plan", "{}", "--rounds", "3", "--learning-rate", "0.1"]
WEIGHTS = ["diagnose", "s.npy", "y.npy", "-k", "1", "--weights", "{}"]
NAMES = ["evaluate", "s.npy", "y.npy", "-k", "1", "--label-names", "{}"]
APPLY = ["apply", "{}", "s.npy", "-o", "o.npy"]
SCORE = ["score", "{}", "s.npy", "-o", "o.npy"]
TRAIN = ["train", "{}", "y.npy", "-o", "o.oddslip"]


def claimed(shape):
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + bytes(64)


def zipped(path, raw, name="a.npy"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, raw)


def repair(path, header):
    body = struct.pack("<8sIQ", b"oddslip\0", 1, len(header)) + header
    path.write_bytes(body + hashlib.sha256(body).digest())


def listed(path, names):
    cells = pa.FixedSizeListArray.from_arrays(pa.array(np.linspace(0, 1, 180)), 3)
    table = pa.table({"scores": cells}).replace_schema_metadata({b"oddslip.label_names": names})
    pq.write_table(table, path)


def long(path, **columns):
    cells = {"row": np.arange(60), "label": ["a"] * 60, "score": np.linspace(0, 1, 60)}
    pq.write_table(pa.table(cells | columns), path)


def pairs(path, n_rows):
    table = pa.table({"row": np.arange(3), "label": np.arange(3)})
    pq.write_table(table.replace_schema_metadata({b"oddslip.n_rows": n_rows}), path)


STRUCTS = pa.array([{"x": 1.0}] * 60)
# A file, what makes it, the command that meets it, and what the one line says.
CASES = {
    "10^18 cells in .npy": (
        "s2.npy",
        lambda p: p.write_bytes(claimed((10**9, 10**9))),
        EVALUATE,
        "claims",
    ),
    "10^18 cells in .npz": (
        "s2.npz",
        lambda p: zipped(p, claimed((10**9, 10**9))),
        EVALUATE,
        "claims",
    ),
    "10^18 weights": ("w.npy", lambda p: p.write_bytes(claimed((10**18,))), WEIGHTS, "claims"),
    "10^18 features": ("x.npy", lambda p: p.write_bytes(claimed((10**9, 10**9))), TRAIN, "claims"),
    "a device as scores": ("z.npy", lambda p: p.symlink_to("/dev/zero"), EVALUATE, "a device"),
    "a device as labels": ("z.npz", lambda p: p.symlink_to("/dev/zero"), LABELS, "a device"),
    "a device as weights": ("z.txt", lambda p: p.symlink_to("/dev/zero"), WEIGHTS, "a device"),
    "a device as names": ("z.txt", lambda p: p.symlink_to("/dev/zero"), NAMES, "a device"),
    "a device as a repair": ("z.oddslip", lambda p: p.symlink_to("/dev/zero"), APPLY, "a device"),
    "a device as a model": ("z.oddslip", lambda p: p.symlink_to("/dev/zero"), SCORE, "a device"),
    "a pipe as scores": ("f.npy", os.mkfifo, EVALUATE, "a pipe"),
    "a pipe as Parquet": ("f.parquet", os.mkfifo, EVALUATE, "a pipe"),
    "a pipe as labels of a plan": ("f.parquet", os.mkfifo, PLAN, "a pipe"),
    "a pipe as names": ("f.txt", os.mkfifo, NAMES, "a pipe"),
    "a pipe as a repair": ("f.oddslip", os.mkfifo, APPLY, "a pipe"),
    "a link to itself": ("l.npy", lambda p: p.symlink_to(p), EVALUATE, "cannot be read"),
    "a repair nested deeply": (
        "r.oddslip",
        lambda p: repair(p, b"[" * 200_000),
        APPLY,
        "does not add up",
    ),
    "a repair with a list of lists": (
        "r.oddslip",
        lambda p: repair(p, b'{"arrays":' + b"[" * 500 + b"]" * 500 + b"}"),
        APPLY,
        "does not add up",
    ),
    "a model nested deeply": (
        "m.oddslip",
        lambda p: zipped(p, b"[" * 200_000, "model.json"),
        SCORE,
        "nested too deeply",
    ),
    "names nested deeply": (
        "n.parquet",
        lambda p: listed(p, b"[" * 200_000),
        EVALUATE,
        "label names as JSON",
    ),
    "names that are no JSON": (
        "n.parquet",
        lambda p: listed(p, b"\xff{"),
        EVALUATE,
        "label names as JSON",
    ),
    "names of half a letter": (
        "n.parquet",
        lambda p: listed(p, b'["\\ud800","b","c"]'),
        EVALUATE,
        "UTF-8",
    ),
    "names that are a number": ("n.parquet", lambda p: listed(p, b"3"), EVALUATE, "list of names"),
    "rows that are structs": ("l.parquet", lambda p: long(p, row=STRUCTS), EVALUATE, "row must be"),
    "labels that are structs": (
        "l.parquet",
        lambda p: long(p, label=STRUCTS),
        EVALUATE,
        "label must be",
    ),
    "labels that are lists": (
        "l.parquet",
        lambda p: long(p, label=pa.array([["a"]] * 60)),
        EVALUATE,
        "label must be",
    ),
    "truth that is structs": (
        "l.parquet",
        lambda p: long(p, true=STRUCTS),
        ["evaluate", "{}", "-k", "1"],
        "labels must be",
    ),
    "scores that are structs": (
        "w.parquet",
        lambda p: pq.write_table(pa.table({"a": STRUCTS}), p),
        EVALUATE,
        "float column",
    ),
    "10^30 rows promised": (
        "y.parquet",
        lambda p: pairs(p, b"9" * 30),
        LABELS,
        "must fit into memory",
    ),
    "rows of 5000 digits": (
        "y.parquet",
        lambda p: pairs(p, b"9" * 5000),
        LABELS,
        "must fit into memory",
    ),
    "10^15 rows promised": (
        "y.parquet",
        lambda p: pairs(p, b"1" + b"0" * 15),
        LABELS,
        "must fit into memory",
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ODDSLIP_DEBUG", raising=False)
    rng = np.random.default_rng(0)
    np.save("s.npy", rng.random((60, 3)))
    np.save("y.npy", (rng.random((60, 3)) < 0.4).astype(np.int8))
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_a_strange_file_is_one_line(folder, capsys, case):
    name, make, command, line = CASES[case]
    make(folder / name)
    assert main([part.format(name) for part in command]) == 2
    output = capsys.readouterr().err
    assert output.startswith("oddslip: ")
    assert output.count("\n") == 1
    assert line in output


PARAMETERS = {
    "lightgbm": [
        'num_leaves={"a":1}',
        "interaction_constraints=[[9]]",
        "num_leaves=" + "[" * 100_000,
        "num_leaves=x",
        "max_bin=1",
        "num_iterations=1.5",
        "device_type=cuda",
    ],
    "xgboost": [
        "max_depth=-1",
        "eta=x",
        "booster=foo",
        "max_bin=-1",
        "subsample=x",
        "subsample=-1",
        "gamma=[1]",
    ],
    "logistic": ["C=x", "C=null", "C=-1", "tol=x", "max_iter=-1", "max_iter=1.5"],
    "mlp": [
        "hidden=x",
        "hidden=[-1]",
        "hidden=[1.5]",
        "hidden=[100000000000]",
        "epochs=-1",
        "learning_rate=x",
        "learning_rate=-1",
        "batch_rows=0",
        "batch_rows=x",
    ],
}


@pytest.mark.parametrize(
    ("learner", "parameter"),
    [(learner, each) for learner, parameters in PARAMETERS.items() for each in parameters],
)
def test_a_parameter_that_a_learner_can_not_use_is_one_line(folder, capfd, learner, parameter):
    pytest.importorskip({"mlp": "torch", "logistic": "sklearn"}.get(learner, learner))
    command = ["train", "s.npy", "y.npy", "-o", "o.oddslip", "--learner", learner]
    assert main([*command, "-p", parameter]) == 2
    output = capfd.readouterr().err
    assert output.startswith("oddslip: ")
    assert output.count("\n") == 1
    assert not (folder / "o.oddslip").exists()
