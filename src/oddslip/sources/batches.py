"""`Batches`: a table that can be read repeatedly, some columns at a time.

Parquet files, an Arrow table in memory and a spool are such tables. The layouts (wide, list, long)
read any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from oddslip.errors import InvalidInput, OddslipError, first_line
from oddslip.io.files import unreadable


class Batches(ABC):
    """A table in batches of rows. Subclasses set the attributes and yield the batches in order."""

    path: Any  # its name in errors
    files: list[Any]  # its parts
    schema: Any
    n_rows: int

    @abstractmethod
    def batches(
        self, columns: Sequence[str], n_rows: int, *, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Batches of at most ``n_rows`` rows, of these columns alone.

        Columns named in ``coded`` may come dictionary-encoded.
        """

    def metadata(self, key: bytes) -> bytes | None:
        """Value of this key in the schema metadata."""
        value: bytes | None = (self.schema.metadata or {}).get(key)
        return value

    def group_rows(self, file: Any) -> list[int]:
        """Rows of each row group of a part; empty if it has no row groups."""
        return []

    def file_batches(
        self,
        file: Any,
        columns: Sequence[str],
        n_rows: int,
        *,
        coded: Sequence[str] = (),
        groups: list[int] | None = None,
    ) -> Iterator[Any]:
        """Batches of one part, or of some of its row groups."""
        return self.batches(columns, n_rows, coded=coded)


@contextmanager
def reading(path: Any, otherwise: str) -> Iterator[None]:
    """Turn errors of Arrow into `UnreadableFile`: the reason, or that a file is ``otherwise``."""
    try:
        yield
    except OddslipError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise unreadable(path, error, otherwise) from error


class TableBatches(Batches):
    """An Arrow table in memory. Its columns are sliced, not copied."""

    def __init__(self, table: Any, called: str) -> None:
        self.path, self.files = called, [called]
        self.schema = plain_schema(table.schema)
        self.n_rows = table.num_rows
        self._table = table
        if self.n_rows == 0:
            raise InvalidInput(f"{called} holds no rows.")

    def batches(
        self, columns: Sequence[str], n_rows: int, *, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Batches of at most ``n_rows`` rows, of these columns alone."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for batch in self._table.select(list(columns)).to_batches(max_chunksize=n_rows):
            if batch.num_rows:
                yield plain_batch(batch, schema, self.path)


class RenamedBatches(Batches):
    """Some columns of a table under other names: ``names`` has the old name of each new one."""

    def __init__(self, whole: Batches, names: Mapping[str, str]) -> None:
        self.path, self.files, self.n_rows = whole.path, whole.files, whole.n_rows
        fields = [whole.schema.field(old).with_name(new) for new, old in names.items()]
        self.schema = pa.schema(fields, whole.schema.metadata)
        self._whole, self._names = whole, names

    def batches(
        self, columns: Sequence[str], n_rows: int, *, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Batches of at most ``n_rows`` rows, of these columns alone."""
        old = [self._names[name] for name in columns]
        coded = [self._names[name] for name in coded]
        for batch in self._whole.batches(old, n_rows, coded=coded):
            yield batch.rename_columns(list(columns))


def plain_schema(schema: Any) -> Any:
    """The schema with the types that the layouts read."""
    fields = [pa.field(field.name, plain_type(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def plain_type(kind: Any) -> Any:
    """The type in which cells are read: views, dictionaries and decimals become simpler types."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_large_list(kind) or is_list_view(kind):
        return pa.large_list(plain_type(kind.value_type))
    return kind


def is_list_view(kind: Any) -> bool:
    """Whether this is one of the two list types whose lists may lie in any order."""
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def plain_batch(batch: Any, schema: Any, called: Any) -> Any:
    """The batch with the types of a plain schema."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if column.type != field.type:
            try:
                if pa.types.is_dictionary(column.type):
                    column = column.dictionary.cast(field.type).take(column.indices)
                column = column.cast(field.type)
            except pa.ArrowException as error:
                raise InvalidInput(
                    f"column {field.name!r:.60} of {called} must be of a type that can be read as "
                    f"{field.type}, got {column.type} ({first_line(error)})."
                ) from error
        columns.append(column)
    return pa.record_batch(columns, schema=schema)
