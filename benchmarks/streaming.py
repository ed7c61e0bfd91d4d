"""Cost per cell and peak memory from a million to a billion cells in a memory-mapped file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

import oddslip
from benchmarks.peers import argsort_rows, precision_of_rows
from benchmarks.timing import (
    Times,
    agree,
    alone,
    forget_peak,
    line,
    measure,
    read_status,
    title,
    work_folder,
)

K = 7
CHECKED = 250  # rows


class Size(NamedTuple):
    n_labels: int
    repeats: dict[int, int]  # by number of rows


REAL = Size(4_000, {250: 50, 2_500: 20, 25_000: 6, 250_000: 3})
TOY = Size(100, {250: 3})


class Measured(NamedTuple):
    read: Times
    ranked: Times
    evaluated: Times
    peak_bytes: int
    largest: tuple[float, float]  # by NumPy, and where our ranking says it is


def measure_file(scores: Path, labels: Path, repeats: int) -> Measured:
    """Of rank and evaluate; NumPy's own pass over the map comes after, since it keeps all of it."""
    small = np.random.default_rng(0).random((64, 100), dtype=np.float32)
    oddslip.rank(small, k=K)
    oddslip.evaluate(small, small > 0.9, k=K, n_replicates=0)
    held = forget_peak()
    ranked = measure(lambda: oddslip.rank(scores, k=K), repeats)
    evaluated = measure(lambda: oddslip.evaluate(scores, labels, k=K, n_replicates=0), repeats)
    peak = read_status("VmHWM") - held
    read = measure(lambda: np.load(scores, mmap_mode="r").max(), repeats)
    cells = np.load(scores, mmap_mode="r")
    first = cells[np.arange(len(cells)), oddslip.rank(scores, k=K)[:, 0]]
    return Measured(read, ranked, evaluated, peak, (float(cells.max()), float(first.max())))


def write(folder: Path, n_rows: int, n_labels: int) -> tuple[Path, Path]:
    """Score and label files of this many rows."""
    import scipy.sparse as sp

    scores, labels = folder / f"scores-{n_rows}.npy", folder / f"labels-{n_rows}.npz"
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(scores, "w+", np.float32, (n_rows, n_labels))
    for start in range(0, n_rows, 2_500):
        block = out[start : start + 2_500]
        block[:] = rng.random(block.shape, dtype=np.float32)
    out.flush()
    columns = rng.integers(0, n_labels, (n_rows, 4))
    rows = np.repeat(np.arange(n_rows), 4)
    truth = sp.coo_array((np.ones(rows.size), (rows, columns.ravel())), (n_rows, n_labels))
    sp.save_npz(labels, sp.csr_array((truth.tocsr() > 0).astype(np.int8)), compressed=False)
    return scores, labels


def read_afresh(path: Path) -> None:
    """Have the system hold the file as it does one read from disk, not as it was written."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 24):
            pass


def check_rows(scores: Path, labels: Path) -> None:
    """The first rows, read from the file by NumPy and sorted."""
    import scipy.sparse as sp

    cells = np.load(scores, mmap_mode="r")[:CHECKED]
    truth = sp.load_npz(labels)[:CHECKED].toarray() > 0
    expected = precision_of_rows(argsort_rows(cells, K), truth).mean()
    agree("top labels", oddslip.rank(scores, k=K)[:CHECKED], argsort_rows(cells, K))
    if len(np.load(scores, mmap_mode="r")) == CHECKED:
        found = oddslip.evaluate(scores, labels, k=K, n_replicates=0)
        agree("MAP", found["map"].value, expected, 1e-12)


def run(size: Size) -> None:
    for n_rows, repeats in size.repeats.items():
        cells = n_rows * size.n_labels
        with work_folder() as folder:
            files = write(folder, n_rows, size.n_labels)
            read_afresh(files[0])
            found = alone(measure_file, *files, repeats)
            title(f"{cells:,} cells of a memory-mapped .npy, {size.n_labels:,} labels, float32")
            line("oddslip.rank", found.ranked, peak_bytes=found.peak_bytes)
            line("max() of the map by NumPy", found.read, found.ranked)
            line("oddslip.evaluate", found.evaluated, peak_bytes=found.peak_bytes)
            line("max() of the map by NumPy", found.read, found.evaluated)
            per_cell = [times.cpu / cells * 1e9 for times in found[:3]]
            print("  CPU ns a cell: max() {:.3f}, rank {:.3f}, evaluate {:.3f}".format(*per_cell))
            agree("largest score", *found.largest)
            check_rows(*files)
