"""``python -m attacks [--minutes 10] [--times 1] [--seed 0] [--table FILE] [name ...]``."""

from __future__ import annotations

import argparse
import signal
import sys
from importlib import import_module
from pathlib import Path

from attacks import NAMES, ONLY_IF_NAMED, module_of
from attacks.frame import Run, end_all, run_campaigns
from attacks.table import print_table, write_table


def main() -> int:
    """Run campaigns two at a time; exit code 1 if anything broke."""
    parser = argparse.ArgumentParser(
        prog="python -m attacks",
        description="Try to break oddslip. Unnamed: every campaign but "
        f"{' and '.join(ONLY_IF_NAMED)}.",
    )
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--minutes", type=float, default=None, help="bound; 10 for each of --times")
    parser.add_argument("--times", type=int, default=1, help="so many times the usual tries")
    parser.add_argument("--count", type=int, default=None, help="tries of each campaign named")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same tries")
    parser.add_argument("--table", type=Path, default=None, help="also write the table here (.md)")
    parser.add_argument("--list", action="store_true", help="only print the names")
    told = parser.parse_args()
    unknown = sorted(set(told.names) - set(NAMES))
    if unknown:
        parser.error(f"campaigns are {', '.join(NAMES)}; got {', '.join(unknown)}.")
    if told.times < 1 or (told.count is not None and (told.count < 1 or not told.names)):
        parser.error("--times and --count must be at least 1, and --count goes with names.")
    chosen = told.names or [name for name in NAMES if name not in ONLY_IF_NAMED]
    if told.list:
        print("\n".join(chosen))
        return 0
    runs = []
    for name in chosen:
        module = import_module(module_of(name))
        count = told.count or module.FULL * told.times
        runs.append(Run(name, module.TITLE, count, told.seed))
    alone = all(name in ONLY_IF_NAMED for name in chosen)
    minutes = told.minutes or (60.0 if alone else 10.0 * told.times)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        results = run_campaigns(runs, minutes=minutes)
    finally:
        end_all()
    print_table(results)
    if told.table is not None:
        write_table(told.table, results, " ".join(["python -m attacks", *sys.argv[1:]]), told.seed)
    return int(any(result.outcome.failures for result in results))


if __name__ == "__main__":
    sys.exit(main())
