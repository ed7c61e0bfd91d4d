"""Compiled loops over trusted arrays: keys, top-K, hits, isotonic counts, maps, trees and more.

No validation and no classes live here, and nothing here imports another room. Importing this
package is cheap; a kernel is loaded by who uses it.

On x86-64 every kernel is compiled twice from the same source: for any such processor, and into the
folder ``avx2`` for those that have AVX2. Which is loaded is decided here, once. Both give the same
results to the last bit, save the sums of `logistic`. ``ODDSLIP_CPU=baseline`` asks for the plain
ones.
"""

import os
from importlib.machinery import PathFinder
from typing import Literal

Kind = Literal["probability", "margin"]


def _choose_cpu() -> str:
    asked = os.environ.get("ODDSLIP_CPU") or "avx2"
    if asked not in ("avx2", "baseline"):
        raise ImportError(f'ODDSLIP_CPU must be "avx2" or "baseline", got {asked!r}.')
    try:
        from oddslip.kernels.cpu import HAS_AVX2
    except ModuleNotFoundError:
        raise ImportError(
            "oddslip's kernels are not compiled here. Run: pip install --editable ."
        ) from None
    fast = os.path.join(__path__[0], "avx2")
    if asked == "baseline" or not HAS_AVX2 or not PathFinder.find_spec(f"{__name__}.keys", [fast]):
        return "baseline"  # the folder may be empty, or hold the kernels of another Python
    __path__.insert(0, fast)
    return "avx2"


CPU = _choose_cpu()
