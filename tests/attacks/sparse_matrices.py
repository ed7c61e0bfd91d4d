"""Sparse matrices whose arrays point outside of them, as labels and features, arrays and files."""

import functools
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

N = 6  # rows, labels and features
DENSE = (np.arange(N * N).reshape(N, N) % 4 == 0).astype(np.float32)


def good(kind):
    """A matrix as it should be."""
    matrix = sp.csr_matrix(DENSE)
    return matrix.tobsr(blocksize=(2, 2)) if kind == "bsr" else matrix.asformat(kind, copy=True)


def parts_of(kind):
    """The arrays of a good matrix."""
    matrix = good(kind)
    names = {"coo": ("row", "col", "data"), "dia": ("offsets", "data")}
    return {
        name: np.array(getattr(matrix, name))
        for name in names.get(kind, ("indptr", "indices", "data"))
    }


def put(name, at, value, dtype=None):
    """Change one number of an array, after a cast."""

    def change(parts):
        parts[name] = parts[name].astype(dtype or parts[name].dtype)
        parts[name][at] = value

    return change


def swap(name, change):
    """Change a whole array."""

    def changed(parts):
        parts[name] = change(parts[name])

    return changed


def twice(kind):
    """Store the first cell a second time."""

    def change(parts):
        if kind == "coo":
            for name in ("row", "col", "data"):
                parts[name] = np.append(parts[name], parts[name][0])
            return
        parts["indices"] = np.insert(parts["indices"], 1, parts["indices"][0])
        parts["data"] = np.insert(parts["data"], 1, parts["data"][0])
        parts["indptr"][1:] += 1

    return change


def wraps(parts):
    """A cell of 1 as the sum of 255 and 2 in uint8."""
    twice("csr")(parts)
    parts["data"] = parts["data"].astype(np.uint8)
    parts["data"][:2] = 255, 2


INDEX = {
    "one too far": (N, None),
    "a thousand": (1000, None),
    "a billion": (10**9, None),
    "the largest of 32 bits": (2**31 - 1, None),
    "minus one": (-1, None),
    "far below zero": (-(10**9), None),
    "one that wraps to a good one": (2**32 + 1, np.int64),
    "the largest of 64 bits": (2**63 - 1, np.int64),
}
BROKEN = {
    **{f"csr index {name}": ("csr", put("indices", 2, *told)) for name, told in INDEX.items()},
    **{f"csc index {name}": ("csc", put("indices", 2, *told)) for name, told in INDEX.items()},
    **{f"coo row {name}": ("coo", put("row", 2, *told)) for name, told in INDEX.items()},
    **{f"coo column {name}": ("coo", put("col", 2, *told)) for name, told in INDEX.items()},
    "csr indptr starts at 1": ("csr", put("indptr", 0, 1)),
    "csr indptr starts below zero": ("csr", put("indptr", 0, -3)),
    "csr indptr falls": ("csr", put("indptr", 2, 0)),
    "csr indptr leaps": ("csr", put("indptr", 2, 10**6)),
    "csr indptr leaps 64 bits": ("csr", put("indptr", 2, 2**40, np.int64)),
    "csr indptr descends": ("csr", swap("indptr", lambda a: a[::-1].copy())),
    "csr indptr ends too early": ("csr", put("indptr", -1, 2)),
    "csr indptr ends too late": ("csr", put("indptr", -1, 5000)),
    "csr indptr too short": ("csr", swap("indptr", lambda a: a[:-2])),
    "csr indptr too long": ("csr", swap("indptr", lambda a: np.append(a, a[-1]))),
    "csr indptr of floats": ("csr", swap("indptr", lambda a: a + 0.5)),
    "csr indices of floats": ("csr", swap("indices", lambda a: a.astype(float))),
    "csr indices of text": ("csr", swap("indices", lambda a: a.astype(str))),
    "csr indices in two axes": ("csr", swap("indices", lambda a: a.reshape(3, -1))),
    "csr indices too few": ("csr", swap("indices", lambda a: a[:-1])),
    "csr data too short": ("csr", swap("data", lambda a: a[:-4])),
    "csr data of text": ("csr", swap("data", lambda a: a.astype(str))),
    "csr data complex": ("csr", swap("data", lambda a: a.astype(complex))),
    "csc indptr falls": ("csc", put("indptr", 2, 0)),
    "csc indptr leaps": ("csc", put("indptr", 2, 10**6)),
    "csc indptr too short": ("csc", swap("indptr", lambda a: a[:-2])),
    "csc data too short": ("csc", swap("data", lambda a: a[:-4])),
    "coo rows too few": ("coo", swap("row", lambda a: a[:-2])),
    "coo data too short": ("coo", swap("data", lambda a: a[:-4])),
    "coo columns of floats": ("coo", swap("col", lambda a: a + 0.5)),
    "bsr index one too far": ("bsr", put("indices", 0, 3)),
    "bsr index below zero": ("bsr", put("indices", 0, -7)),
    "bsr index a billion": ("bsr", put("indices", 0, 10**9)),
    "bsr indptr falls": ("bsr", put("indptr", 1, -4)),
    "bsr blocks that do not tile": ("bsr", swap("data", lambda a: a.reshape(-1, 4, 1))),
    "dia offset beyond": ("dia", put("offsets", 0, 10**9)),
    "dia offset twice": ("dia", swap("offsets", lambda a: a[[1, *range(1, len(a))]])),
    "dia data too short": ("dia", swap("data", lambda a: a[:1])),
}
# A cell twice is an error in labels alone; features are added up.
TWICE = {
    "csr cell twice": ("csr", twice("csr")),
    "csc cell twice": ("csc", twice("csc")),
    "coo cell twice": ("coo", twice("coo")),
    "csr cell that wraps to 1": ("csr", wraps),
}
SHAPES = {  # of files alone: scipy refuses to make such a matrix
    "a shape below zero": [-N, N],
    "a shape of three": [N, N, N],
    "a shape of floats": [6.0, 6.0],
    "rows that are not there": [10**9, N],
    "columns beyond 32 bits": [N, 2**40],
    "fewer columns": [N, 2],
    "fewer rows": [2, N],
    "no columns": [N, 0],
}


def lil(row, columns):
    """A list of lists with other columns in a row."""
    matrix = sp.lil_matrix(DENSE)
    matrix.rows[row] = columns
    matrix.data[row] = [1.0] * len(columns)
    return matrix


def dok(key):
    """A dictionary of keys with one more."""
    matrix = sp.dok_matrix(DENSE)
    matrix._dict[key] = np.float32(1)
    return matrix


def longer_lil():
    """A row with more columns than cells."""
    matrix = sp.lil_matrix(DENSE)
    matrix.rows[1] = [0, 1, 2, 3]
    return matrix


OBJECTS = {
    "lil column one too far": lambda: lil(1, [N]),
    "lil column below zero": lambda: lil(1, [-1]),
    "lil column that wraps": lambda: lil(1, [2**32 + 1]),
    "lil column of a billion": lambda: lil(1, [10**9]),
    "lil columns without cells": longer_lil,
    "dok row one too far": lambda: dok((N, 0)),
    "dok column one too far": lambda: dok((0, N)),
    "dok row below zero": lambda: dok((-1, 0)),
    "dok column that wraps": lambda: dok((0, 2**32 + 1)),
}
LISTS = {
    "list index one too far": [[0], [N]],
    "list index below zero": [[0], [-1]],
    "list index of 32 bits": [[0], [2**31 - 1]],
    "list index that wraps": [[0], [2**32 + 1]],
    "list index of 64 bits": [[0], [2**63]],
    "list index of a hundred digits": [[0], [10**100]],
}


def make_memory(name):
    """A matrix broken after scipy has made it."""
    if name in OBJECTS:
        return OBJECTS[name]()
    kind, change = (BROKEN | TWICE)[name]
    parts = parts_of(kind)
    matrix = good(kind)
    change(parts)
    if kind == "coo":
        matrix.coords = parts["row"], parts["col"]
        matrix.data = parts["data"]
        matrix.has_canonical_format = False
        return matrix
    for part, array in parts.items():
        setattr(matrix, part, array)
    return matrix


def write_file(name, path):
    """The file `scipy.sparse.save_npz` would have written of it."""
    if name in SHAPES:
        kind, parts, shape = "csr", parts_of("csr"), np.array(SHAPES[name])
    else:
        kind, change = (BROKEN | TWICE)[name]
        parts, shape = parts_of(kind), np.array([N, N])
        change(parts)
    np.savez(path, format=np.array(kind.encode()), shape=shape, **parts)


CASES = [
    *(["labels", "memory", name] for name in (*BROKEN, *TWICE, *OBJECTS)),
    *(["labels", "list", name] for name in LISTS),
    *(["labels", "file", name] for name in (*BROKEN, *TWICE, *SHAPES)),
    *(["score", "memory", name] for name in (*BROKEN, *OBJECTS)),
    *(["score", "file", name] for name in (*BROKEN, *SHAPES)),
    *(["train", "memory", name] for name in (*BROKEN, *OBJECTS)),
    *(["train", "file", name] for name in BROKEN),
    *(["panel_from", "memory", name] for name in (*BROKEN, *OBJECTS)),
    *(["kept rows", "file", name] for name in BROKEN),
]


@functools.cache
def trained():
    """A model of sparse features."""
    from oddslip.learners import OneVsRest

    X = sp.csr_matrix(np.tile(DENSE, (40, 1)))
    Y = np.tile(DENSE[:, :2], (40, 1))
    return OneVsRest("lightgbm", parameters={"num_iterations": 2}, threads=1).fit(X, Y)


def attack(case):
    """Use a broken matrix as a user would."""
    use, where, name = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matrix.npz")
        if where == "file":
            write_file(name, path)
            given = path
        else:
            given = LISTS[name] if where == "list" else make_memory(name)
        return _USES[use](given)


def _label(given):
    import oddslip

    n_rows = len(given) if isinstance(given, list) else N
    scores = np.linspace(0, 1, n_rows * N).reshape(n_rows, N)
    if isinstance(given, Path):
        from oddslip.sources import open_source

        panel = open_source(scores, given)
        return oddslip.evaluate(panel, k=2, n_replicates=0)
    return oddslip.evaluate(scores, given, k=2, n_replicates=0)


def _rows(given):
    from oddslip.adapters.features import read_features

    return read_features(given) if isinstance(given, Path) else given


def _score(given):
    return float(trained().predict_margin(_rows(given)).sum())


def _train(given):
    from oddslip.learners import OneVsRest

    rows = _rows(given)
    Y = np.arange(rows.shape[0])[:, None] % 2
    model = OneVsRest("lightgbm", parameters={"num_iterations": 1, "min_data_in_leaf": 1})
    return model.fit(rows, Y).n_labels


def _adapt(given):
    from oddslip.learners import panel_from

    return float(panel_from(trained()._models[0].boosters[0], given).scores.sum())


def _recall(given):
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from experiments.datasets.cache import _load_matrix

    matrix = _load_matrix(given.parent, given.stem)
    return matrix.tocsr().sum()


_USES = {
    "labels": _label,
    "score": _score,
    "train": _train,
    "panel_from": _adapt,
    "kept rows": _recall,
}
