"""Diagnose a 131,209 x 4,000 float32 pair of files: time and peak memory, with and without twin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks import large
from benchmarks.large import FOLDER, N_LABELS, N_ROWS

N_REPLICATES = 2_000

CHILD = """
import json, sys, time
import numpy as np, oddslip

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

scores, labels, twin, weights, replicates = sys.argv[1:6]
told = {"weights": np.load(weights), "unweighted": twin} if twin else {}
small = np.random.default_rng(0).random((300, 50), dtype=np.float32)
warm = {"weights": np.arange(1.0, 51.0), "unweighted": small**2} if twin else {}
oddslip.diagnose(small, small > 0.7, k=7, n_replicates=10, **warm)
open("/proc/self/clear_refs", "w").write("5")  # forget the peak of the imports
before = status("VmRSS")
started = time.process_time(), time.perf_counter()
found = oddslip.diagnose(scores, labels, k=7, n_replicates=int(replicates), **told)
cpu, wall = time.process_time() - started[0], time.perf_counter() - started[1]
rungs = {name: rung["map"].value for name, rung in found.ladder.rungs.items()}
print(json.dumps([cpu, wall, status("VmHWM") - before, found.verdict.code, rungs]))
"""


def write() -> tuple[Path, Path, Path, Path]:
    """The weighted scores of `large`, their labels, an unweighted twin, and the weights."""
    from scipy.special import expit, logit

    scores, _, labels = large.write()
    twin, weights = FOLDER / "large-twin.npy", FOLDER / "large-weights.npy"
    base = np.random.default_rng(0).permutation(np.linspace(-9, -4, N_LABELS)).astype(np.float32)
    shift = 3 + 0.5 * base**2 / 9
    if not weights.exists():
        weighted = np.load(scores, mmap_mode="r")
        if weighted.shape != (N_ROWS, N_LABELS):
            sys.exit(f"{scores} is not {N_ROWS:,} x {N_LABELS:,}. Delete {FOLDER} and run again.")
        out = np.lib.format.open_memmap(twin, "w+", np.float32, weighted.shape)
        for start in range(0, N_ROWS, 4_096):
            block = np.clip(weighted[start : start + 4_096], None, np.float32(1 - 1e-6))
            out[start : start + 4_096] = expit(logit(block) - shift)
        out.flush()
        np.save(weights, np.exp(shift.astype(np.float64)))
    return scores, labels, twin, weights


def run() -> None:
    scores, labels, twin, weights = write()
    print(
        f"\ndiagnose {N_ROWS:,} x {N_LABELS:,} float32 (2.1 GB), K = 7, B = {N_REPLICATES:,}, "
        "30% of the rows calibrate"
    )
    print(f"  {'':32} {'CPU s':>8} {'wall s':>8} {'peak above imports':>19}")
    for name, other in {"scores and labels": "", "with weights and twin": str(twin)}.items():
        told = subprocess.run(
            [sys.executable, "-c", CHILD, str(scores), str(labels), other, str(weights),
             str(N_REPLICATES)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        cpu, wall, peak, verdict, rungs = json.loads(told.stdout)
        print(f"  {name:32} {cpu:8.2f} {wall:8.2f} {peak / 1e6:16.0f} MB   {verdict}")
        assert rungs["isotonic"] > rungs["raw"], "the shift must be there to be repaired"
