"""``python -m benchmarks [name ...]``: ratios against peers, measured in this very run.

All of them take about ten minutes on two cores and keep 9 GB of files in ``.bench``. Those of
``ONLY_IF_NAMED`` are not among "all".
"""

import os
import platform
import sys
from importlib import import_module

NAMES = [
    "ranking",
    "isotonic",
    "fused",
    "shifts",
    "selection",
    "streaming",
    "large",
    "training",
    "scoring",
    "training_xgboost",
]
ONLY_IF_NAMED = ["diagnosing", "kernels", "reading", "scaling"]  # minutes long, or for builders


def main() -> None:
    import numpy as np

    chosen = sys.argv[1:] or NAMES
    known = [*NAMES, *ONLY_IF_NAMED]
    unknown = set(chosen) - set(known)
    if unknown:
        sys.exit(f"benchmarks are {', '.join(known)}; got {', '.join(sorted(unknown))}.")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores.")
    print("Ratios say how many times slower the peer is. Best of several runs.")
    if not sys.argv[1:]:
        print(f"About ten minutes, 9 GB in .bench. One alone: python -m benchmarks {NAMES[0]}")
    for name in chosen:
        import_module(f"benchmarks.{name}").run()


main()
