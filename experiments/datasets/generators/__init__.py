"""Files of made-up data in the form of public data sets: same columns, same quirks, same sizes.

It may import errors, progress bars, the writing of whole files, and names of columns.
"""

from __future__ import annotations

from experiments.datasets.generators.baskets import generate_baskets
from experiments.datasets.generators.instacart import generate_instacart
from experiments.datasets.generators.santander import generate_santander

__all__ = ["generate_baskets", "generate_instacart", "generate_santander"]
