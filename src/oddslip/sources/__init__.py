"""Where panels come from and where they go: arrays, files, Arrow streams; and the sinks.

Each source yields panels block by block and runs tallies over itself; a table of Spark leaves that
to an engine. May import the ground floor and engines.
"""

from oddslip.sources.base import Source
from oddslip.sources.open import open_source

__all__ = ["Source", "open_source"]
