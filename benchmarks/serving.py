"""Served with NumPy alone, beside the fused kernel, scikit-learn label by label, and ONNX."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import argsort_rows, fit_isotonic, make_labels
from benchmarks.timing import Times, agree, line, measure, title
from oddslip.calibrators import Isotonic, Platt
from oddslip.serving import load_runtime

K = 7


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    n_calls: int  # rows that are served one by one


REAL = Size(1_000, 4_000, n_calls=1_000)
TOY = Size(40, 30, n_calls=20)


def make_scores(n_rows: int, n_labels: int, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    level = np.random.default_rng(0).normal(-3.0, 1.5, n_labels)
    margins = level + 2 * rng.standard_normal((n_rows, n_labels))
    return np.asarray(1 / (1 + np.exp(-margins)), np.float32)


def call_each(call: Callable[[Any], Any], rows: NDArray[Any]) -> list[Times]:
    """Median and 99th percentile of calls with one row each."""
    for row in rows[:5]:
        call(row)
    taken = []
    for row in rows:
        cpu, wall = time.thread_time(), time.perf_counter()
        call(row)
        taken.append((time.thread_time() - cpu, time.perf_counter() - wall))
    return [Times(*np.quantile(taken, share, axis=0).tolist()) for share in (0.5, 0.99)]


def start_up(path: Path, code: str) -> Times:
    """Of some code in a new process, from after its start."""
    script = (
        "import sys, time\ncpu, wall = time.process_time(), time.perf_counter()\n"
        f"{code}\n"
        "print(time.process_time() - cpu, time.perf_counter() - wall)"
    )
    runs = []
    for _ in range(3):
        command = [sys.executable, "-c", script, str(path)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        runs.append(tuple(map(float, told.split())))
    return Times(*map(min, zip(*runs, strict=True)))


def open_onnx(fitted: Any, path: Path) -> tuple[Any, int]:
    import onnxruntime

    written = fitted.to_onnx(path, k=K, scores="float32")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda rows: session.run(["top_labels"], {"scores": rows})[0], written.n_bytes


def compare(name: str, fitted: Any, size: Size, folder: Path, peers: Any = None) -> None:
    rows = make_scores(size.n_rows, size.n_labels, 2)
    singles = rows[np.arange(size.n_calls) % size.n_rows]
    path = folder / f"{name}.oddslip"
    fitted.save(path)
    runtime = load_runtime(path)
    graph, n_bytes = open_onnx(fitted, folder / f"{name}.onnx")

    title(
        f"start, and load {size.n_labels:,} {name} maps ({path.stat().st_size:,} bytes), best of 3"
    )
    load = "from oddslip.serving.runtime import load_runtime\nload_runtime(sys.argv[1])"
    ours = start_up(path, load)
    line("import NumPy and the runtime, load", ours)
    line("import NumPy alone", start_up(path, "import numpy"), ours)
    whole = "import oddslip\noddslip.load_repair(sys.argv[1])"
    line("oddslip.load_repair", start_up(path, whole), ours)

    title(f"top {K} of one row x {size.n_labels:,} labels, {name} maps, {size.n_calls:,} calls")
    ours_half, ours_most = call_each(lambda row: runtime.rank(row, k=K), singles)
    line("runtime, median", ours_half)
    line("runtime, 99th percentile", ours_most)
    half, most = call_each(lambda row: fitted.rank(row[None], k=K, threads=1), singles)
    line("fused kernel, median", half, ours_half)
    line("fused kernel, 99th percentile", most, ours_most)
    half, most = call_each(lambda row: graph(row[None]), singles)
    line(f"ONNX ({n_bytes:,} bytes), median", half, ours_half)
    line("ONNX, 99th percentile", most, ours_most)
    if peers is not None:
        half, most = call_each(lambda row: predict_each(peers, row[None]), singles[:5])
        line("scikit-learn's predict per label, median of 5", half, ours_half)

    title(f"top {K} of {size.n_rows:,} rows x {size.n_labels:,} labels, {name} maps, one thread")
    ours = measure(lambda: runtime.rank(rows, k=K), 3)
    line("runtime", ours)
    line("fused kernel", measure(lambda: fitted.rank(rows, k=K, threads=1), 3), ours)
    line("ONNX", measure(lambda: graph(rows), 2), ours)
    if peers is not None:
        line(
            "scikit-learn's predict per label", measure(lambda: predict_each(peers, rows), 1), ours
        )
        # Two labels may be nearer than the last digit, in which the peer interpolates otherwise.
        differ = np.mean(runtime.rank(rows, k=K) != predict_each(peers, rows))
        agree("share of scikit-learn's places that differ", differ, 0, 1e-3)
    ranking = fitted.rank(rows, k=K, threads=1)
    agree("fused top labels", runtime.rank(rows, k=K), ranking)
    agree("top labels row by row", [runtime.rank(row, k=K) for row in singles[:5]], ranking[:5])
    agree("ONNX top labels", graph(rows), ranking)


def predict_each(peers: Any, rows: NDArray[Any]) -> NDArray[Any]:
    values = [peer.predict(rows[:, j].astype(np.float64)) for j, peer in enumerate(peers)]
    return argsort_rows(np.stack(values, axis=1), K)


def run(size: Size) -> None:
    scores = make_scores(2 * max(size.n_rows, 500), size.n_labels, 1)
    prevalence = np.geomspace(5e-3, 0.3, size.n_labels, dtype=np.float32)
    labels = make_labels(scores, prevalence)
    with tempfile.TemporaryDirectory() as folder:
        peers = fit_isotonic(scores.T, labels.T)
        isotonic = Isotonic(dead="prior").fit(scores, labels).fitted_
        # Labels without a positive have no peer's map: the kernel's answer is compared for them.
        alive = bool((labels.sum(axis=0) > 0).all())
        compare("isotonic", isotonic, size, Path(folder), peers if alive else None)
        compare("affine", Platt().fit(scores, labels).fitted_, size, Path(folder))
