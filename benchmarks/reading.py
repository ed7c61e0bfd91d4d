"""Raw product files of full size to features: seconds and peak memory, each in its own process.

``python -m benchmarks reading`` generates Instacart (196,810 users) and Santander (13.6 million
rows) in Kaggle's schemas and reads them without a cache. Only if named: minutes, and gigabytes in
``.bench``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(".bench")
CHILD = """
import resource, sys, tempfile, time
from oddslip import datasets
name, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])

def told(stage, call):
    started = time.process_time(), time.perf_counter()
    made = call()
    spent = time.process_time() - started[0], time.perf_counter() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {name:10} {stage:9} {spent[0]:8.1f} {spent[1]:8.1f} {peak:8.0f}", flush=True)
    return made

if sys.argv[4] == "generate":
    make = getattr(datasets, f"generate_{name}")
    told("generate", lambda: make(folder, **{sys.argv[5]: size}, seed=0))
else:
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        data = told("read", lambda: getattr(datasets, f"read_{name}")(folder, cache=cache))
        print(f"  {'':10} rows {data.describe()['rows']}")
"""


def run() -> None:
    print(f"\n  {'':10} {'stage':9} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}", flush=True)
    wanted = (("instacart", "n_users", 196_810), ("santander", "n_rows", 13_600_000))
    for name, size_name, size in wanted:
        folder = FOLDER / f"{name}-full"
        for step in ["read"] if folder.exists() else ["generate", "read"]:
            told = [sys.executable, "-c", CHILD, name, str(folder), str(size), step, size_name]
            subprocess.run(told, check=True)
