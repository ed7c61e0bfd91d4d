"""Kept rows of a data set, changed: by bytes (they are made anew), or under right checksums."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from attacks.child import Attempt, refused, try_in_child
from attacks.mutation import draw, mutate_bytes, mutate_json
from attacks.outcome import Outcome
from attacks.readers import reseal_archive

TITLE = "Caches of read data sets, changed and resealed"
SLICE = 300
FULL = 20_000
MANIFEST = "files.json"


def attack(count: int, seed: int) -> Outcome:
    """Recall what was changed; it is refused, made anew, or holds rows that fit together."""
    return try_in_child("attacks.caches", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Every second try leaves the checksums as they were."""
    from experiments.datasets.cache import recall_rows

    what = {"reader": "attacked", "sha256": {"file": "0" * 64}}
    cache = folder / "cache"
    recall_rows(cache, what, make_rows)
    (entry,) = cache.iterdir()
    kept = {path.name: path.read_bytes() for path in entry.iterdir()}
    right = _fingerprint(make_rows())

    def attempt(number: int) -> str:
        dice, sealed = draw(seed, number), number % 2 == 1
        files = dict(kept)
        name = dice.choice(sorted(files))
        files[name] = (
            _change(name, files[name], dice) if sealed else mutate_bytes(files[name], dice)
        )
        if sealed and name != MANIFEST:
            sums = {each: _sum(raw) for each, raw in files.items() if each != MANIFEST}
            files[MANIFEST] = json.dumps(sums).encode()
        shutil.rmtree(cache, ignore_errors=True)
        entry.mkdir(parents=True)
        for each, raw in files.items():
            (entry / each).write_bytes(raw)
        found: list[Any] = []
        if refused(lambda: found.append(recall_rows(cache, what, make_rows))):
            return "refused" if sealed else "refused unsealed"
        if not sealed and _fingerprint(found[0]) != right:
            raise AssertionError(f"{name}: an entry whose checksum is wrong gave other rows")
        try:
            _look_at(found[0])
        except Exception as error:
            error.args = (f"{name}: {error}",)
            raise
        return "valid" if sealed else "made anew"

    return attempt


def make_rows() -> Any:
    """A small recommendation, with sparse and dense features."""
    import scipy.sparse as sp

    from experiments.datasets.recommendation import Period, Recommendation

    rng = np.random.default_rng(0)
    periods = {}
    for name in ("train", "validation", "test"):
        X = rng.random((6, 4)).astype(np.float32)
        Y = sp.csr_matrix((rng.random((6, 3)) < 0.4).astype(np.int8))
        dense = name == "test"
        periods[name] = Period(
            X=X if dense else sp.csr_matrix(np.where(X > 0.5, X, 0)), Y=Y, row_ids=np.arange(6)
        )
    return Recommendation(
        name="attacked",
        label_names=tuple("abc"),
        feature_names=tuple("wxyz"),
        settings={"n_users": 6},
        sha256={"file": "0" * 64},
        **periods,
    )


def _sum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _change(name: str, raw: bytes, dice: random.Random) -> bytes:
    if name.endswith(".json"):
        return json.dumps(mutate_json(json.loads(raw), dice)).encode()
    if name.endswith(".npz") and dice.random() < 0.7:
        return reseal_archive(raw, dice)
    return mutate_bytes(raw, dice)


def _cells(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def _fingerprint(rows: Any) -> list[Any]:
    told: list[Any] = [rows.name, rows.label_names, rows.feature_names, rows.settings]
    for period in (rows.train, rows.validation, rows.test):
        told += [_cells(period.X).tolist(), _cells(period.Y).tolist(), period.row_ids.tolist()]
    return told


def _look_at(rows: Any) -> None:
    """Rows that were let through fit together: as many rows, features and labels as they say."""
    for period in (rows.train, rows.validation, rows.test):
        n_rows = period.X.shape[0]
        if period.Y.shape != (n_rows, len(rows.label_names)) or len(period.row_ids) != n_rows:
            raise AssertionError(f"rows must be as many, got {period.X.shape} and {period.Y.shape}")
        if period.X.shape[1] != len(rows.feature_names):
            raise AssertionError(f"features must be as many as names, got {period.X.shape}")
    json.dumps(rows.describe())
