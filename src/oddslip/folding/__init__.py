"""Models with a repair inside: the same library, file format and predict call."""

from oddslip.folding.fold import fold

__all__ = ["fold"]
