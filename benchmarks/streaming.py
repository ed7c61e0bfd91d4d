"""Cost per cell and peak memory from a million to a billion cells in a memory-mapped file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(".bench")
N_LABELS = 4_000

CHILD = """
import json, sys, time
import numpy as np, oddslip
from oddslip.metrics import evaluate, rank

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

scores, labels, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
small = np.random.default_rng(0).random((64, 4000), dtype=np.float32)
truth = small > 0.9995
truth[:, 0] = True
evaluate(small, truth, k=7)
rank(small, k=7)
before = status("VmRSS")
told, peak = [], 0
calls = (
    lambda: np.load(scores, mmap_mode="r").max(),
    lambda: rank(scores, k=7),
    lambda: evaluate(scores, labels, k=7, n_replicates=0),
)
for call in calls:
    open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
    best = [9e9, 9e9]
    for _ in range(repeats):
        started = time.process_time(), time.perf_counter()
        call()
        spent = time.process_time() - started[0], time.perf_counter() - started[1]
        best = [min(pair) for pair in zip(best, spent)]
    told.append(best)
    if call is not calls[0]:  # NumPy's own pass keeps the whole map
        peak = max(peak, status("VmHWM"))
print(json.dumps([*told, peak - before]))
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


def read_afresh(path: Path) -> None:
    """Have the system hold the file as it does one read from disk, not as it was written."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 24):
            pass


def run() -> None:
    print(f"\nfrom a memory-mapped .npy, {N_LABELS:,} labels, float32, K = 7")
    head = f"  {'cells':>15} {'':10} {'CPU s':>9} {'wall s':>9} {'CPU ns/cell':>12}"
    head += f" {'above max()':>12}"
    print(f"{head} {'peak above imports':>19}")
    for n_rows, repeats in ((250, 50), (2_500, 20), (25_000, 6), (250_000, 3)):
        scores, labels = write(n_rows)
        read_afresh(scores)
        told = subprocess.run(
            [sys.executable, "-c", CHILD, str(scores), str(labels), str(repeats)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        read, ranked, evaluated, peak = json.loads(told.stdout)
        cells = n_rows * N_LABELS
        for name, (cpu, wall) in (("max()", read), ("rank", ranked), ("evaluate", evaluated)):
            line = f"  {cells:15,} {name:10} {cpu:9.4f} {wall:9.4f} {cpu / cells * 1e9:12.3f}"
            above = (cpu - read[0]) / cells * 1e9
            print(line if name == "max()" else f"{line} {above:12.3f} {peak / 1e6:16.0f} MB")
