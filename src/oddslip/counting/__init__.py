"""Cells counted between the positives of their label: all that AUC and isotonic fits need.

The first pass collects the scores of the positives, which are few. The second finds the place of
every cell among them. Negatives are never sorted and never kept. Both passes are tallies whose
states are whole numbers, so the outcome is the same to the bit for any blocks, order and threads.
May import kernels, panels, tallies and sources.
"""

from oddslip.counting.cells import CellCounts
from oddslip.counting.intervals import IntervalCounts, count_cells
from oddslip.counting.positives import DistinctKeys, PositiveKeys

__all__ = ["CellCounts", "DistinctKeys", "IntervalCounts", "PositiveKeys", "count_cells"]
