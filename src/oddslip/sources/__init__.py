"""Sources of panels (arrays, files, frames, Arrow streams, Spark tables) and writers of results.

A source yields panels block by block and runs tallies over them. Spark tables are read by Spark.
"""

from oddslip.sources.base import Source
from oddslip.sources.open import open_source

__all__ = ["Source", "open_source"]
