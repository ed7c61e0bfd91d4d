"""Find Python files and notebooks, and parse them without running or importing anything."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from oddslip.errors import UnreadableFile
from oddslip.io.inputs import input_path, read_bytes

MAX_SOURCE_CHARS = 1 << 21  # a syntax tree needs about a hundred times as much memory
ENDINGS = (".py", ".ipynb")
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}
# Cell magics whose body is Python; a cell with any other one is skipped.
_PYTHON_CELL = re.compile(r"\s*%%(time|timeit|capture|prun|python3?)\b")
_MAGIC = re.compile(r"^(\s*)([%!?].*|.*\?|[\w, ]+=\s*[%!].*)$")


class Block(NamedTuple):
    """Consecutive lines of a file: all of it, or one code cell of a notebook."""

    first_line: int  # of the joined source, from 1
    cell: int | None
    lines: list[str]


class Problem(NamedTuple):
    """Why a block could not be parsed, and where."""

    line: int  # of the joined source
    column: int
    detail: str


class Source(NamedTuple):
    """A parsed file: one syntax tree over all blocks that could be parsed."""

    path: str
    tree: ast.Module
    blocks: list[Block]
    problems: list[Problem]


def find_sources(paths: Iterable[Path]) -> Iterator[Path]:
    """Python files and notebooks of the paths, each once and in order of their names.

    A file that is named is read whatever its ending. In folders, hidden ones, virtual environments
    and links to folders are skipped.

    Examples
    --------
    >>> [path.name for path in find_sources([Path(__file__)])]
    ['sources.py']
    """
    visited = set()
    for path in paths:
        for file in _walk(path) if path.is_dir() else [input_path(path)]:
            real = os.path.realpath(file)
            if real not in visited:
                visited.add(real)
                yield file


def _walk(folder: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise UnreadableFile(f"{error.filename} cannot be read ({error.strerror}).") from error

    for place, folders, files in os.walk(folder, onerror=fail):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in SKIPPED_FOLDERS
            and not Path(place, name, "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            if name.endswith(ENDINGS) and Path(place, name).is_file():
                yield Path(place, name)


def parse_source(path: Path) -> Source:
    """Read and parse a file; what cannot be parsed becomes a problem."""
    raw = read_bytes(path)
    try:
        if path.suffix == ".ipynb":
            return _parse_blocks(path, _cells(raw))
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
    except (ValueError, LookupError, SyntaxError, RecursionError) as error:
        problem = Problem(1, 1, _sentence(error))
        return Source(str(path), ast.Module([], []), [Block(1, None, [""])], [problem])
    return _parse_blocks(path, [(None, text)])


def _cells(raw: bytes) -> Iterator[tuple[int, str]]:
    """Number and text of the code cells of a notebook."""
    notebook: Any = json.loads(raw)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("a notebook must hold a list of cells")
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        lines = cell.get("source", "")
        yield number, "".join(map(str, lines)) if isinstance(lines, list) else str(lines)


def _parse_blocks(path: Path, texts: Iterable[tuple[int | None, str]]) -> Source:
    source = Source(str(path), ast.Module([], []), [], [])
    first_line = 1
    for cell, text in texts:
        lines = re.split(r"\r\n|\r|\n", text)
        source.blocks.append(Block(first_line, cell, lines))
        try:
            tree = _parse(text) if cell is None else _parse_cell(text, lines)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = max(1, min(getattr(error, "lineno", None) or 1, len(lines)))
            column = max(1, getattr(error, "offset", None) or 1)
            problem = Problem(first_line + line - 1, column, _sentence(error))
            source.problems.append(problem)
        else:
            ast.increment_lineno(tree, first_line - 1)
            source.tree.body.extend(tree.body)
        first_line += len(lines)
    return source


def _parse_cell(text: str, lines: list[str]) -> ast.Module:
    """A cell; if it is not Python as it is, without its magics."""
    try:
        return _parse(text)
    except SyntaxError:
        if text.lstrip().startswith("%%") and not _PYTHON_CELL.match(text):
            return ast.Module([], [])
        return _parse("\n".join(_MAGIC.sub(r"\1pass", line) for line in lines))


def _parse(text: str) -> ast.Module:
    if len(text) > MAX_SOURCE_CHARS:
        raise ValueError(f"it must have at most {MAX_SOURCE_CHARS:,} characters, got {len(text):,}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in strings: not ours to report
        return ast.parse(text)


def _sentence(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"Python says: {text[:200].rstrip('.') or type(error).__name__}."
