"""``python -m benchmarks [--toy] [--list] [--table] [name ...]``: ratios against peers."""

import argparse
import os
import platform
import warnings
from importlib import import_module
from pathlib import Path

from benchmarks import NAMES, ONLY_IF_NAMED


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Speed and memory beside peers. Unnamed: all at toy size, else all but "
        f"{', '.join(ONLY_IF_NAMED)}, which takes about ten minutes and 5 GB of disk in .bench.",
    )
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--toy", action="store_true", help="seconds each, to see that they run")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("--table", action="store_true", help="only print the docs' table")
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="folder of the records, one JSON file a benchmark; benchmarks/results by default, "
        "and nothing is written at toy size",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"benchmarks are {', '.join(NAMES)}; got {', '.join(unknown)}.")
    names = options.names or [name for name in NAMES if options.toy or name not in ONLY_IF_NAMED]
    if options.list:
        print("\n".join(names))
        return
    from benchmarks.record import RESULTS, make_table

    if options.table:
        print(make_table(options.results or RESULTS))
        return
    run(names, toy=options.toy, folder=options.results or (None if options.toy else RESULTS))


def run(names: list[str], *, toy: bool, folder: Path | None) -> None:
    """Run benchmarks one after the other; write their records to a folder, unless it is None."""
    import numpy as np

    from benchmarks.record import describe_run, write_record
    from benchmarks.timing import TABLES

    surroundings = describe_run()

    warnings.filterwarnings("ignore", message="X does not have valid feature names")  # LightGBM's
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores.")
    print("Ratios say how many times slower the peer is. Peaks are above what imports hold.")
    for name in names:
        benchmark = import_module(f"benchmarks.{name}")
        size = benchmark.TOY if toy else benchmark.REAL
        TABLES.clear()
        benchmark.run(size)
        if folder is not None:
            record = surroundings | {"benchmark": name, "size": repr(size), "tables": TABLES}
            print(f"\nWrote {write_record(folder, record)}")


if __name__ == "__main__":  # a process that measures alone imports this file too
    main()
