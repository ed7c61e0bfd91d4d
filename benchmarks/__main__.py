"""``python -m benchmarks [--toy] [--list] [name ...]``: ratios against peers, in this very run."""

import argparse
import os
import platform
import warnings
from importlib import import_module

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
    told = parser.parse_args()
    unknown = sorted(set(told.names) - set(NAMES))
    if unknown:
        parser.error(f"benchmarks are {', '.join(NAMES)}; got {', '.join(unknown)}.")
    chosen = told.names or [name for name in NAMES if told.toy or name not in ONLY_IF_NAMED]
    if told.list:
        print("\n".join(chosen))
        return
    import numpy as np

    warnings.filterwarnings("ignore", message="X does not have valid feature names")  # LightGBM's
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores.")
    print("Ratios say how many times slower the peer is. Peaks are above what imports hold.")
    for name in chosen:
        benchmark = import_module(f"benchmarks.{name}")
        benchmark.run(benchmark.TOY if told.toy else benchmark.REAL)


if __name__ == "__main__":  # a process that measures alone imports this file too
    main()
