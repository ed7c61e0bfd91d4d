"""Arrays in memory, memory-mapped, in a file or in several, cut into blocks of rows."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oddslip.core.labels import Positives
from oddslip.core.panel import Panel
from oddslip.core.types import Array
from oddslip.errors import InvalidInput
from oddslip.sources.base import Source, block_rows

BEHIND = 8  # blocks that may still be in use when the pages of an earlier block are released
LATE = 64  # earlier blocks that may have been read again: groups of blocks wait for a thread


class ArraySource(Source):
    """A panel in an array, or in a file whose blocks are read when they are used.

    Pages of a read-only memory map, which a user may pass, are released after use.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.n_rows, self.n_labels = panel.n_rows, panel.n_labels
        self.kind, self.label_names = panel.kind, panel.label_names
        self.dtype = panel.scores.dtype
        self.has_labels = panel.labels is not None

    def row_ids(self) -> Array | None:
        """Names of all rows, or None where rows are only numbered."""
        return self.panel.row_ids

    def blocks(self) -> Iterator[Panel]:
        """Views of the array; rows of a file that are still to be read."""
        step = block_rows(self.n_labels, self.dtype.itemsize)
        scores = self.panel.scores
        release = _page_releaser(scores)
        for number, start in enumerate(range(0, self.n_rows, step)):
            yield self.panel.rows(start, min(start + step, self.n_rows))
            if release and number >= BEHIND:
                last = start - BEHIND * step
                first = max(0, last - LATE * step)
                release(first * scores.strides[0], (last + step) * scores.strides[0])
        if release:
            release(0, self.n_rows * scores.strides[0])


class ChainedSource(Source):
    """Arrays stacked by rows, without a copy.

    Parameters
    ----------
    parts : list of ArraySource
        Without labels, and alike: see `check_alike`.
    whole : Panel
        The labels and names of all rows, and no cells.
    """

    def __init__(self, parts: Sequence[ArraySource], whole: Panel) -> None:
        self.parts, self.whole = parts, whole
        self.n_rows, self.n_labels = whole.n_rows, whole.n_labels
        self.kind, self.label_names = whole.kind, whole.label_names
        self.dtype, self.has_labels = parts[0].dtype, whole.labels is not None

    def row_ids(self) -> Array | None:
        """Names of all rows, or None where rows are only numbered."""
        return self.whole.row_ids

    def positives(self) -> Positives:
        """True labels of all rows. No score is read."""
        return ArraySource(self.whole).positives()

    def blocks(self) -> Iterator[Panel]:
        """The panels, in row order."""
        first = 0
        for part in self.parts:
            for block in part.blocks():
                stop = first + block.n_rows
                yield self.whole._cut(block, first, stop)
                first = stop


def check_alike(parts: Sequence[ArraySource], files: Sequence[Any]) -> None:
    """Reject files whose arrays cannot be stacked; name the first that differs."""
    first = parts[0]
    for part, file in zip(parts, files, strict=True):
        if part.n_labels != first.n_labels:
            raise InvalidInput(
                f"all files must have the same labels, but {file} has {part.n_labels} and "
                f"{files[0]} has {first.n_labels}."
            )
        if part.dtype != first.dtype:
            raise InvalidInput(
                f"all files must have the same type of scores, but {file} has {part.dtype} and "
                f"{files[0]} has {first.dtype}. Convert one."
            )


def _page_releaser(scores: Array) -> Any:
    """Function that tells the system that bytes of a read-only map are no longer needed.

    Without it the resident size of a run over a 4 GB file would be 4 GB. Dropping a page that is
    still in use is harmless: it is read again.
    """
    mapped = getattr(scores, "_mmap", None)
    readable_only = getattr(scores, "mode", None) == "r"
    if mapped is None or not readable_only or not hasattr(mapped, "madvise"):
        return None
    if not scores.flags.c_contiguous:
        return None
    offset = scores.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data

    def release(start: int, stop: int) -> None:
        first = (offset + start) // mmap.PAGESIZE * mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, first, offset + stop - first)

    return release
