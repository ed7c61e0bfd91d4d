"""Good and bad files, and good and bad values, that the transcripts in ``refusals/`` name."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

N_ROWS, N_LABELS, N_FEATURES = 40, 3, 2


def make_names(folder: Path) -> dict[str, Any]:
    """What expressions may use."""
    import pandas as pd

    import oddslip
    from oddslip import calibrators, learners, metrics, selection, shifts

    scores, labels = _scores(), _labels()
    X = np.random.default_rng(2).normal(size=(N_ROWS, N_FEATURES))
    return {
        "np": np,
        "sp": sp,
        "pd": pd,
        "oddslip": oddslip,
        "calibrators": calibrators,
        "datasets": _readers(),
        "learners": learners,
        "metrics": metrics,
        "selection": selection,
        "shifts": shifts,
        "Path": Path,
        "os": os,
        "scores": scores,
        "labels": labels,
        "X": X,
        "margins": np.log(scores / (1 - scores)),
        "prior": labels.mean(0),
        "weights": np.array([2.0, 3.0, 4.0]),
        "sparse": sp.csr_matrix(labels.astype(np.int8)),
        "panel": oddslip.Panel(scores, labels),
        "repair": oddslip.load_repair(folder / "repair.oddslip"),
        "model": oddslip.OneVsRest.load(folder / "model.oddslip"),
        "named": calibrators.Isotonic().fit(scores, labels, label_names=["a", "b", "c"]),
        "put": put,
        "broken_sparse": broken_sparse,
        "masked": np.ma.masked_array(scores, scores > 0.9),
    }


def _readers() -> Any:
    """Everything that makes data, in the package and in the experiments."""
    from types import SimpleNamespace

    from experiments.datasets import generators
    from experiments.datasets.baskets import instacart, table, tafeng
    from experiments.datasets.mulan import arff, files, reader
    from experiments.datasets.santander import reader as santander
    from experiments.datasets.santander import sample
    from oddslip import datasets

    modules = [datasets, generators, instacart, table, tafeng, arff, files, reader, santander]
    merged: dict[str, Any] = {}
    for module in [*modules, sample]:
        merged |= vars(module)
    return SimpleNamespace(**merged)


def put(array: Any, row: int, column: int, value: Any, dtype: Any = None) -> Any:
    """A copy with one other cell."""
    copy = array.astype(dtype or array.dtype)
    copy[row, column] = value
    return copy


def broken_sparse(matrix: Any, part: str, at: int, value: int) -> Any:
    """A copy of a sparse matrix of which one index or pointer is wrong."""
    copy = matrix.copy()
    getattr(copy, part)[at] = value
    return copy


def _scores() -> Any:
    return np.random.default_rng(0).uniform(0.05, 0.95, (N_ROWS, N_LABELS)).round(3)


def _labels() -> Any:
    labels = np.random.default_rng(1).random((N_ROWS, N_LABELS)) < _scores()
    labels[:2] = [[True, False, False], [False, True, True]]
    return labels


def make_files(folder: Path) -> None:
    """Everything that commands may be given."""
    scores, labels = _scores(), _labels()
    X = np.random.default_rng(2).normal(size=(N_ROWS, N_FEATURES))
    arrays = {
        "scores": scores,
        "labels": labels,
        "X": X,
        "margins": np.log(scores / (1 - scores)),
        "nan": put(scores, 3, 1, np.nan),
        "infinite": put(scores, 3, 1, np.inf),
        "above": put(scores, 3, 1, 1.5),
        "below": put(scores, 3, 1, -0.25),
        "flat": scores[0],
        "cube": scores[None],
        "no-rows": scores[:0],
        "no-labels": scores[:, :0],
        "complex": scores.astype(complex),
        "texts": scores.astype(str),
        "dates": np.zeros((2, 3), "M8[s]"),
        "records": np.zeros((2, 3), [("a", "f8")]),
        "fewer": scores[:10],
        "narrow": scores[:, :2],
        "label-two": put(labels, 3, 1, 2, int),
        "label-below": put(labels, 3, 1, -1, int),
        "label-half": put(labels, 3, 1, 0.5, float),
        "label-nan": put(labels, 3, 1, np.nan, float),
        "label-byte": put(labels, 3, 1, 7, np.uint8).view(np.bool_),
        "label-texts": labels.astype(int).astype(str),
        "never": np.zeros_like(labels),
        "fewer-labels": labels[:10],
        "narrow-labels": labels[:, :2],
        "X-nan-free-but-text": X.astype(str),
        "X-wide": np.ones((N_ROWS, 5)),
        "weights": np.array([2.0, 3.0, 4.0]),
        "weights-few": np.ones(2),
        "weights-nan": np.array([1.0, np.nan, 1.0]),
        "weights-below": np.array([1.0, -2.0, 1.0]),
        "weights-zero": np.zeros(3),
        "prior": labels.mean(0),
        "prior-above": np.array([0.1, 1.5, 0.1]),
        "prior-few": np.array([0.5]),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "objects.npy", np.array([[{}]]), allow_pickle=True)
    _make_archives(folder, scores, labels, X)
    _make_broken(folder)
    _make_tables(folder, scores, labels)
    _make_texts(folder)
    _make_models(folder, scores, labels, X)
    (folder / "folder").mkdir()
    (folder / "mulan").mkdir()
    (folder / "old.npy").write_bytes((folder / "scores.npy").read_bytes())
    os.mkfifo(folder / "pipe.npy")
    os.symlink("nowhere/at/all.npy", folder / "lost.npy")
    os.symlink("loop.npy", folder / "loop.npy")


def _make_archives(folder: Path, scores: Any, labels: Any, X: Any) -> None:
    np.savez(folder / "scores.npz", scores=scores)
    np.savez(folder / "two.npz", a=scores, b=scores)
    np.savez(folder / "none.npz")
    sparse = sp.csr_matrix(labels.astype(np.int8))
    sp.save_npz(folder / "labels.npz", sparse)
    sp.save_npz(folder / "X.npz", sp.csr_matrix(X))
    for name, part, at, value in (
        ("far", "indices", 2, 2**31 - 1),
        ("below", "indices", 2, -1),
        ("falling", "indptr", 3, 0),
    ):
        sp.save_npz(folder / f"sparse-{name}.npz", broken_sparse(sparse, part, at, value))
    whole = (folder / "scores.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[:-40])
    at = whole.index(b"\x93NUMPY") + 200
    (folder / "altered.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    header = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    np.lib.format.write_array_header_1_0(header, described)
    (folder / "claims.npy").write_bytes(header.getvalue())
    with zipfile.ZipFile(folder / "claims.npz", "w") as archive:
        archive.writestr("scores.npy", header.getvalue())


def _make_broken(folder: Path) -> None:
    whole = (folder / "scores.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-8])
    (folder / "stub.npy").write_bytes(whole[:20])
    (folder / "empty.npy").touch()
    for name in ("text.npy", "text.npz", "text.parquet", "scores.csv", "scores", "text.oddslip"):
        (folder / name).write_text("a,b\n1,2\n")


def _make_tables(folder: Path, scores: Any, labels: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list("abc")
    wide = dict(zip(names, scores.T, strict=True))
    tables = {
        "scores": wide,
        "null": {**wide, "b": [None, *scores[1:, 1]]},
        "text-column": {**wide, "name": ["x"] * N_ROWS},
        "struct": {**wide, "c": [{"x": 1}] * N_ROWS},
        "nan": {**wide, "b": put(scores, 3, 1, np.nan)[:, 1]},
        "ragged": {"scores": [[0.1, 0.2], *[[0.1, 0.2, 0.3]] * 3]},
        "long": {"row": [0, 0, 1], "label": ["a", "b", "a"], "score": [0.1, 0.2, 0.3]},
        "no-rows": {"a": pa.array([], pa.float64())},
        "true": dict(zip(names, labels.T, strict=True)),
        "true-two": dict(zip(names, put(labels, 3, 1, 2, int).T, strict=True)),
        "true-far": {"row": [0, 99], "label": ["a", "b"]},
        "true-stranger": {"labels": [["a"], ["zebra"]] + [[]] * (N_ROWS - 2)},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    whole = (folder / "scores.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "tail.parquet").write_bytes(whole[:-30] + b"\xff" * 22 + whole[-8:])


def _make_texts(folder: Path) -> None:
    texts = {
        "names": b"a\nb\nc\n",
        "names-few": b"a\nb\n",
        "names-twice": b"a\nb\na\n",
        "names-latin": "Konto\nB\xf6rse\nc\n".encode("latin-1"),
        "names-steer": b"\x1b[31ma\nb\n",
        "weights": b"2\n3\n4\n",
        "words": b"heavy\n",
        "nothing": b"",
        "two-columns": b"1 2\n3 4\n",
    }
    for name, body in texts.items():
        (folder / f"{name}.txt").write_bytes(body)
    (folder / "deep.json").write_bytes(b"[" * 100_000)


def _make_models(folder: Path, scores: Any, labels: Any, X: Any) -> None:
    from oddslip.calibrators import Isotonic
    from oddslip.learners import OneVsRest

    Isotonic().fit(scores, labels, label_names=["a", "b", "c"]).save(folder / "repair.oddslip")
    OneVsRest("logistic", threads=1).fit(X, labels).save(folder / "model.oddmodel")
    (folder / "model.oddmodel").rename(folder / "model.oddslip")  # its bytes say what it is
    for name in ("repair", "model"):
        whole = (folder / f"{name}.oddslip").read_bytes()
        middle = len(whole) // 2
        (folder / f"{name}-cut.oddslip").write_bytes(whole[:middle])
        changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        (folder / f"{name}-altered.oddslip").write_bytes(changed)
    (folder / "newer.oddslip").write_bytes(b"oddslip\0" + (99).to_bytes(4, "little") + bytes(60))
    with zipfile.ZipFile(folder / "foreign.oddslip", "w") as archive:
        archive.writestr("readme.txt", "not a model")
    with zipfile.ZipFile(folder / "deep.oddslip", "w") as archive:
        archive.writestr("model.json", b"[" * 100_000)
    with zipfile.ZipFile(folder / "headless.oddslip", "w") as archive:
        archive.writestr("model.json", json.dumps({"format": 1, "sha256": {}}))
