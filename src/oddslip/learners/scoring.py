"""Resumable scoring of many rows and labels into a file.

Rows are scored block by block into a temporary .npy beside the target file; a journal lists the
blocks on disk, each with its checksum. A killed run continues with the blocks that are missing or
damaged, and ends with the same bytes. At the end the file is renamed, or copied into Parquet or
CSV.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence, Sized
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import DTypeLike

from oddslip.adapters.features import frame_ids, hash_features
from oddslip.core.panel import Kind
from oddslip.core.threads import available_threads, map_threads
from oddslip.core.types import Array, FeaturesLike, FilePath
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.arrays import allocate, is_allocated, npy_header
from oddslip.io.files import (
    disk_full_message,
    hash_pieces,
    hold_file,
    keep_mode,
    lock,
    output_path,
)
from oddslip.io.paths import check_path
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import get_backend
from oddslip.learners.one_vs_rest import OneVsRest
from oddslip.writers import check_ending, write_scores

_JOURNAL_FORMAT = 2  # since 2 a line holds the checksum of its block
_BLOCK_BYTES = 16 * 1024 * 1024
_KINDS = ("probability", "margin", "both")


def score_to_file(
    model: OneVsRest,
    X: FeaturesLike,
    path: FilePath,
    *,
    kind: str = "probability",
    margin_dtype: DTypeLike = "float64",
    row_ids: Sequence[object] | Array | None = None,
    threads: int | None = None,
) -> list[Path]:
    """Score rows into a file that `open_source` reads.

    Only the models and a few blocks of rows are in memory. If the process is killed, the same call
    continues where it was; if model, rows or arguments have changed since, it starts again.

    Parameters
    ----------
    model : OneVsRest
        A fitted model.
    X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)
    path : str or path
        Ends in .npy, .csv or .parquet.
    kind : {"probability", "margin", "both"}
        What to write to ``path``: probabilities (float32), margins, or probabilities with the
        margins in a second file, such as ``scores.margin.npy`` beside ``scores.npy``.
    margin_dtype : {"float64", "float32"}
        Type of the margins.
    row_ids : sequence, optional
        Names of the rows, stored in Parquet; default: those of a data frame X.
    threads : int, optional
        Threads to use; default: all available cores.

    Returns
    -------
    list of pathlib.Path
        The files.

    Examples
    --------
    >>> score_to_file(model, X, "scores.npy", kind="both")  # doctest: +SKIP
    [PosixPath('scores.npy'), PosixPath('scores.margin.npy')]
    """
    path = check_path("path", path)
    if not isinstance(model, OneVsRest):
        raise InvalidInput(f"model must be a OneVsRest, got {model!r:.60}.")
    if kind not in _KINDS:
        raise InvalidInput(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}.")
    check_ending(path)
    dtype = np.dtype(margin_dtype)
    if dtype not in (np.float32, np.float64):
        raise InvalidInput(f"margin_dtype must be float64 or float32, got {dtype}.")
    rows, threads = model._read_rows(X), available_threads(threads)
    row_ids = frame_ids(X) if row_ids is None else row_ids
    n_ids = len(row_ids) if isinstance(row_ids, Sized) else "no list"
    if row_ids is not None and n_ids != rows.shape[0]:
        raise InvalidInput(
            f"row_ids must hold one id per row, n_rows={rows.shape[0]}, got {n_ids}."
        )
    margins = path if kind == "margin" else margin_path(path)
    targets: list[tuple[Path, Kind, np.dtype]] = []
    if kind != "margin":
        targets.append((output_path(path), "probability", np.dtype(np.float32)))
    if kind != "probability":
        targets.append((output_path(margins), "margin", dtype))
    with ExitStack() as locks:
        for target, _, _ in targets:
            locks.enter_context(lock(target))
        with disk_full_message(path), ResumableScores(model, rows, targets) as scores:
            scores.fill(threads)
            scores.finish(row_ids)
    return {"probability": [path], "margin": [margins], "both": [path, margins]}[kind]


def margin_path(path: Path) -> Path:
    """Path of the margins if both kinds are written: beside the probabilities."""
    return path.with_suffix(f".margin{path.suffix}")


class ResumableScores:
    """The temporary .npy files of a scoring, and the journal of their finished blocks."""

    def __init__(
        self, model: OneVsRest, rows: FeaturesLike, targets: list[tuple[Path, Kind, np.dtype]]
    ) -> None:
        self.model, self.rows, self.targets = model, rows, targets
        self.shape = (int(rows.shape[0]), model.n_labels)
        self.step = max(1, _BLOCK_BYTES // (8 * model.n_labels))
        target = targets[0][0]
        self.journal = target.with_name(f".{target.name}.journal")
        self.parts = [path.with_name(f".{path.name}.unfinished") for path, _, _ in targets]
        self.headers = [npy_header(dtype, self.shape) for _, _, dtype in targets]

    def __enter__(self) -> ResumableScores:
        listing = [[str(path), kind, dtype.str] for path, kind, dtype in self.targets]
        head = {
            "format": _JOURNAL_FORMAT,
            "wanted": listing,
            "model": hash_model(self.model),
            "rows": hash_features(self.rows),
            "shape": self.shape,
            "step": self.step,
        }
        line = json.dumps(head)
        with ExitStack() as stack:
            for part, (path, _, _) in zip(self.parts, self.targets, strict=True):
                if part.is_file() and not part.is_symlink():
                    hold_file(stack.enter_context(part.open("r+b")), path)
            self._begin(line)
            self.locks = stack.pop_all()
        return self

    def _begin(self, line: str) -> None:
        """Open the files of a scoring that was begun before, or create new ones."""
        finished_blocks = self._resume(line)
        self.finished_blocks = finished_blocks or set()
        try:
            if finished_blocks is None:
                for part, header, (_, _, dtype) in zip(
                    self.parts, self.headers, self.targets, strict=True
                ):
                    allocate(part, header, self._end(header, dtype))
                self.journal.unlink(missing_ok=True)
                with self.journal.open("x", encoding="utf-8") as journal:
                    journal.write(line + "\n")
            self.files = [part.open("r+b") for part in self.parts]
            if finished_blocks is None:  # else they were locked before they were read
                for file, (path, _, _) in zip(self.files, self.targets, strict=True):
                    hold_file(file, path)
            self.log = self.journal.open("a", encoding="utf-8")
        except OSError as error:
            for file_path in (*self.parts, self.journal) if not self.finished_blocks else ():
                file_path.unlink(missing_ok=True)
            raise UnreadableFile(
                f"{self.targets[0][0]} cannot be written ({error.strerror})."
            ) from error

    def __exit__(self, *_: object) -> None:
        for file in (*self.files, self.log):
            file.close()
        self.locks.close()

    def _resume(self, line: str) -> set[int] | None:
        """Blocks that are on disk undamaged; None if this scoring was not begun before."""
        paths = (self.journal, *self.parts)
        if not all(file.is_file() and not file.is_symlink() for file in paths):
            return None
        head, *lines = self.journal.read_text(encoding="utf-8", errors="replace").split("\n")
        if head != line or not all(
            is_allocated(part, header, self._end(header, dtype))
            for part, header, (_, _, dtype) in zip(
                self.parts, self.headers, self.targets, strict=True
            )
        ):
            return None
        # A truncated or altered line has no block number, or a checksum that does not match.
        digests = {start: digest for start, _, digest in (each.partition(" ") for each in lines)}
        with ExitStack() as stack:
            files: list[IO[bytes]] = [stack.enter_context(part.open("rb")) for part in self.parts]
            starts = range(0, self.shape[0], self.step)
            return {
                start
                for start in starts
                if str(start) in digests and self._digest(files, start) == digests[str(start)]
            }

    def _digest(self, files: list[IO[bytes]], start: int) -> str:
        """Hash of a block in all files."""
        pieces = []
        for file, header, (_, _, dtype) in zip(files, self.headers, self.targets, strict=True):
            width = self.shape[1] * dtype.itemsize
            file.seek(len(header) + start * width)
            pieces.append(file.read(self._size(start) * width))
        return hash_pieces(pieces)

    def _end(self, header: bytes, dtype: np.dtype) -> int:
        return len(header) + self.shape[0] * self.shape[1] * dtype.itemsize

    def fill(self, threads: int) -> None:
        """Score the blocks that are missing."""
        starts = range(0, self.shape[0], self.step)
        missing = [start for start in starts if start not in self.finished_blocks]
        with progress_bar("scoring rows", self.shape[0]) as advance:
            advance(self.shape[0] - sum(self._size(start) for start in missing))
            scored = map_threads(missing, self._score, threads=threads)
            for start, cells in zip(missing, scored, strict=True):
                self._write(start, cells)
                advance(self._size(start))

    def _size(self, start: int) -> int:
        return min(self.step, self.shape[0] - start)

    def _score(self, start: int) -> list[Array]:
        margins = self.model.margin_block(self.rows[start : start + self.step])
        return [
            (margins if kind == "margin" else self.model.as_probability(margins)).astype(dtype)
            for _, kind, dtype in self.targets
        ]

    def _write(self, start: int, cells: list[Array]) -> None:
        blocks = [np.ascontiguousarray(block) for block in cells]
        for file, header, block in zip(self.files, self.headers, blocks, strict=True):
            file.seek(len(header) + start * self.shape[1] * block.itemsize)
            file.write(block.data)
            file.flush()
            os.fsync(file.fileno())  # before it is listed in the journal
        self.log.write(f"{start} {hash_pieces(block.data for block in blocks)}\n")
        self.log.flush()

    def finish(self, row_ids: Sequence[object] | Array | None) -> None:
        """Rename or convert the temporary files."""
        for part, (path, kind, dtype) in zip(self.parts, self.targets, strict=True):
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

    def _blocks(self, part: Path) -> Iterator[tuple[int, Array]]:
        for start in range(0, self.shape[0], self.step):
            # A new map for each block, which releases the pages of the last one.
            yield start, np.array(np.load(part, mmap_mode="r")[start : start + self.step])


def hash_model(model: OneVsRest) -> str:
    """A hash of a trained model."""
    backend = get_backend(model.learner)
    pieces = [repr((model.learner, model.prevalence_.tolist())).encode()]
    for group, group_model in zip(model._groups, model._models, strict=True):
        pieces += [group.tobytes(), backend.dump(group_model)]
    return hash_pieces(pieces)
