"""Diagnose a 131,209 x 4,000 float32 pair of files: time and peak memory, with and without twin."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import oddslip
from benchmarks import large
from benchmarks.peers import argsort_rows, precision_of_rows
from benchmarks.timing import (
    Stage,
    Stages,
    agree,
    alone,
    line,
    take_time,
    title,
    work_folder,
)

K, SEED = 7, 42
BLOCK = 4_096  # rows


class Size(NamedTuple):
    file: large.Size
    n_replicates: int


REAL = Size(large.REAL, 2_000)
TOY = Size(large.TOY, 50)


def write_twin(scores: Path) -> tuple[Path, Path]:
    """The unweighted twin of these scores, and the weights."""
    from scipy.special import expit, logit

    twin, weights = scores.with_name("twin.npy"), scores.with_name("weights.npy")
    weighted = np.load(scores, mmap_mode="r")
    _, shift = large.shift_labels(weighted.shape[1])
    out = np.lib.format.open_memmap(twin, "w+", np.float32, weighted.shape)
    for start in range(0, len(weighted), BLOCK):
        block = np.clip(weighted[start : start + BLOCK], None, np.float32(1 - 1e-6))
        out[start : start + BLOCK] = expit(logit(block) - shift)
    out.flush()
    np.save(weights, np.exp(shift.astype(np.float64)))
    return twin, weights


def diagnose(
    scores: Path, labels: Path, twin: Path | None, weights: Path, n_replicates: int
) -> tuple[Stage, str, dict[str, float]]:
    """In a process of its own: what it took, the verdict, and MAP of every rung."""
    small = np.random.default_rng(0).random((300, 50), dtype=np.float32)
    pair: dict[str, Any] = {}
    warm: dict[str, Any] = {}
    if twin is not None:
        pair = {"weights": np.load(weights), "unweighted": twin}
        warm = {"weights": np.arange(1.0, 51.0), "unweighted": small**2}
    oddslip.diagnose(small, small > 0.7, k=K, n_replicates=10, **warm)
    stages = Stages()
    diagnosis = stages(
        "diagnose",
        lambda: oddslip.diagnose(scores, labels, k=K, n_replicates=n_replicates, seed=SEED, **pair),
    )
    rungs = {name: rung["map"].value for name, rung in diagnosis.ladder.rungs.items()}
    return stages.done[0], diagnosis.verdict.code, rungs


def evaluate_raw(scores: Path, labels: Path) -> float:
    """MAP of the raw rung by NumPy, block by block."""
    import scipy.sparse as sp

    cells, truth = np.load(scores, mmap_mode="r"), sp.load_npz(labels).tocsr()
    rows = np.flatnonzero(np.diff(truth.indptr))  # those with a true label
    gained = []
    for start in range(0, rows.size, BLOCK):
        some = rows[start : start + BLOCK]
        true = truth[some].toarray() > 0
        gained.append(precision_of_rows(argsort_rows(cells[some], K), true))
    return float(np.concatenate(gained).mean())


def run(size: Size) -> None:
    with work_folder() as folder:
        files = large.write(folder, size.file)
        twin, weights = write_twin(files.scores)
        shape = f"{size.file.n_rows:,} x {size.file.n_labels:,} float32"
        title(f"diagnose {shape}, K = {K}, B = {size.n_replicates:,}, cross-fitted")
        by_numpy, theirs = take_time(lambda: evaluate_raw(*files))
        for name, other in {"scores and labels": None, "with weights and twin": twin}.items():
            stage, verdict, rungs = alone(diagnose, *files, other, weights, size.n_replicates)
            job = f"{name}, {len(rungs)} rungs"
            line(job, stage.times, note=verdict, peak_bytes=stage.peak_bytes)
            line("NumPy, the raw rung alone, no interval", theirs, stage.times)
            agree("MAP of the raw rung", rungs["raw"], by_numpy, 1e-12)
            assert rungs["isotonic"] > rungs["raw"], "the shift must be there to be repaired"
