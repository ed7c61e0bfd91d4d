"""Number of values per column chunk of a Parquet file, read from the bytes of its footer.

pyarrow offers it too, but crashes on the column chunks of some damaged footers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

MAGIC = b"PAR1"
MAX_DEPTH = 16
# Types of Thrift's compact protocol, and fields of Parquet's structures.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_ROW_GROUPS, _COLUMNS, _META_DATA, _PATH, _N_VALUES = 4, 1, 3, 3, 5


class Chunk(NamedTuple):
    """A column chunk: the first name of its column's path, and how many values it claims."""

    column: str
    n_values: int


def read_chunks(file: Any) -> list[list[Chunk]]:
    """The column chunks of every row group. Raises ValueError if there is no valid footer."""
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - 8))
        tail = stream.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length + 8 > size:
            raise ValueError("no footer")
        stream.seek(size - 8 - length)
        footer = stream.read(length)
    try:
        groups = _Reader(footer).struct()[_ROW_GROUPS]
        return [[_read_chunk(chunk[_META_DATA]) for chunk in group[_COLUMNS]] for group in groups]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("a footer that does not add up") from error


def _read_chunk(metadata: dict[int, Any]) -> Chunk:
    return Chunk(metadata[_PATH][0].decode("utf-8"), metadata[_N_VALUES])


class _Reader:
    """Reads Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 0, 0

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise ValueError("cut short")
        self.at += n
        return self.data[self.at - n : self.at]

    def unsigned(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError("a number that is too long")

    def signed(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> dict[int, Any]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self.take(1)[0]:
            step, kind = head >> 4, head & 15
            number = number + step if step else self.signed()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self.value(kind)
        self.depth -= 1
        return fields

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self.take(1)[0]
        if kind == _DOUBLE:
            return self.take(8)
        if kind == _BINARY:
            return self.take(self.unsigned())
        if kind in (_LIST, _SET):
            head = self.take(1)[0]
            n = head >> 4 if head >> 4 < 15 else self.unsigned()
            return [self.value(head & 15) for _ in range(self.check_count(n))]
        if kind == _MAP:
            n = self.unsigned()
            kinds = self.take(1)[0] if n else 0
            for _ in range(self.check_count(2 * n) // 2):
                self.value(kinds >> 4)
                self.value(kinds & 15)
            return None
        if kind == _STRUCT:
            return self.struct()
        if kind not in range(_BYTE, _DOUBLE):
            raise ValueError("a type that is none")
        return self.signed()

    def check_count(self, n: int) -> int:
        """The count, after a check that as many bytes remain."""
        if n > len(self.data) - self.at:
            raise ValueError("cut short")
        return n
