"""Compiled loops over trusted arrays: keys, top-K, hits, isotonic counts, maps, trees and more.

Kernels validate nothing and import no other package. Importing this package is cheap; each kernel
is imported where it is used.

On x86-64 every kernel is compiled twice from the same source: for any processor, and into the
folder ``avx2`` for those with AVX2. Which one to import is decided here, once. Both give the same
results to the last bit, except for logistic sums and fits. ``ODDSLIP_CPU=baseline`` selects the
plain ones.
"""

import os
from importlib.machinery import PathFinder
from typing import Literal

Kind = Literal["probability", "margin"]


def _choose_cpu() -> str:
    choice = os.environ.get("ODDSLIP_CPU") or "avx2"
    if choice not in ("avx2", "baseline"):
        raise ImportError(f'ODDSLIP_CPU must be "avx2" or "baseline", got {choice!r}.')
    try:
        from oddslip.kernels.cpu import HAS_AVX2
    except ModuleNotFoundError:
        raise ImportError(
            "oddslip's kernels are not compiled here. Run: pip install --editable ."
        ) from None
    fast = os.path.join(__path__[0], "avx2")
    if choice == "baseline" or not HAS_AVX2 or not PathFinder.find_spec(f"{__name__}.keys", [fast]):
        return "baseline"  # the folder may be empty, or hold the kernels of another Python
    __path__.insert(0, fast)
    return "avx2"


CPU = _choose_cpu()
