"""A spool: a table that can be read only once, stored in a temporary file to be read again.

The file has no name, so it is removed however the process ends. It is in the system's folder for
temporary files (``TMPDIR``).
"""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

from oddslip.errors import InvalidInput
from oddslip.io.files import disk_full_message
from oddslip.sources.batches import Batches, plain_batch, plain_schema

BATCH_BYTES = 4 * 1024 * 1024  # per batch in the file


class SpooledBatches(Batches):
    """Batches written to a temporary file once, and read from there any number of times.

    Parameters
    ----------
    called : str
        Name of the table in errors.
    schema : pyarrow.Schema
        Its columns, as `plain_schema` has them.
    batches : iterable of pyarrow.RecordBatch
        Its rows. One batch is in memory at a time.
    """

    def __init__(self, called: Any, schema: Any, batches: Iterable[Any]) -> None:
        self.path, self.files, self.schema = called, [called], plain_schema(schema)
        self.n_rows = 0
        self._lock = Lock()
        with free_temporary_bytes():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            self._write(batches)
            self._file.flush()
        if self.n_rows == 0:
            problem = f"{called} holds no rows."
            if not isinstance(called, Path):
                problem += " A stream is read once: pass a new one each time."
            raise InvalidInput(problem)

    def _write(self, batches: Iterable[Any]) -> None:
        sink = pa.PythonFile(self._file, mode="w")
        with pa.ipc.new_file(sink, self.schema) as writer:
            for batch in batches:
                plain = plain_batch(batch, self.schema, self.path)
                step = max(1, plain.num_rows * BATCH_BYTES // max(1, plain.nbytes))
                for start in range(0, plain.num_rows, step):
                    writer.write_batch(plain.slice(start, step))
                self.n_rows += plain.num_rows

    def batches(
        self, columns: Sequence[str], n_rows: int, *, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Batches of at most ``n_rows`` rows, of these columns alone."""
        places = sorted(self.schema.get_field_index(name) for name in columns)
        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        window = pa.PythonFile(_Window(self._file, self._lock), mode="r")
        reader = pa.ipc.open_file(window, options=options)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number).select(list(columns))
            for start in range(0, batch.num_rows, n_rows):
                yield batch.slice(start, n_rows)


class _Window(io.RawIOBase):
    """A read position of its own in a file that several threads read."""

    def __init__(self, file: Any, lock: Lock) -> None:
        super().__init__()
        self._file, self._lock, self._at = file, lock, 0
        self._size = os.fstat(file.fileno()).st_size

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether it can be sought."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to another position."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, n: int | None = -1) -> bytes:
        """The next bytes."""
        n_bytes = self._size - self._at if n is None or n < 0 else n
        with self._lock:
            self._file.seek(self._at)
            data: bytes = self._file.read(n_bytes)
        self._at += len(data)
        return data


@contextmanager
def free_temporary_bytes() -> Iterator[None]:
    """Turn a full temporary folder into a one-line error."""
    folder = Path(tempfile.gettempdir())
    with disk_full_message(folder, "Free space there, or set TMPDIR to a folder that has some."):
        yield
