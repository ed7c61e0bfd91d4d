"""One-vs-rest LightGBM pairs on product files of one tenth and of full size, a few labels trained.

``python -m benchmarks scaling`` generates the files, reads them, bins them, and trains and scores a
few labels of both arms, spread over the popularity of products; what all labels would take follows.
Each in its own process, so that peaks are its own. Only if named: it takes a quarter of an hour,
and gigabytes in ``.bench``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Scale(NamedTuple):
    """Generated files, and how many of their labels are trained."""

    name: str
    folder: str
    size_name: str
    size: int
    trained: int


SCALES = (
    Scale("instacart", "instacart", "n_users", 19_681, 16),
    Scale("instacart", "instacart-full", "n_users", 196_810, 8),
    Scale("santander", "santander-full", "n_rows", 13_600_000, 2),
)
CHILD = """
import resource, sys, time
from pathlib import Path
import numpy as np
from oddslip import datasets
from oddslip.learners import OneVsRest

name, folder, size_name, size, trained = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
trained = int(trained)

def told(stage, call):
    started = time.process_time(), time.perf_counter()
    made = call()
    cpu, wall = time.process_time() - started[0], time.perf_counter() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {stage:34} {cpu:8.1f} {wall:8.1f} {peak:8.0f}", flush=True)
    return made, cpu

if not folder.exists():
    make = getattr(datasets, f"generate_{name}")
    told("generate", lambda: make(folder, **{size_name: int(size)}, seed=0))
read = getattr(datasets, f"read_{name}")
data, _ = told("read, features (if not cached)", lambda: read(folder, cache=folder / "cache"))
n_labels = data.train.Y.shape[1]
by_popularity = np.argsort(-data.positives, kind="stable")
chosen = by_popularity[((np.arange(trained) + 0.5) / trained * n_labels).astype(int)]
truth = data.train.Y.tocsc()[:, chosen].tocsr()
model = OneVsRest("lightgbm", preset="paper-booster")
prepared, _ = told("bin", lambda: model.prepare(data.train.X))
spent = 0.0
for weights in ("none", "balanced"):
    arm = OneVsRest("lightgbm", preset="paper-booster", weights=weights)
    _, cpu = told(f"train {trained} labels, {weights}", lambda: arm.fit(prepared, truth))
    for period in ("validation", "test"):
        X = getattr(data, period).X
        _, more = told(f"score {period}, {weights}", lambda: arm.predict_proba(X))
        cpu += more
    print(f"  {'CPU seconds a label':34} {cpu / trained:8.2f}")
    spent += cpu
hours = spent / trained * n_labels / 3600
print(f"  both arms of {n_labels:,} labels, extrapolated: {hours:.1f} CPU hours")
"""


def run() -> None:
    for scale in SCALES:
        print(f"\n{scale.name}, {scale.size_name} = {scale.size:,}, generated")
        print(f"  {'stage':34} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}", flush=True)
        folder = Path(".bench") / scale.folder
        told = [scale.name, str(folder), scale.size_name, str(scale.size), str(scale.trained)]
        subprocess.run([sys.executable, "-c", CHILD, *told], check=True)
