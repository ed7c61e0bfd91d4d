"""Fit, transform and rank a 131,209 x 4,000 float32 file: time and peak memory, per stage."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import argsort_rows, fit_isotonic
from benchmarks.timing import (
    Stage,
    Stages,
    agree,
    alone,
    line,
    lines,
    measure,
    title,
    work_folder,
)
from oddslip import open_source
from oddslip.calibrators import Isotonic
from oddslip.writers import write_scores

K = 7
BLOCK = 4_096  # rows drawn at a time


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    part: int  # labels that scikit-learn fits, and rows that NumPy sorts, both scaled up


REAL = Size(131_209, 4_000, part=20)
TOY = Size(3_000, 80, part=20)


class Files(NamedTuple):
    scores: Path
    labels: Path


def shift_labels(n_labels: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Log-odds of every label, and how far its weight has moved them: more for rare ones."""
    rng = np.random.default_rng(0)
    base = rng.permutation(np.linspace(-9, -4, n_labels)).astype(np.float32)
    return base, (3 + 0.5 * base**2 / 9).astype(np.float32)


def write(folder: Path, size: Size) -> Files:
    """The scores of a weighted arm as .npy, and its labels."""
    import scipy.sparse as sp
    from scipy.special import expit

    files = Files(folder / "scores.npy", folder / "labels.npz")
    rng = np.random.default_rng(1)
    base, shift = shift_labels(size.n_labels)
    out = np.lib.format.open_memmap(files.scores, "w+", np.float32, size[:2])
    rows, columns = [], []
    for start in range(0, size.n_rows, BLOCK):
        block = out[start : start + BLOCK]
        margin = base + 1.5 * rng.standard_normal(block.shape, dtype=np.float32)
        true = rng.random(margin.shape, dtype=np.float32) < expit(margin)
        block[:] = expit(margin + shift)
        row, column = np.nonzero(true)
        rows.append(row + start)
        columns.append(column)
    out.flush()
    row, column = np.concatenate(rows), np.concatenate(columns)
    truth = sp.csr_array((np.ones(row.size, np.int8), (row, column)), size[:2])
    sp.save_npz(files.labels, truth, compressed=False)
    return files


def write_parquet(scores: Path, size: Size) -> Path:
    path = scores.with_suffix(".parquet")
    blocks = ((panel.first_row, panel.scores) for panel in open_source(scores).blocks())
    write_scores(path, blocks, n_rows=size.n_rows, n_labels=size.n_labels, dtype=np.float32)
    return path


def repair(
    scores: Path, labels: Path, out: Path, size: Size
) -> tuple[list[Stage], NDArray[np.int32]]:
    """Every stage of a repair, in a process of its own; and the ranking it ends with."""
    small = np.random.default_rng(0).random((300, 50), dtype=np.float32)
    warm = Isotonic().fit(small, small > 0.7)
    warm.transform(small)
    warm.rank(small, k=K)
    if scores.suffix == ".parquet":
        import pyarrow.parquet  # noqa: F401
    stages = Stages()
    fitted = stages("fit", lambda: Isotonic().fit(scores, labels).fitted_)
    shape = {"n_rows": size.n_rows, "n_labels": size.n_labels}
    stages(
        "transform to a file",
        lambda: write_scores(out, fitted.transform_blocks(scores), **shape, dtype=np.float32),
    )
    ranking = stages("calibrate and rank", lambda: fitted.rank(scores, k=K))
    return stages.done, ranking


def compare(
    files: Files, out: Path, stages: list[Stage], ranking: NDArray[np.int32], size: Size
) -> None:
    """scikit-learn and NumPy on a part, and whether they find the same there."""
    import scipy.sparse as sp

    scores, repaired = (np.load(path, mmap_mode="r") for path in (files.scores, out))
    truth = sp.load_npz(files.labels).tocsc()
    # The most frequent labels: scikit-learn knows no policy for dead ones.
    chosen = np.argsort(-np.diff(truth.indptr))[: size.part]
    columns, truths = scores[:, chosen].T.astype(np.float64), truth[:, chosen].toarray().T
    fit, transform, rank = (stage.times for stage in stages)
    by_label = size.n_labels / size.part
    fits = fit_isotonic(columns, truths)
    theirs = measure(lambda: fit_isotonic(columns, truths), 1, by_label)
    line(f"fit {size.part} labels by scikit-learn (scaled up)", theirs, fit)

    def predict() -> NDArray[np.float64]:
        return np.stack([fit.predict(x) for fit, x in zip(fits, columns, strict=True)], axis=1)

    line("transform by scikit-learn (scaled up)", measure(predict, 1, by_label), transform)
    some = repaired[: 10 * size.part]
    sort = measure(lambda: argsort_rows(some, K), 1, size.n_rows / len(some))
    line("stable argsort of repaired scores (scaled up)", sort, rank)
    agree("repaired scores", repaired[:, chosen], predict(), 1e-7)
    taken = [
        np.take_along_axis(some, top, axis=1)
        for top in (ranking[: len(some)], argsort_rows(some, K))
    ]
    # Rounded to float32, repaired scores tie, so labels may change places among equals.
    agree("repaired scores of the top labels", *taken, 1e-7)


def run(size: Size) -> None:
    with work_folder() as folder:
        files = write(folder, size)
        parquet = write_parquet(files.scores, size)
        out = folder / "repaired.npy"
        title(f"isotonic repair of a file, {size.n_rows:,} x {size.n_labels:,} float32, K = {K}")
        from_parquet, ranking = alone(repair, parquet, files.labels, out, size)
        lines(from_parquet, ".parquet: ")
        stages, same_ranking = alone(repair, files.scores, files.labels, out, size)
        lines(stages, ".npy: ")
        compare(files, out, stages, same_ranking, size)
        agree("ranking of either file", ranking, same_ranking)
