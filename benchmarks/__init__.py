"""Speed and memory beside peers, measured in one run. Every file here but the shared ones is one.

A benchmark has two sizes, ``REAL`` and ``TOY``, and ``run(size)``, which prints tables. Times are
never asserted; that a peer gives the same answer always is. A run at the real size also writes its
tables to ``results/``, from which ``--table`` makes the table of the README.
"""

from pathlib import Path

SHARED = ("peers", "record", "timing")
NAMES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if not path.stem.startswith("_") and path.stem not in SHARED
)
ONLY_IF_NAMED = (
    "diagnosing",
    "kernels",
    "memory",
    "reading",
    "scaling",
    "spark",
    "spark_large",
)  # minutes, or many lines
