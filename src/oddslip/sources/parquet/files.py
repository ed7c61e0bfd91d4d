"""One Parquet file or a folder of them, read in batches of rows with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from oddslip.errors import InvalidInput, OddslipError, UnreadableFile
from oddslip.files import unreadable
from oddslip.inputs import check_memory, input_path
from oddslip.sources.parquet.footer import read_chunks

# Column chunks are read through small buffers: without them each chunk would be held whole, and
# with Arrow's pre-buffering the whole file.
BUFFER_BYTES = 16 * 1024
KIND_KEY = b"oddslip.kind"
CELL_BYTES = 8  # at most, of a number in a list
DAMAGED = "cut short, damaged or not a Parquet file"


class ParquetFiles:
    """The files at a path, in the order of their names. All must have the same columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = list_files(path)
        self.n_rows = 0
        self.footers: dict[Path, Any] = {}
        schema: Any = None
        for file in self.files:
            with reading(input_path(file)), self._opened(file) as opened:
                own = opened.schema_arrow
                own.names  # noqa: B018  # refuses names that are not UTF-8
                self.footers[file] = opened.metadata
                self.n_rows += _count_rows(opened.metadata)
            if schema is None:
                schema = own
            elif not own.equals(schema):
                raise InvalidInput(
                    f"all files of {path} must have the same columns, but {file.name} differs "
                    f"from {self.files[0].name}. Write them with one schema."
                )
        if self.n_rows == 0:
            raise UnreadableFile(f"{path} holds no rows.")
        self.schema: Any = schema

    def metadata(self, key: bytes) -> bytes | None:
        """What the schema carries under this key."""
        value: bytes | None = (self.schema.metadata or {}).get(key)
        return value

    def group_rows(self, file: Path) -> list[int]:
        """Rows of each row group of a file."""
        footer = self.footers[file]
        return [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]

    def batches(
        self, columns: Sequence[str], n_rows: int, *, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Batches of at most ``n_rows`` rows, of these columns alone.

        Columns named in ``coded`` come dictionary-encoded, which is how strings lie in the file.
        """
        for file in self.files:
            yield from self.file_batches(file, columns, n_rows, coded=coded)

    def file_batches(
        self,
        file: Path,
        columns: Sequence[str],
        n_rows: int,
        *,
        coded: Sequence[str] = (),
        groups: list[int] | None = None,
    ) -> Iterator[Any]:
        """Batches of one file, or of some of its row groups."""
        self._check_lists(file, columns, n_rows, groups)
        options = {"buffer_size": BUFFER_BYTES, "read_dictionary": list(coded)}
        with self._opened(file, metadata=self.footers[file], **options) as opened:
            # One thread: the tallies keep the others busy, and Arrow's cost twice the CPU time.
            batches = opened.iter_batches(
                batch_size=n_rows, row_groups=groups, columns=list(columns), use_threads=False
            )
            while True:
                with reading(file):
                    batch = next(batches, None)
                    if batch is not None:
                        # Arrow itself does not look at the codes of a file.
                        for name in set(coded).intersection(columns):
                            batch.column(name).validate(full=True)
                if batch is None:
                    break
                if batch.num_rows:
                    yield batch

    def _check_lists(
        self, file: Path, columns: Sequence[str], n_rows: int, groups: list[int] | None
    ) -> None:
        """Refuse lists of which memory can not hold a batch: few bytes may stand for billions."""
        nested = [name for name in columns if pa.types.is_nested(self.schema.field(name).type)]
        if not nested:
            return
        with reading(file):
            chunks = read_chunks(file)
        rows = self.group_rows(file)
        for group in range(len(rows)) if groups is None else groups:
            share = min(1.0, n_rows / max(1, rows[group]))
            for chunk in chunks[group]:
                if chunk.column in nested:
                    check_memory(file, int(max(0, chunk.n_values) * share) * CELL_BYTES)

    def _opened(self, file: Path, **options: Any) -> Any:
        with reading(file):
            return pq.ParquetFile(file, pre_buffer=False, **options)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What Arrow raises on a damaged file is one line of ours."""
    try:
        yield
    except OddslipError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise unreadable(path, error, DAMAGED) from error


def _count_rows(footer: Any) -> int:
    """Rows of a file; refuses a footer whose row groups do not add up to them."""
    groups = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    if footer.num_rows != sum(groups) or min(groups, default=0) < 0:
        raise ValueError(f"its row groups hold {sum(groups)} rows and not {footer.num_rows}")
    return int(footer.num_rows)


def list_files(path: Path) -> list[Path]:
    """The Parquet files at a path. Names that start with a dot or underscore do not count."""
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix in (".parquet", ".pq") and file.name[0] not in "._"
    )
    if not files:
        raise UnreadableFile(f"{path} is a folder without .parquet files.")
    return files
