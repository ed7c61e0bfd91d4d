"""Local or remote Parquet files, read in batches of rows with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.inputs import FileState, check_memory, input_path, unchanged
from oddslip.io.paths import InputFiles, find_files
from oddslip.sources.batches import Batches, reading
from oddslip.sources.parquet.footer import read_chunks

# Column chunks are read through small buffers. Without them, memory would hold each chunk, and with
# Arrow's pre-buffering the whole file.
BUFFER_BYTES = 16 * 1024
REMOTE_BYTES = 1024 * 1024  # at an address every read is a request
KIND_KEY = b"oddslip.kind"
CELL_BYTES = 8  # at most, of a number in a list
DAMAGED = "cut short, damaged or not a Parquet file"


class ParquetFiles(Batches):
    """Files of a path, in order. All must have the same columns."""

    def __init__(self, files: InputFiles | Path) -> None:
        files = files if isinstance(files, InputFiles) else find_files(files)
        self.path = path = files.name
        self.files = files.files
        self.n_rows = 0
        self.footers: dict[Any, Any] = {}
        self.states: dict[Any, FileState] = {}  # of files on this machine
        schema: Any = None
        for file in self.files:
            if isinstance(file, Path):
                self.states[file] = FileState.of(input_path(file))
            with reading(file, DAMAGED), self._open(file) as parquet:
                file_schema = parquet.schema_arrow
                file_schema.names  # noqa: B018  # raises on names that are not UTF-8
                self.footers[file] = parquet.metadata
                self.n_rows += _count_rows(parquet.metadata)
            if schema is None:
                schema = file_schema
            elif not file_schema.equals(schema):
                raise InvalidInput(
                    f"all files of {path} must have the same columns, but {file.name} differs "
                    f"from {self.files[0].name}. Write them with one schema."
                )
        if self.n_rows == 0:
            raise UnreadableFile(f"{path} holds no rows.")
        self.schema: Any = schema

    def group_rows(self, file: Any) -> list[int]:
        """Rows of each row group of a file."""
        footer = self.footers[file]
        return [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]

    def batches(
        self, columns: Sequence[str], n_rows: int, *, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Batches of at most ``n_rows`` rows, of these columns alone.

        Columns named in ``coded`` come dictionary-encoded, as strings are stored in the file.
        """
        for file in self.files:
            yield from self.file_batches(file, columns, n_rows, coded=coded)

    def file_batches(
        self,
        file: Any,
        columns: Sequence[str],
        n_rows: int,
        *,
        coded: Sequence[str] = (),
        groups: list[int] | None = None,
    ) -> Iterator[Any]:
        """Batches of one file, or of some of its row groups."""
        self._check_lists(file, columns, n_rows, groups)
        is_local = isinstance(file, Path)
        options = {
            "buffer_size": BUFFER_BYTES if is_local else REMOTE_BYTES,
            "read_dictionary": list(coded),
        }
        with self._open(file, metadata=self.footers[file], **options) as parquet:
            # One thread: the tallies use the others, and Arrow's threads cost twice the CPU time.
            batches = parquet.iter_batches(
                batch_size=n_rows, row_groups=groups, columns=list(columns), use_threads=False
            )
            while True:
                with unchanged(file, self.states.get(file)), reading(file, DAMAGED):
                    batch = next(batches, None)
                    if batch is not None:
                        # Arrow itself does not check the codes of a file.
                        for name in set(coded).intersection(columns):
                            batch.column(name).validate(full=True)
                if batch is None:
                    break
                if batch.num_rows:
                    yield batch

    def _check_lists(
        self, file: Any, columns: Sequence[str], n_rows: int, groups: list[int] | None
    ) -> None:
        """Reject lists of which memory cannot hold a batch: few bytes may encode billions."""
        nested = [name for name in columns if pa.types.is_nested(self.schema.field(name).type)]
        if not nested:
            return
        with reading(file, DAMAGED):
            chunks = read_chunks(file)
        rows = self.group_rows(file)
        for group in range(len(rows)) if groups is None else groups:
            share = min(1.0, n_rows / max(1, rows[group]))
            for chunk in chunks[group]:
                if chunk.column in nested:
                    check_memory(file, int(max(0, chunk.n_values) * share) * CELL_BYTES)

    def _open(self, file: Any, **options: Any) -> Any:
        with reading(file, DAMAGED):
            source = file if isinstance(file, Path) else file.open()
            return pq.ParquetFile(source, pre_buffer=False, **options)


def _count_rows(footer: Any) -> int:
    """Rows of a file; rejects a footer whose row groups do not add up to them."""
    groups = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    if footer.num_rows != sum(groups) or min(groups, default=0) < 0:
        raise ValueError(f"its row groups hold {sum(groups)} rows and not {footer.num_rows}")
    return int(footer.num_rows)
