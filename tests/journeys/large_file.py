"""Scores of float16 in Parquet, larger than the memory they are read with: how much it takes.

    python tests/journeys/large_file.py --gigabytes 3 --folder /tmp/large

writes the file unless it is there, evaluates it in a child process, and prints the peak.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_LABELS = 500
GROUP_ROWS = 4_000
CHILD = """
import json, sys, pyarrow.parquet, oddslip

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

oddslip.evaluate([[0.1, 0.2]], [[1, 0]], k=1, n_replicates=0, threads=1)
before = peak()
found = oddslip.evaluate(sys.argv[1], k=7, n_replicates=0, threads=1)
print(json.dumps({"map": found["map"].value, "before_mb": before, "peak_mb": peak()}))
"""


def write_large(path: Path, n_bytes: int) -> int:
    """A list column of float16 scores beside one of true labels; returns the number of rows."""
    n_rows = n_bytes // (2 * N_LABELS) // GROUP_ROWS * GROUP_ROWS
    rng = np.random.default_rng(0)
    lists = pa.list_(pa.float16(), N_LABELS)
    schema = pa.schema([("scores", lists), ("labels", pa.list_(pa.int32()))])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        cells = rng.random((GROUP_ROWS, N_LABELS), np.float32).astype(np.float16)
        best = pa.array(cells.argmax(axis=1)[:, None].tolist(), schema.field("labels").type)
        flat = pa.FixedSizeListArray.from_arrays(pa.array(cells.ravel()), type=lists)
        block = pa.record_batch([flat, best], schema=schema)
        for _ in range(n_rows // GROUP_ROWS):  # the same rows over and over
            writer.write_batch(block)
    return n_rows


def measure(path: Path) -> dict[str, float]:
    """Evaluate the file in a process of its own."""
    command = [sys.executable, "-c", CHILD, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Write, read, tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--folder", type=Path, required=True)
    told = parser.parse_args()
    told.folder.mkdir(exist_ok=True)
    path = told.folder / "scores.parquet"
    if not path.exists():
        write_large(path, int(told.gigabytes * 1e9))
    start = time.perf_counter()
    found = measure(path)
    seconds = time.perf_counter() - start
    print(json.dumps(found | {"file_gb": path.stat().st_size / 1e9, "wall_s": seconds}))


if __name__ == "__main__":
    main()
