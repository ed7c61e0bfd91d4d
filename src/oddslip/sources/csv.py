"""CSV files with a header, parsed once into a temporary file that later passes read.

*Wide*: a column per label, named after it, and perhaps one of row ids. *Long*: columns row, label,
score and perhaps true, under the names that `roles` knows; tables of labels have row and label.
Scores are float64, labels 0/1 or true/false, and ids are integers if all of them are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from oddslip.core.panel import check_names
from oddslip.core.row_ids import ROW_ID_NAMES
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.io.inputs import FileState, check_memory, check_separator, input_path, unchanged
from oddslip.io.paths import InputFiles
from oddslip.sources.batches import reading
from oddslip.sources.long.roles import FORM, PAIRS_FORM, find_roles
from oddslip.sources.spool import SpooledBatches

BLOCK_BYTES = 1024 * 1024
CELL_BYTES = 40  # of a long cell; a block must hold a line
MAX_LINE_BYTES = 64 * 1024 * 1024
TRUE = ("1", "1.0", "true", "True", "TRUE")
FALSE = ("0", "0.0", "false", "False", "FALSE")
WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
_LONG = {"score": pa.float64(), "true": pa.bool_()}
# Cells that a spreadsheet would run as formulas. The report's download uses the same pattern:
# reports/html/templates/page.js.
FORMULA = (
    r"^[\s\u0000-\u001f\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]"
)
_FORMULA = re.compile(FORMULA)


def escape_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("milk"), unescape_formula(escape_formula("=1+1"))
    ("'=1+1", 'milk', '=1+1')
    """
    return f"'{text}" if _FORMULA.match(text.lstrip("'")) else text


def unescape_formula(text: str) -> str:
    """Undo `escape_formula`."""
    escaped = text.startswith("'") and _FORMULA.match(text.lstrip("'"))
    return text[1:] if escaped else text


class CsvBatches(SpooledBatches):
    """The lines of CSV files.

    Parameters
    ----------
    files : InputFiles
        The files; all must have the same header.
    truths : bool
        Whether cells are labels, 0/1, and not scores.
    label_names : sequence of str, optional
        Names of the labels, where cells are true labels. A column ``label`` then holds names, even
        if they are numbers.
    columns : mapping, optional
        Columns of a long table by role: see `open_source`.
    """

    def __init__(
        self,
        files: InputFiles,
        *,
        truths: bool = False,
        label_names: Sequence[str] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.whole: set[str] = set()
        roles = {"truths": truths, "label_names": label_names, "columns": columns}
        headers = [_Header(file, roles) for file in files.files]
        first = headers[0]
        for header in headers:
            if header.names != first.names:
                raise InvalidInput(
                    f"all files must have the same columns, but {header.path} differs from "
                    f"{first.path}. Write them with one header."
                )
        texts = [field.name for field in first.schema if pa.types.is_large_string(field.type)]
        numbered = truths and label_names is None
        self._maybe_whole = [name for name in texts if name != "label" or numbered]
        self._texts = texts
        lines = (batch for header in headers for batch in header.batches())
        super().__init__(files.name, first.schema, map(self._clean, lines))
        self.whole.update(self._maybe_whole)
        for name in self.whole:
            place = self.schema.get_field_index(name)
            self.schema = self.schema.set(place, pa.field(name, pa.int64()))

    def _clean(self, batch: Any) -> Any:
        """The batch with formulas unescaped; notes which text columns hold integers only."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in list(self._maybe_whole):
            if not pc.all(pc.match_substring_regex(columns[name], WHOLE)).as_py():
                self._maybe_whole.remove(name)
        for name in self._texts:
            if pc.any(pc.starts_with(columns[name], "'")).as_py():
                texts = [unescape_formula(text) for text in columns[name].to_pylist()]
                columns[name] = pa.array(texts, pa.large_string())
        return pa.record_batch(list(columns.values()), schema=batch.schema)

    def batches(
        self, columns: Sequence[str], n_rows: int, *, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Batches of at most ``n_rows`` rows, of these columns alone."""
        for batch in super().batches(columns, n_rows):
            for name in self.whole.intersection(columns):
                place = batch.schema.get_field_index(name)
                batch = batch.set_column(place, name, batch.column(name).cast(pa.int64()))
            yield batch


class _Header:
    """The first line of a file, and the types of its columns."""

    def __init__(self, path: Path, roles: dict[str, Any]) -> None:
        self.path, self.truths = input_path(path), roles["truths"]
        self.state = FileState.of(path)
        with path.open("rb") as file:
            line = file.readline(MAX_LINE_BYTES)
        if len(line) == MAX_LINE_BYTES:
            raise UnreadableFile(f"{path} must have lines of at most {MAX_LINE_BYTES:,} bytes.")
        self.delimiter = "\t" if path.suffix == ".tsv" else ","
        check_separator(path, self.delimiter)
        n_columns = line.count(self.delimiter.encode()) + 1
        self.block = max(BLOCK_BYTES, 4 * len(line), CELL_BYTES * n_columns)
        check_memory(path, self.block)
        with parsing(path):
            reader = self._open({})
            schema, first = reader.schema, next(iter(reader), None)
            stored = schema.names  # raises on names that are not UTF-8
        self._check(stored)
        names = [unescape_formula(name) for name in stored]
        names[0] = names[0] or "row_id"
        columns = self._find_roles(names, schema, roles)
        self.is_long = columns is not None
        if columns is None:
            check_names(names, len(names))
            columns = {name: name for name in names}
        places = dict(zip(names, range(len(names)), strict=True))
        types = [self._type(new, places[old], first) for new, old in columns.items()]
        self.names = list(columns)
        self.schema = pa.schema(list(zip(self.names, types, strict=True)))
        self.types = {
            stored[places[old]]: kind for old, kind in zip(columns.values(), types, strict=True)
        }

    def _find_roles(
        self, names: list[str], schema: Any, roles: dict[str, Any]
    ) -> dict[str, str] | None:
        """Column of each role, if the file is a long table; else None."""
        kinds = zip(names, schema.types, strict=True)
        measures = {
            name for name, kind in kinds if pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        }
        numbered = not schema.names[0]  # as pandas numbers lines
        columns_by_role = None
        for columns in [names[1:], names] if numbered else [names]:
            columns_by_role = columns_by_role or find_roles(
                columns, measures, called=self.path, **roles
            )
        return columns_by_role

    def _check(self, stored: list[str]) -> None:
        if any("." in name for name in stored) and all(map(_is_number, stored)):
            raise UnreadableFile(
                f"{self.path} must start with a line of label names, got numbers. Add a header."
            )

    def _type(self, name: str, at: int, first: Any) -> Any:
        if self.is_long:
            return _LONG.get(name, pa.large_string())
        if name in ROW_ID_NAMES:
            cell = "" if first is None or not first.num_rows else first.column(at)[0].as_py()
            if not isinstance(cell, float):
                return pa.large_string()
        return pa.bool_() if self.truths else pa.float64()

    def _open(self, types: dict[str, Any]) -> Any:
        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(block_size=self.block, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                true_values=list(TRUE),
                false_values=list(FALSE),
            ),
        )

    def batches(self) -> Iterator[Any]:
        """The lines after the header."""
        with self._converting():
            reader = self._open(self.types)
        while True:
            with self._converting():
                batch = next(iter(reader), None)
            if batch is None:
                return
            yield pa.record_batch(batch.columns, schema=self.schema)

    @contextmanager
    def _converting(self) -> Iterator[None]:
        with unchanged(self.path, self.state), parsing(self.path):
            try:
                yield
            except pa.ArrowInvalid:
                self._name_cell()
                raise

    def _name_cell(self) -> None:
        """Read all cells as text and report the first that cannot be converted."""
        first = 0
        for batch in self._open(dict.fromkeys(self.types, pa.large_string())):
            batch = batch.rename_columns(self.names)
            wrong = [
                (row, name)
                for name, kind in zip(self.names, self.schema.types, strict=True)
                if not pa.types.is_large_string(kind)
                and (row := _first_wrong(batch.column(name).to_pylist(), kind)) is not None
            ]
            if wrong:
                row, name = min(wrong)
                place = f"row {first + row}, label {name!r}"
                if self.is_long:
                    owner = batch.column("row" if "row" in self.names else "row_id")[row].as_py()
                    place = f"row {owner!r}, label {batch.column('label')[row].as_py()!r}"
                truths = pa.types.is_boolean(self.schema.field(name).type)
                what = "labels must be 0 or 1" if truths else "scores must be numbers"
                cell = batch.column(name)[row].as_py()
                form = PAIRS_FORM if self.truths else FORM
                hint = "" if self.is_long or _is_number(cell) else f" {form}"
                raise InvalidInput(f"{what}, got {cell!r:.60} at {place} of {self.path}.{hint}")
            first += batch.num_rows


def _first_wrong(cells: list[str], kind: Any) -> int | None:
    nulls = set(csv.ConvertOptions().null_values)

    def is_right(cell: str) -> bool:
        if pa.types.is_boolean(kind):
            return cell.strip() in (*TRUE, *FALSE)
        return _is_number(cell)

    return next((at for at, c in enumerate(cells) if c not in nulls and not is_right(c)), None)


def _is_number(text: str) -> bool:
    return (
        re.fullmatch(
            r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)\s*",
            text,
            re.IGNORECASE,
        )
        is not None
    )


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Turn errors of Arrow into `UnreadableFile`, with a one-line message."""
    with reading(path, "not readable as CSV"):
        try:
            yield
        except pa.ArrowInvalid as error:
            if not _has_bare_return(path):
                raise
            raise UnreadableFile(
                f"{path} must have carriage returns within quotes only, or at the end of lines, "
                f"got one elsewhere ({first_line(error)}). Quote the name that holds it."
            ) from error


def _has_bare_return(path: Path) -> bool:
    """Whether a carriage return stands within a line."""
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(BLOCK_BYTES), b"")
        return any(re.search(rb"\r[^\n]", block) for block in blocks)
