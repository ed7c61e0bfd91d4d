"""Files written block by block, whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput, UnreadableFile

Parts = Iterator[tuple[int, tuple[NDArray[Any], ...]]]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside the wanted one, which takes its place once all went well.

    On an exception or Ctrl-C the temporary file is removed and the old file, if any, stays.

    Examples
    --------
    >>> with whole_file("report.txt") as unfinished:  # doctest: +SKIP
    ...     unfinished.write_text("done")
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidInput(f"{path} must be a file to write, got a folder.")
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} must lie in an existing folder. Make {path.parent} first.")
    # The ending stays, since some writers add their own to a name without it.
    unfinished = path.with_name(f".{path.stem}.{secrets.token_hex(6)}{path.suffix}")
    try:
        try:
            unfinished.touch(exist_ok=False)
        except OSError as error:
            raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
        yield unfinished
        _flush(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_npy(path: Path, parts: Parts, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    """Write blocks of rows to an .npy file, in whatever order they come."""
    # Written by position rather than through a memory map: a full disk is then an error with a
    # message and not a bus error, and no written page counts as ours.
    rows = _Rows(shape)
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})
        start = file.tell()
        for first, (cells, *_) in parts:
            rows.take(first, cells)
            file.seek(start + first * shape[1] * dtype.itemsize)
            file.write(np.ascontiguousarray(cells, dtype).data)
        rows.check_whole()


def write_parquet(
    path: Path,
    parts: Parts,
    shape: tuple[int, int],
    schema: Any,
    columns: Callable[..., list[Any]],
) -> None:
    """Write blocks of rows to a Parquet file. Those that come early wait for their turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = _Rows(shape)
    waiting: dict[int, tuple[NDArray[Any], ...]] = {}
    texts = [field.name for field in schema if not pa.types.is_nested(field.type)]
    if "labels" in schema.names:
        texts.append("labels.list.element")
    with (
        whole_file(path) as unfinished,
        pq.ParquetWriter(unfinished, schema, compression="zstd", use_dictionary=texts) as writer,
    ):
        following = 0
        for first, arrays in parts:
            rows.take(first, arrays[0])
            waiting[first] = arrays
            while following in waiting:
                ready = waiting.pop(following)
                if len(ready[0]):
                    batch = pa.record_batch(columns(following, *ready), schema=schema)
                    writer.write_batch(batch)
                following += len(ready[0])
        rows.check_whole()


class _Rows:
    """Which rows have come: each must come once."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.ranges: list[tuple[int, int]] = []

    def take(self, first: int, cells: NDArray[Any]) -> None:
        """Note a block of rows."""
        n_rows, width = self.shape
        if cells.ndim != 2 or cells.shape[1] != width or not 0 <= first <= n_rows - len(cells):
            raise InvalidInput(
                f"a block must fit into shape {self.shape}, got shape {cells.shape} at row {first}."
            )
        if len(cells):
            self.ranges.append((first, first + len(cells)))

    def check_whole(self) -> None:
        """Refuse rows that came twice or not at all."""
        following = 0
        for first, stop in sorted(self.ranges):
            if first != following:
                what = "not at all" if first > following else "twice"
                raise InvalidInput(
                    f"each row must be written once, got row {min(first, following)} {what}."
                )
            following = stop
        if following != self.shape[0]:
            raise InvalidInput(f"each row must be written once, got row {following} not at all.")


def _flush(path: Path) -> None:
    """Have the bytes on disk before the name says so."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
