"""Fit, transform and rank a 131,209 x 4,000 float32 file: time and peak memory, per stage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(".bench")
N_ROWS, N_LABELS = 131_209, 4_000

CHILD = """
import json, sys, time
import numpy as np, oddslip
from oddslip.calibrators import Isotonic
from oddslip.sources.sinks import write_scores

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

scores, labels, out = sys.argv[1:4]
small = np.random.default_rng(0).random((300, 50), dtype=np.float32)
warm = Isotonic().fit(small, small > 0.7)
warm.transform(small)
warm.rank(small, k=7)
if scores.endswith(".parquet"):
    import pyarrow.parquet
open("/proc/self/clear_refs", "w").write("5")  # forget the peak of the imports
before = status("VmRSS")
told = []

def stage(name, call):
    started = time.process_time(), time.perf_counter()
    done = call()
    cpu, wall = time.process_time() - started[0], time.perf_counter() - started[1]
    told.append([name, cpu, wall, status("VmHWM") - before])
    return done

fitted = stage("fit", lambda: Isotonic().fit(scores, labels).fitted_)
stage("transform to a file", lambda: write_scores(
    out, fitted.transform_blocks(scores), n_rows=131209, n_labels=4000, dtype=np.float32))
ranked = stage("calibrate and rank", lambda: fitted.rank(scores, k=7))
print(json.dumps([told, int(ranked.astype(np.int64).sum())]))
"""


def write() -> tuple[Path, Path, Path]:
    """The score file as .npy and as Parquet, and its labels, made once."""
    import scipy.sparse as sp
    from scipy.special import expit

    from oddslip.sources import open_source
    from oddslip.sources.sinks import write_scores

    FOLDER.mkdir(exist_ok=True)
    scores, labels = FOLDER / "large.npy", FOLDER / "large-labels.npz"
    parquet = FOLDER / "large.parquet"
    if not labels.exists():
        rng = np.random.default_rng(0)
        base = rng.permutation(np.linspace(-9, -4, N_LABELS)).astype(np.float32)
        out = np.lib.format.open_memmap(scores, "w+", np.float32, (N_ROWS, N_LABELS))
        rows, columns = [], []
        for start in range(0, N_ROWS, 4_096):
            stop = min(start + 4_096, N_ROWS)
            margin = base + 1.5 * rng.standard_normal((stop - start, N_LABELS), dtype=np.float32)
            true = rng.random(margin.shape, dtype=np.float32) < expit(margin)
            out[start:stop] = expit(margin + 3 + 0.5 * base**2 / 9)  # a shift of its own per label
            row, column = np.nonzero(true)
            rows.append(row + start)
            columns.append(column)
        out.flush()
        row, column = np.concatenate(rows), np.concatenate(columns)
        truth = sp.csr_array((np.ones(row.size, np.int8), (row, column)), (N_ROWS, N_LABELS))
        sp.save_npz(labels, truth, compressed=False)
    if not parquet.exists():
        blocks = open_source(scores).blocks()
        write_scores(
            parquet,
            ((panel.first_row, panel.scores) for panel in blocks),
            n_rows=N_ROWS,
            n_labels=N_LABELS,
            dtype=np.float32,
        )
    return scores, parquet, labels


def run() -> None:
    scores, parquet, labels = write()
    print(f"\nisotonic repair of {N_ROWS:,} x {N_LABELS:,} float32 (2.1 GB), K = 7")
    print(f"  {'':32} {'CPU s':>8} {'wall s':>8} {'peak above imports':>19}")
    sums = set()
    for path in (scores, parquet):
        told = subprocess.run(
            [sys.executable, "-c", CHILD, str(path), str(labels), str(FOLDER / "large-out.npy")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        stages, ranked = json.loads(told.stdout)
        sums.add(ranked)
        for name, cpu, wall, peak in stages:
            print(f"  {path.suffix + ': ' + name:32} {cpu:8.2f} {wall:8.2f} {peak / 1e6:16.0f} MB")
    (FOLDER / "large-out.npy").unlink()
    assert len(sums) == 1, "both files must give the same ranking"
