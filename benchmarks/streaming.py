"""Cost per cell and peak memory from a million to a billion cells in a memory-mapped file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(".bench")
N_LABELS = 4_000

CHILD = """
import json, resource, sys, time
import numpy as np, scipy.sparse, oddslip, oddslip.metrics, oddslip.sources
from oddslip.metrics.evaluations import evaluate
small = np.random.default_rng(0).random((64, 4000), dtype=np.float32)
truth = small > 0.9995
truth[:, 0] = True
evaluate(small, truth, k=7)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
best = [9e9, 9e9]
for _ in range(int(sys.argv[3])):
    started = time.process_time(), time.perf_counter()
    evaluate(sys.argv[1], sys.argv[2], k=7, n_replicates=0)
    spent = time.process_time() - started[0], time.perf_counter() - started[1]
    best = [min(pair) for pair in zip(best, spent)]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps([*best, peak * 1024]))
"""


def write(n_rows: int) -> tuple[Path, Path]:
    """Score and label files of this many rows, made once."""
    import scipy.sparse as sp

    FOLDER.mkdir(exist_ok=True)
    scores, labels = FOLDER / f"scores-{n_rows}.npy", FOLDER / f"labels-{n_rows}.npz"
    if not labels.exists():
        rng = np.random.default_rng(0)
        out = np.lib.format.open_memmap(scores, "w+", np.float32, (n_rows, N_LABELS))
        for start in range(0, n_rows, 2_500):
            block = out[start : start + 2_500]
            block[:] = rng.random(block.shape, dtype=np.float32)
        out.flush()
        columns = rng.integers(0, N_LABELS, (n_rows, 4))
        rows = np.repeat(np.arange(n_rows), 4)
        truth = sp.coo_array((np.ones(rows.size), (rows, columns.ravel())), (n_rows, N_LABELS))
        sp.save_npz(labels, sp.csr_array((truth.tocsr() > 0).astype(np.int8)), compressed=False)
    return scores, labels


def run() -> None:
    print(f"\nevaluate at K = 7 from a memory-mapped .npy, {N_LABELS:,} labels, float32")
    print(
        f"  {'cells':>15} {'CPU s':>9} {'wall s':>9} {'CPU ns/cell':>12} {'peak above imports':>19}"
    )
    for n_rows, repeats in ((250, 30), (2_500, 15), (25_000, 5), (250_000, 2)):
        scores, labels = write(n_rows)
        told = subprocess.run(
            [sys.executable, "-c", CHILD, str(scores), str(labels), str(repeats)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        cpu, wall, peak = json.loads(told.stdout)
        cells = n_rows * N_LABELS
        print(
            f"  {cells:15,} {cpu:9.4f} {wall:9.4f} {cpu / cells * 1e9:12.3f} {peak / 1e6:16.0f} MB"
        )
