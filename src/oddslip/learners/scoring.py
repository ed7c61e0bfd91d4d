"""Scores of many rows and thousands of labels, streamed into a file.

Rows are scored block by block into an unfinished .npy beside the wanted file; a journal lists the
blocks that are on disk, each with its checksum. A killed run continues with those that are missing
or not as they were written, and ends with the same bytes. Only then does the file get its name, or
is copied into Parquet, which can not be continued itself.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oddslip.adapters.features import frame_ids, hash_features
from oddslip.core.panel import Kind
from oddslip.core.threads import available_threads, map_threads
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.files import (
    disk_full_message,
    hash_pieces,
    hold_file,
    keep_mode,
    locked,
    output_path,
)
from oddslip.io.paths import check_path
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import get_backend
from oddslip.learners.one_vs_rest import OneVsRest
from oddslip.sources.writers import check_ending, write_scores

_JOURNAL_FORMAT = 2  # from 2 on a line says what its block hashes to
_BLOCK_BYTES = 16 * 1024 * 1024
_WANTED = ("probability", "margin", "both")


def score_to_file(
    model: OneVsRest,
    X: Any,
    path: str | os.PathLike[str],
    *,
    kind: str = "probability",
    margin_dtype: DTypeLike = "float64",
    row_ids: Any = None,
    threads: int | None = None,
) -> list[Path]:
    """Score rows into a file that `open_source` reads, and return what was written.

    Memory holds a few blocks of rows and the models, however many rows and labels there are. If
    the process is killed, the same call continues where it was; if model, rows or arguments have
    changed since, it starts again.

    Parameters
    ----------
    model : OneVsRest
        Fitted.
    X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)
    path : str or path
        Ends in .npy, .csv or .parquet.
    kind : {"probability", "margin", "both"}
        Probabilities (float32) go to ``path``, and so do margins unless both are wanted: then
        they go beside it, ``scores.npy`` and ``scores.margin.npy``.
    margin_dtype : {"float64", "float32"}
    row_ids : sequence, optional
        Names of the rows, kept in Parquet; those of a frame unless told.
    threads : int, optional
        Threads to use; all cores available unless told.

    Examples
    --------
    >>> score_to_file(model, X, "scores.npy", kind="both")  # doctest: +SKIP
    [PosixPath('scores.npy'), PosixPath('scores.margin.npy')]
    """
    path = check_path("path", path)
    if not isinstance(model, OneVsRest):
        raise InvalidInput(f"model must be a OneVsRest, got {model!r:.60}.")
    if kind not in _WANTED:
        raise InvalidInput(f"kind must be one of {', '.join(_WANTED)}, got {kind!r}.")
    check_ending(path)
    dtype = np.dtype(margin_dtype)
    if dtype not in (np.float32, np.float64):
        raise InvalidInput(f"margin_dtype must be float64 or float32, got {dtype}.")
    rows, threads = model._read_rows(X), available_threads(threads)
    row_ids = frame_ids(X) if row_ids is None else row_ids
    given = len(row_ids) if hasattr(row_ids, "__len__") else "no list"
    if row_ids is not None and given != rows.shape[0]:
        raise InvalidInput(
            f"row_ids must hold one id per row, n_rows={rows.shape[0]}, got {given}."
        )
    margins = path if kind == "margin" else margin_path(path)
    wanted: list[tuple[Path, Kind, np.dtype[Any]]] = []
    if kind != "margin":
        wanted.append((output_path(path), "probability", np.dtype(np.float32)))
    if kind != "probability":
        wanted.append((output_path(margins), "margin", dtype))
    with ExitStack() as held:
        for target, _, _ in wanted:
            held.enter_context(locked(target))
        with disk_full_message(path), ResumableScores(model, rows, wanted) as unfinished:
            unfinished.fill(threads)
            unfinished.finish(row_ids)
    return {"probability": [path], "margin": [margins], "both": [path, margins]}[kind]


def margin_path(path: Path) -> Path:
    """Where margins go if both kinds are wanted: beside the probabilities."""
    return path.with_suffix(f".margin{path.suffix}")


class ResumableScores:
    """The unfinished .npy files of a scoring, and the journal of their finished blocks."""

    def __init__(
        self, model: OneVsRest, rows: Any, wanted: list[tuple[Path, Kind, np.dtype[Any]]]
    ) -> None:
        self.model, self.rows, self.wanted = model, rows, wanted
        self.shape = (int(rows.shape[0]), model.n_labels)
        self.step = max(1, _BLOCK_BYTES // (8 * model.n_labels))
        target = wanted[0][0]
        self.journal = target.with_name(f".{target.name}.journal")
        self.parts = [path.with_name(f".{path.name}.unfinished") for path, _, _ in wanted]
        self.headers = [_npy_header(dtype, self.shape) for _, _, dtype in wanted]

    def __enter__(self) -> ResumableScores:
        targets = [[str(path), kind, dtype.str] for path, kind, dtype in self.wanted]
        head = {
            "format": _JOURNAL_FORMAT,
            "wanted": targets,
            "model": hash_model(self.model),
            "rows": hash_features(self.rows),
            "shape": self.shape,
            "step": self.step,
        }
        line = json.dumps(head)
        with ExitStack() as stack:
            for part, (path, _, _) in zip(self.parts, self.wanted, strict=True):
                if part.is_file() and not part.is_symlink():
                    hold_file(stack.enter_context(part.open("r+b")), path)
            self._begin(line)
            self.held = stack.pop_all()
        return self

    def _begin(self, line: str) -> None:
        """Open the files of a scoring: those that are there, if it was begun, or new ones."""
        begun = self._resume(line)
        self.done = begun or set()
        try:
            if begun is None:
                for part, header, (_, _, dtype) in zip(
                    self.parts, self.headers, self.wanted, strict=True
                ):
                    _claim(part, header, self._end(header, dtype))
                self.journal.unlink(missing_ok=True)
                with self.journal.open("x", encoding="utf-8") as journal:
                    journal.write(line + "\n")
            self.files = [part.open("r+b") for part in self.parts]
            if begun is None:  # else they are held since they were looked at
                for file, (path, _, _) in zip(self.files, self.wanted, strict=True):
                    hold_file(file, path)
            self.log = self.journal.open("a", encoding="utf-8")
        except OSError as error:
            for unfinished in (*self.parts, self.journal) if not self.done else ():
                unfinished.unlink(missing_ok=True)
            raise UnreadableFile(
                f"{self.wanted[0][0]} can not be written ({error.strerror})."
            ) from error

    def __exit__(self, *_: object) -> None:
        for file in (*self.files, self.log):
            file.close()
        self.held.close()

    def _resume(self, line: str) -> set[int] | None:
        """Blocks that lie on disk as they were written; None if this scoring was not begun."""
        files = (self.journal, *self.parts)
        if not all(file.is_file() and not file.is_symlink() for file in files):
            return None
        head, *lines = self.journal.read_text(encoding="utf-8", errors="replace").split("\n")
        if head != line or not all(
            _is_claimed(part, header, self._end(header, dtype))
            for part, header, (_, _, dtype) in zip(
                self.parts, self.headers, self.wanted, strict=True
            )
        ):
            return None
        # A line that was cut short or altered names no block, or not what that block hashes to.
        noted = {start: digest for start, _, digest in (each.partition(" ") for each in lines)}
        with ExitStack() as stack:
            opened: list[IO[bytes]] = [stack.enter_context(part.open("rb")) for part in self.parts]
            starts = range(0, self.shape[0], self.step)
            return {
                start
                for start in starts
                if str(start) in noted and self._digest(opened, start) == noted[str(start)]
            }

    def _digest(self, files: list[IO[bytes]], start: int) -> str:
        """What the files hold of a block, as one hash."""
        pieces = []
        for file, header, (_, _, dtype) in zip(files, self.headers, self.wanted, strict=True):
            width = self.shape[1] * dtype.itemsize
            file.seek(len(header) + start * width)
            pieces.append(file.read(self._size(start) * width))
        return hash_pieces(pieces)

    def _end(self, header: bytes, dtype: np.dtype[Any]) -> int:
        return len(header) + self.shape[0] * self.shape[1] * dtype.itemsize

    def fill(self, threads: int) -> None:
        """Score the blocks that are missing."""
        starts = range(0, self.shape[0], self.step)
        missing = [start for start in starts if start not in self.done]
        with progress_bar("rows", self.shape[0]) as advance:
            advance(self.shape[0] - sum(self._size(start) for start in missing))
            scored = map_threads(missing, self._score, threads=threads)
            for start, cells in zip(missing, scored, strict=True):
                self._write(start, cells)
                advance(self._size(start))

    def _size(self, start: int) -> int:
        return min(self.step, self.shape[0] - start)

    def _score(self, start: int) -> list[NDArray[Any]]:
        margins = self.model.margin_block(self.rows[start : start + self.step])
        return [
            (margins if kind == "margin" else self.model.as_probability(margins)).astype(dtype)
            for _, kind, dtype in self.wanted
        ]

    def _write(self, start: int, cells: list[NDArray[Any]]) -> None:
        blocks = [np.ascontiguousarray(block) for block in cells]
        for file, header, block in zip(self.files, self.headers, blocks, strict=True):
            file.seek(len(header) + start * self.shape[1] * block.itemsize)
            file.write(block.data)
            file.flush()
            os.fsync(file.fileno())  # before the journal says so
        self.log.write(f"{start} {hash_pieces(blocks)}\n")
        self.log.flush()

    def finish(self, row_ids: Any) -> None:
        """Give the files their names."""
        for part, (path, kind, dtype) in zip(self.parts, self.wanted, strict=True):
            if path.suffix == ".npy":
                keep_mode(part, path)
                os.replace(part, path)
                continue
            write_scores(
                path,
                self._blocks(part),
                n_rows=self.shape[0],
                n_labels=self.shape[1],
                dtype=dtype,
                kind=kind,
                label_names=self.model.label_names_,
                row_ids=row_ids,
            )
            part.unlink()
        self.journal.unlink()

    def _blocks(self, part: Path) -> Iterator[tuple[int, NDArray[Any]]]:
        for start in range(0, self.shape[0], self.step):
            # A fresh map for each block: pages of the last one are given back.
            yield start, np.array(np.load(part, mmap_mode="r")[start : start + self.step])


def _npy_header(dtype: np.dtype[Any], shape: tuple[int, int]) -> bytes:
    """The first bytes of an .npy file."""
    header = io.BytesIO()
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    return header.getvalue()


def _is_claimed(path: Path, header: bytes, size: int) -> bool:
    """Whether a file has the header and the length that `_claim` gave it."""
    with path.open("rb") as file:
        return file.read(len(header)) == header and os.fstat(file.fileno()).st_size == size


def _claim(path: Path, header: bytes, size: int) -> None:
    """An .npy file with room for all its cells: a full disk shows before the work, not after."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(header)
        file.flush()
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)


def hash_model(model: OneVsRest) -> str:
    """A fingerprint of a trained model."""
    backend = get_backend(model.learner)
    pieces = [repr((model.learner, model.prevalence_.tolist())).encode()]
    for group, trained in zip(model._groups, model._models, strict=True):
        pieces += [group.tobytes(), backend.dump(trained)]
    return hash_pieces(pieces)
