"""Raw product files of full size to features: seconds and peak memory, each in its own process.

Instacart (196,810 users) and Santander (13.6 million rows) are generated in Kaggle's schemas and
read without a cache. The peer parses the same files and makes nothing of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import Stage, Stages, agree, alone, line, lines, title, work_folder
from experiments.datasets.baskets.instacart import read_instacart
from experiments.datasets.generators import generate_instacart, generate_santander
from experiments.datasets.santander.reader import read_santander

READERS = {"instacart": read_instacart, "santander": read_santander}
GENERATORS = {"instacart": generate_instacart, "santander": generate_santander}
CHUNK = 500_000  # lines


class Product(NamedTuple):
    """A data set that is generated, and how its people are counted in the raw file."""

    name: str
    size_name: str
    file: str
    column: str
    counted: str  # among the settings of what is read


INSTACART = Product("instacart", "n_users", "orders.csv", "user_id", "n_users")
SANTANDER = Product("santander", "n_rows", "train_ver2.csv", "ncodpers", "n_customers")


class Size(NamedTuple):
    n_users: int
    n_rows: int


REAL = Size(196_810, 13_600_000)
TOY = Size(200, 5_000)


def generate(product: Product, folder: Path, size: int) -> Stage:
    import polars  # noqa: F401

    stages = Stages()
    make = GENERATORS[product.name]
    stages("generate", lambda: make(folder, **{product.size_name: size}, seed=0))
    return stages.done[0]


def read(product: Product, folder: Path) -> tuple[Stage, int]:
    """Ours, to features; and how many people there are."""
    import polars  # noqa: F401

    stages = Stages()
    reader = READERS[product.name]
    data = stages("read, to features", lambda: reader(folder, cache=folder / "cache"))
    return stages.done[0], int(data.settings[product.counted])


def parse(product: Product, folder: Path) -> tuple[Stage, int]:
    """pandas, all files in chunks, all columns; and how many people there are."""
    import pandas as pd

    def parse_files() -> set[int]:
        people: set[int] = set()
        for path in folder.glob("*.csv"):
            for chunk in pd.read_csv(path, chunksize=CHUNK, low_memory=False):
                if path.name != product.file:
                    continue
                if "eval_set" in chunk:  # the last basket of the others is not told
                    chunk = chunk[chunk["eval_set"] == "train"]
                people.update(chunk[product.column].tolist())
        return people

    stages = Stages()
    people = stages("pandas.read_csv, to chunks", parse_files)
    return stages.done[0], len(people)


def compare(product: Product, size: int) -> None:
    with work_folder() as folder:
        title(f"{product.name}, {product.size_name} = {size:,}, generated")
        lines([alone(generate, product, folder, size)])
        stage, n_people = alone(read, product, folder)
        lines([stage])
        peer, n_parsed = alone(parse, product, folder)
        line(peer.name, peer.times, stage.times, peak_bytes=peer.peak_bytes)
        agree(product.counted, n_people, n_parsed)


def run(size: Size) -> None:
    compare(INSTACART, size.n_users)
    compare(SANTANDER, size.n_rows)
