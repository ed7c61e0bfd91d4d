"""ARFF files, dense or sparse, read line by line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from oddslip.datasets.arff_headers import Attribute, Header
from oddslip.datasets.arff_rows import DenseRows, SparseRows
from oddslip.datasets.arff_tokens import Fault
from oddslip.errors import InvalidInput, UnreadableFile

_LONGEST_LINE = 1 << 26  # bytes; a longer one is no table of ours, and must not fill the memory

Missing = Literal["error", "nan"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arff:
    """An ARFF file: what it declares and its cells.

    Attributes
    ----------
    relation : str
        Name of the relation.
    attributes : tuple
        Name, and the declared values if it is nominal, of each column.
    cells : numpy.ndarray or scipy.sparse.csr_matrix
        Of shape (rows, attributes); sparse if the file is.
    sha256 : str
        Of the bytes that were read.
    """

    relation: str
    attributes: tuple[Attribute, ...]
    cells: Any  # (rows, attributes): a float64 array, or a scipy CSR matrix of a sparse file
    sha256: str  # of the bytes that were read

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes, in the order of the columns."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def nominal(self) -> dict[str, tuple[str, ...]]:
        """Declared values of each nominal attribute. A cell holds a position in this list."""
        return {each.name: each.values for each in self.attributes if each.values is not None}

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.cells, np.ndarray) else "sparse"
        return f"Arff({self.relation!r}, {kind}, shape={self.cells.shape})"


def read_arff(
    path: str | os.PathLike[str], *, missing: Missing = "error", encoding: str = "utf-8"
) -> Arff:
    """Read an ARFF file of numeric and nominal attributes.

    Parameters
    ----------
    path : path
        A file with dense rows ``1,2,a`` or sparse rows ``{0 1, 2 a}``, not both.
    missing : "error" or "nan"
        What a bare ``?`` is.
    encoding : str
        Of names and nominal values.

    Returns
    -------
    Arff
        Nominal values are coded by their position in the declared list.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "tiny.arff"
    >>> lines = "@relation tiny", "@attribute 'a b' real", "@attribute c {x,y}", "@data", "1.5,y"
    >>> _ = path.write_text("\\n".join(lines))
    >>> read_arff(path).names, read_arff(path).cells
    (('a b', 'c'), array([[1.5, 1. ]]))
    """
    if missing not in ("error", "nan"):
        raise InvalidInput(f'missing must be "error" or "nan", got missing={missing!r}.')
    path = Path(path)
    digest = hashlib.sha256()
    number = 0
    header, rows, ended = Header(), None, False
    try:
        "".encode(encoding)
        with path.open("rb") as file:
            for number, line in _lines(file, digest, encoding):  # noqa: B007
                if not line or line.startswith("%"):
                    continue
                if not ended:
                    ended = header.add(line)
                    continue
                if rows is None:
                    kind = SparseRows if line.startswith("{") else DenseRows
                    rows = kind(header.attributes, missing == "nan")
                rows.add(line)
            if not ended:
                raise Fault("the file must have a line @data, but it ends here")
    except _LineFault as fault:
        raise UnreadableFile(f"{path}, line {fault.number}: {fault}.") from None
    except Fault as fault:
        raise UnreadableFile(f"{path}, line {max(number, 1)}: {fault}.") from None
    except LookupError:
        raise InvalidInput(f"encoding must be one that Python knows, got {encoding!r}.") from None
    except OSError as error:
        raise UnreadableFile(f"{path} can not be read ({error.strerror}).") from error
    if rows is None:
        rows = DenseRows(header.attributes, False)
    return Arff(header.relation, header.attributes, rows.result(), digest.hexdigest())


class _LineFault(Fault):
    """A fault of a line that could not even be handed out."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def _lines(file: BinaryIO, digest: Any, encoding: str) -> Iterator[tuple[int, str]]:
    """Line numbers and lines without outer spaces."""
    number = 0
    while raw := file.readline(_LONGEST_LINE + 1):
        number += 1
        if len(raw) > _LONGEST_LINE:
            raise _LineFault(number, f"a line must be at most {_LONGEST_LINE} bytes long")
        digest.update(raw)
        if b"\0" in raw:
            raise _LineFault(number, "the file must be text, got a zero byte")
        try:
            line = raw.decode(encoding)
        except UnicodeError:
            message = f"the file must be text in {encoding}. Pass another encoding if it has one"
            raise _LineFault(number, message) from None
        yield number, (line.removeprefix("\ufeff") if number == 1 else line).strip()
