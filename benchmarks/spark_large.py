"""A table that one machine finds uncomfortable, end to end on a Spark cluster of this machine.

Next baskets of half a million customers among 4,000 products: two columns of 2 x 10^9 scores, of a
weighted model and of its twin. It is diagnosed, repaired, and its ranking written back, by a master
and two workers of one core each, executors and driver with 2 GB. What is done is kept in
``.bench/spark_large`` and not done again by a second run, which removes it at its end.
At toy size tasks run in this process.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import expit, logit
from tests.support.processes import Processes

import oddslip
from benchmarks._tree import Cost, Tree
from benchmarks.timing import FOLDER, Times, agree, line, title, work_folder
from oddslip.io.files import atomic_write
from oddslip.sources.table import TableSource
from oddslip.spark.rows import Layout

K = 7
N_TASTES = 12
NAMES = {"scores": "scores", "labels": "labels", "row_id": "customer", "kind": "margin"}


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    per_file: int  # rows
    group: int  # rows of a row group
    n_replicates: int
    spark: bool


REAL = Size(500_000, 4_000, 25_000, 2_500, 1_000, True)
TOY = Size(1_200, 30, 400, 200, 50, False)


class Catalogue(NamedTuple):
    base: NDArray[np.float32]  # log-odds of each product
    tastes: NDArray[np.float32]
    weights: NDArray[np.float64]
    shift: NDArray[np.float32]  # what the weight has added to the margin: less than its log


def draw_catalogue(n_labels: int) -> Catalogue:
    """A few products in every fifth basket, most of them in one of thousands."""
    rng = np.random.default_rng(0)
    share = np.minimum(0.2, 8 / n_labels * (np.arange(n_labels) / n_labels + 0.02) ** -0.8 / 3)
    base = logit(rng.permutation(share))
    weights = np.exp(-base)
    shift = np.log(weights) * rng.uniform(0.4, 1.0, n_labels)
    tastes = rng.normal(0, 1 / np.sqrt(N_TASTES), (N_TASTES, n_labels))
    return Catalogue(
        base.astype(np.float32), tastes.astype(np.float32), weights, shift.astype(np.float32)
    )


def draw_rows(catalogue: Catalogue, first: int, n_rows: int) -> pa.Table:
    """Customers, the scores of both models, and what lay in their next baskets."""
    rng = np.random.default_rng((1, first))
    n_labels = catalogue.base.size
    margin = rng.standard_normal((n_rows, N_TASTES), np.float32) @ catalogue.tastes
    margin *= 1.2
    margin += catalogue.base
    true = rng.random(margin.shape, np.float32) < expit(margin)
    ends = pa.array(np.arange(0, margin.size + 1, n_labels, dtype=np.int32))
    row, column = np.nonzero(true)
    starts = np.searchsorted(row, np.arange(n_rows + 1)).astype(np.int32)

    def noisy(scale: float) -> pa.Array:
        cells = rng.standard_normal(margin.shape, np.float32)
        cells *= np.float32(scale)
        cells += margin
        return cells

    weighted = noisy(0.5)
    weighted += catalogue.shift

    def lists(cells: NDArray[np.float32]) -> pa.Array:
        return pa.ListArray.from_arrays(ends, pa.array(cells.reshape(-1)))

    return pa.table(
        {
            "customer": np.arange(first, first + n_rows),
            "scores": lists(weighted),
            "scores0": lists(noisy(0.4)),
            "labels": pa.ListArray.from_arrays(pa.array(starts), pa.array(column.astype(np.int32))),
        }
    )


def write_rows(folder: Path, size: Size) -> list[Path]:
    """The files of the table; those that are there are not written again."""
    folder.mkdir(exist_ok=True)
    catalogue = draw_catalogue(size.n_labels)
    paths = []
    for first in range(0, size.n_rows, size.per_file):
        path = folder / f"part-{first // size.per_file:03}.parquet"
        paths.append(path)
        if path.exists():
            continue
        stop = min(first + size.per_file, size.n_rows)
        with atomic_write(path) as unfinished:
            blocks = (
                draw_rows(catalogue, at, min(size.group, stop - at))
                for at in range(first, stop, size.group)
            )
            _write_groups(unfinished, blocks)
    return paths


def _write_groups(path: Path, blocks: Iterator[pa.Table]) -> None:
    writer = None
    for block in blocks:
        # Scores hardly repeat: a dictionary of them is larger than they are.
        writer = writer or pq.ParquetWriter(
            path, block.schema, compression="none", use_dictionary=False
        )
        writer.write_table(block)
    assert writer is not None
    writer.close()


@contextmanager
def open_rows(folder: Path, size: Size) -> Iterator[Callable[[Path], TableSource]]:
    """What opens a folder of Parquet files: tasks of a cluster, or of this process, read them."""
    if not size.spark:
        layout = Layout(
            size.n_labels, "margin", np.dtype(np.float32), None, "scores", "labels", "customer"
        )
        yield lambda path: TableSource(
            Processes([pq.read_table(file).to_batches() for file in sorted(path.iterdir())], 1),
            layout,
        )
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "engines"))
    from cluster import SETTINGS, start_cluster

    from oddslip.spark.session import start_session

    more = {
        "spark_executor_memory": "2g",
        "spark_driver_memory": "2g",
        "spark_driver_maxResultSize": "2g",
    }
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        start_cluster(Path(scratch).resolve(), memory="2g") as master,
    ):
        session = start_session(master, **SETTINGS | more)
        signal.signal(signal.SIGTERM, partial(end_jobs, session))
        try:
            # One job, so that both executors are there when tables are cut for them.
            # A lambda travels by value: executors need not have this package.
            session.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").count()
            yield partial(oddslip.open_source, **NAMES, engine=session)
        finally:
            session.stop()


def end_jobs(session: Any, *_: Any) -> NoReturn:
    """Leave, so that the cluster is stopped too: Spark would wait for the end of the pass."""
    threading.Thread(target=session.sparkContext.cancelAllJobs, daemon=True).start()
    sys.exit(1)


class Kept:
    """Steps of a job. What each took is kept in a file beside what it made, and read by a rerun."""

    def __init__(self, folder: Path, tree: Tree) -> None:
        self.folder, self.tree = folder, tree

    def __call__(self, name: str, call: Callable[[Path], Any], *, passes: Any = None) -> Times:
        """Run a step that writes a file or a folder, unless it is done; print its line."""
        made, told = self.folder / name, self.folder / f"{name}.json"
        if not told.exists():
            _, cost = self.tree.measure(lambda: call(made))
            n_passes = None if passes is None else passes()
            told.write_text(json.dumps([*cost, n_passes]))
        times, seconds, peaks, n_passes = json.loads(told.read_text())
        cost = Cost(Times(*times), seconds, peaks)
        notes = [f"{n_passes} passes"] if n_passes is not None else []
        notes += [f"{role} {peak / 1e6:.0f} MB" for role, peak in sorted(peaks.items())]
        line(name.replace("_", " ").partition(".")[0], cost.times, note=", ".join(notes))
        return cost.times


def run(size: Size) -> None:
    """All steps; those that an earlier run has finished are not run again."""
    if not size.spark:
        with work_folder() as folder:
            go(folder, size)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the cluster is stopped too
    folder = FOLDER / "spark_large"
    folder.mkdir(parents=True, exist_ok=True)
    go(folder, size)
    shutil.rmtree(folder)


def go(folder: Path, size: Size) -> None:
    title(
        f"next baskets, {size.n_rows:,} x {size.n_labels:,} and a twin: "
        f"{size.n_rows * size.n_labels:,} cells, float32, K = {K}"
    )
    catalogue = draw_catalogue(size.n_labels)
    rows, diagnosis = folder / "rows", folder / "diagnose.txt"
    repair_file, ranked = folder / "repair.oddslip", folder / "rank_and_write"
    with Tree() as tree:
        step = Kept(folder, tree)
        step("rows", lambda made: write_rows(made, size))
        with open_rows(folder, size) as open_folder:
            source = open_folder(rows)
            count = count_passes(source)

            def tell(made: Path) -> None:
                found = oddslip.diagnose(
                    source,
                    k=K,
                    weights=catalogue.weights,
                    n_replicates=size.n_replicates,
                    unweighted="scores0",
                )
                made.write_text(f"{found}\n")

            def fit(made: Path) -> None:
                oddslip.Repair(k=K, kind="margin", weights=catalogue.weights).fit(source).save(made)

            def rank(made: Path) -> None:
                shutil.rmtree(made, ignore_errors=True)  # what a run that was stopped has left
                write_ranked(oddslip.load_repair(repair_file).rank(source, k=K), made)

            step(diagnosis.name, tell, passes=count)
            step(repair_file.name, fit, passes=count)
            spent = step(ranked.name, rank)
    print(diagnosis.read_text())
    compare(sorted(rows.iterdir())[0], repair_file, ranked, spent, size)


def count_passes(source: TableSource) -> Callable[[], int]:
    """Tells how often tasks have read the table since it was asked last."""
    engine: Any = source.engine
    collect, n_passes = engine.collect, 0

    def counted(*told: Any) -> Any:
        nonlocal n_passes
        n_passes += 1
        return collect(*told)

    def since() -> int:
        nonlocal n_passes
        found, n_passes = n_passes, 0
        return found

    engine.collect = counted
    return since


def write_ranked(table: Any, made: Path) -> None:
    """The ranked table as Parquet, by the tasks where there are some."""
    if isinstance(table, pa.Table):
        made.mkdir()
        pq.write_table(table, made / "part.parquet")
    else:
        table.write.parquet(str(made))


def compare(file: Path, repair_file: Path, ranked: Path, spent: Times, size: Size) -> None:
    """This machine alone on the rows of the first file: the same labels, and the time they take."""
    table = pq.read_table(file, columns=["customer", "scores"])
    cells = table.column("scores").combine_chunks().flatten().to_numpy()
    repair = oddslip.load_repair(repair_file)
    scores = cells.reshape(-1, size.n_labels)
    with Tree() as tree:
        wanted, cost = tree.measure(lambda: repair.rank(scores, k=K))
    scale = size.n_rows / len(scores)
    times = Times(cost.times.cpu * scale, cost.times.wall * scale)
    line("rank by this machine, from memory (scaled up)", times, spent)
    found = pq.read_table(ranked)
    assert found.num_rows == size.n_rows
    customers = found.column("customer").to_numpy()
    at = np.flatnonzero(customers < len(scores))
    labels = found.column("top").take(at).combine_chunks().flatten().field("label").to_numpy()
    order = np.argsort(customers[at])
    agree("labels of the first file", labels.reshape(-1, K)[order], wanted)
