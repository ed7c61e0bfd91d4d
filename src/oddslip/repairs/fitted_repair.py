"""`FittedRepair`: fitted maps that are applied to scores and saved to one file.

The file holds arrays and JSON with a version and checksums, and no pickle.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oddslip import __version__
from oddslip.core.panel import Panel, SparsePanel, check_k
from oddslip.core.results import as_frame, html_table, name_ranking, plain
from oddslip.core.row_ids import match_labels
from oddslip.core.types import Array, FilePath, Floats, Ints, JsonObject, LabelsLike, ScoresLike
from oddslip.errors import InvalidInput
from oddslip.repairs.fingerprint import Fingerprint, probabilities_of, take_fingerprint
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.maps import LabelMaps, rank_values
from oddslip.repairs.prior_shift import PriorShift, find_prior_shift
from oddslip.repairs.repair_file import (
    MAP_ARRAYS,
    RECORD_ARRAYS,
    STAGE_ARRAYS,
    STAGE_NUMBERS,
    RepairFile,
    read_repair_file,
    write_repair_file,
)
from oddslip.repairs.row_aware import RowAwareMaps, read_maps, reject_stage
from oddslip.sources import Source
from oddslip.sources.open import Nan, kind_for, open_rows
from oddslip.sources.views import PartialSource

CHECKED_ROWS = 64  # rows on which the kind of scores is checked
MIN_CHECKED_CELLS = 64  # this many margins are not all between 0 and 1 by chance
if TYPE_CHECKING:
    from oddslip.serving.export import Export


@dataclass(frozen=True, slots=True, eq=False)
class FittedRepair:
    """The maps of all labels, with the names and records of the labels.

    Attributes
    ----------
    maps : LabelMaps
        The maps.
    label_names : tuple of str or None
        Names by which labels are matched. If only one side has names, labels are matched by
        position, with a warning.
    record : LabelRecord
        The action, positives and prior of each label.
    calibrator, parameters : str, dict
        Name and parameters of the calibrator.
    n_rows : int
        Number of calibration rows.
    fingerprint : Fingerprint or None
        Counts of the calibration rows, for `oddslip.check`; None if saved before 0.2.
    """

    maps: LabelMaps
    label_names: tuple[str, ...] | None
    record: LabelRecord
    calibrator: str
    parameters: dict[str, Any]
    n_rows: int
    fingerprint: Fingerprint | None = None

    def transform(
        self,
        scores: ScoresLike,
        *,
        dtype: Any = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        threads: int | None = None,
    ) -> Array:
        """Calibrated probabilities of all cells; NaN where a cell is absent.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        dtype : optional
            Type of the result; default: that of the scores.
        exclude, nan
            Cells to ignore, as in `oddslip.rank`.
        prior_shift : "em" or PriorShift, optional
            Correct prevalences that changed since calibration, estimated from these scores ("em")
            or by `prior_shift` from other rows. See docs/serving.md for the assumptions.
        threads : int, optional
            Threads to use; default: all available cores.

        Returns
        -------
        ndarray of shape (n_rows, n_labels)
        """
        source, order = self._open(scores, exclude, nan, threads)
        maps = self._maps(order)
        try:
            dtype = np.dtype(dtype or source.dtype)
        except TypeError as error:
            raise InvalidInput(f"dtype must be one of NumPy's, got {dtype!r:.60}.") from error
        if not source.ordered:
            reject_stage(self.maps, "a table")
            _reject_shift(prior_shift)
            return source.transform(maps, dtype)  # type: ignore[no-any-return]
        out = np.empty((source.n_rows, source.n_labels), dtype)
        shift = self._read_shift(prior_shift, source, order)
        for first, block in _transform_blocks(source, maps, shift, dtype):
            out[first : first + len(block)] = block
        return out

    def transform_blocks(
        self,
        scores: ScoresLike,
        *,
        dtype: Any = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        threads: int | None = None,
    ) -> Iterator[tuple[int, Array]]:
        """Yield (first row, calibrated block) in row order, for panels larger than memory.

        Parameters
        ----------
        scores, dtype, exclude, nan, prior_shift, threads
            As in `transform`.
        """
        source, order = self._open(scores, exclude, nan, threads)
        shift = self._read_shift(prior_shift, source, order)
        return _transform_blocks(source, self._maps(order), shift, dtype)

    def rank(
        self,
        scores: ScoresLike,
        *,
        k: int,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        names: bool = False,
        threads: int | None = None,
    ) -> Any:
        """Top K after calibration, in one pass, without computing the repaired matrix.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        k : int
            Slots per row, ``1 <= k <= n_labels``.
        exclude, nan
            Cells to ignore, as in `oddslip.rank`: a row with fewer than k labels has -1 in its last
            slots.
        prior_shift : "em" or PriorShift, optional
            As in `transform`.
        names : bool
            Whether to return the names of labels instead of their indices, as in `oddslip.rank`.
        threads : int, optional
            Threads to use; default: all available cores.

        Returns
        -------
        ndarray of int32, shape (n_rows, k)
            Label indices. With ``names``, an array of names, or a frame if a pandas frame was
            ranked.

        Examples
        --------
        >>> load_repair("repair.oddslip").rank(frame, k=2, names=True)  # doctest: +SKIP
            label_1 label_2
        ann     fig    pear
        """
        source, order = self._open(scores, exclude, nan, threads)
        k = check_k(k, source.n_labels)
        if not source.ordered:
            reject_stage(self.maps, "a table")
            _reject_shift(prior_shift)
            return source.rank(k, self._maps(order))
        shift = self._read_shift(prior_shift, source, order)
        ranking = rank_mapped(source, self._maps(order), k, shift)
        if not names:
            return ranking
        return name_ranking(ranking, self._names(source, order), scores)

    def rank_blocks(
        self,
        scores: ScoresLike,
        *,
        k: int,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        threads: int | None = None,
    ) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """Yield (first row, top K of the block) in row order, for panels larger than memory.

        Parameters
        ----------
        scores, k, exclude, nan, prior_shift, threads
            As in `rank`.
        """
        source, order = self._open(scores, exclude, nan, threads)
        k = check_k(k, source.n_labels)
        shift = self._read_shift(prior_shift, source, order)
        return _rank_blocks(source, self._maps(order), k, shift)

    def prior_shift(self, scores: ScoresLike, *, threads: int | None = None) -> PriorShift:
        """Estimate from scores how prevalences changed since calibration.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        threads : int, optional
            Threads to use; default: all available cores.

        Returns
        -------
        PriorShift
        """
        return self._find_shift(*self._open(scores, threads=threads))

    def _find_shift(self, source: Source, order: Ints | None) -> PriorShift:
        if self.fingerprint is None:
            raise InvalidInput(
                "prior_shift needs a repair with a fingerprint, got one saved by an older version. "
                "Fit it again."
            )
        reject_stage(self.maps, "prior_shift")
        now, maps = take_fingerprint(source), self._maps(order)
        return find_prior_shift(
            self.fingerprint.take(order), now, probabilities_of(maps), source.label_names
        )

    def _read_shift(self, shift: Any, source: Source, order: Ints | None) -> Floats | None:
        """Shift of the log-odds of each label of the source, or None."""
        if shift is None:
            return None
        reject_stage(self.maps, "prior_shift")
        if isinstance(shift, str) and shift == "em":
            shift = self._find_shift(source, order)
        if not isinstance(shift, PriorShift) or shift.shift.size != source.n_labels:
            raise InvalidInput(
                'prior_shift must be "em" or a PriorShift of these labels, '
                f"got {type(shift).__name__} {shift!r:.40}."
            )
        if not shift.fits.all():
            wrong = int((~shift.fits).sum())
            warnings.warn(
                f"the scores of {wrong:,} of {source.n_labels:,} labels moved in a way that no "
                "change of prevalence explains; these are left as they are (finding OS509).",
                UserWarning,
                stacklevel=3,
            )
        return shift.shift

    def save(self, path: FilePath) -> None:
        """Save to one file, atomically.

        Parameters
        ----------
        path : str or path
            Read by `oddslip.load_repair`.
        """
        save_repair(self, path)

    def to_onnx(
        self,
        path: FilePath,
        *,
        k: int | None = None,
        scores: str = "float64",
        precision: str = "float64",
    ) -> Export:
        """Write this repair as an ONNX graph of standard operators.

        Its input is ``scores``, its outputs are ``probabilities`` and, with ``k``, ``top_labels``
        and ``top_probabilities``. The graph does not validate scores.

        Parameters
        ----------
        path : path
        k : int, optional
            Slots per row, ``1 <= k <= n_labels``; without it nothing is ranked.
        scores : {"float64", "float32"}
            Type of the input.
        precision : {"float64", "float32"}
            Type of the computation. In float32 close scores can tie or swap places; the export
            then reports the largest deviation of a probability.

        Returns
        -------
        Export
        """
        from oddslip.serving.onnx import export_onnx

        return export_onnx(self, path, k=k, scores=scores, precision=precision)

    def to_sql(
        self,
        path: FilePath,
        *,
        dialect: str,
        k: int | None = None,
        name: str = "oddslip",
        table: str = "scores",
        columns: tuple[str, str, str] = ("row", "label", "score"),
    ) -> Export:
        """Write this repair as SQL: a table of its maps, and a view that ranks long scores.

        Parameters
        ----------
        path : path
        dialect : {"duckdb", "postgres", "spark"}
        k : int, optional
            Slots per row; without it the view ranks all labels of a row.
        name : str
            Prefix of the names of the table and the view.
        table : str
            Table of the scores, one line per row and label; parts of a qualified name are separated
            by dots.
        columns : three of str
            Its columns of the row, the label (name, or index if labels have no names) and the
            score.

        Returns
        -------
        Export
        """
        from oddslip.serving.sql import export_sql

        return export_sql(self, path, dialect=dialect, k=k, name=name, table=table, columns=columns)

    def to_json(self, path: FilePath) -> Export:
        """Write the maps as a documented JSON file, for any other language.

        Parameters
        ----------
        path : path

        Returns
        -------
        Export
        """
        from oddslip.serving.json import export_json

        return export_json(self, path)

    def _open(
        self,
        scores: ScoresLike,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        threads: int | None = None,
        labels: LabelsLike = None,
    ) -> tuple[Source, Ints | None]:
        """The source, and the position of its labels among ours, see `align_labels`."""
        kind = kind_for(scores, self.maps.kind)
        source = open_rows(scores, labels, kind=kind, exclude=exclude, nan=nan, threads=threads)
        check_kind(self, source, declared=isinstance(scores, Source | Panel))
        return source, align_labels(self.label_names, self.maps.n_labels, source)

    def _maps(self, order: Ints | None) -> LabelMaps:
        """The maps in the order of the source's labels."""
        return self.maps if order is None else self.maps.take(order)

    def _names(self, source: Source, order: Ints | None) -> Sequence[str] | None:
        """Names of the labels in the order of the source: its own, or else ours."""
        if source.label_names is not None or self.label_names is None:
            return source.label_names
        return self.label_names if order is None else [self.label_names[at] for at in order]

    def __repr__(self) -> str:
        labels = f"{self.maps.n_labels:,} labels, {self.record.n_dead:,} of them dead"
        return f"FittedRepair({self.calibrator}, {self.maps.kind}, {self.n_rows:,} rows x {labels})"

    def __str__(self) -> str:
        """The table that `oddslip fit` prints."""
        from oddslip.reports.text import as_text, repair_table

        return as_text([repair_table(self)])

    def to_dict(self) -> JsonObject:
        """The fit and the record of each label, in built-in types."""
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.repair/1",
                "calibrator": self.calibrator,
                "parameters": self.parameters,
                "kind": self.maps.kind,
                "n_labels": self.maps.n_labels,
                "n_rows": self.n_rows,
                "n_dead": self.record.n_dead,
                "prior_source": self.record.prior_source,
                "labels": self._label_columns(),
            }
        )

    def to_frame(self) -> Any:
        """A pandas data frame with one row per label."""
        return as_frame(self._label_columns())

    def _label_columns(self) -> dict[str, Any]:
        names = self.label_names or tuple(str(j) for j in range(self.maps.n_labels))
        return {
            "label": list(names),
            "action": list(self.record.action),
            "n_positives": self.record.n_positives,
            "prior": self.record.prior,
        }

    def _repr_html_(self) -> str:
        counts = {action: self.record.action.count(action) for action in self.record.action}
        rows = [[action, f"{count:,}"] for action, count in counts.items()]
        caption = f"{self.calibrator} fitted on {self.n_rows:,} rows, {self.maps.n_labels:,} labels"
        return html_table(["what was done", "labels"], rows, caption)


def _transform_blocks(
    source: Source,
    maps: LabelMaps,
    shift: Floats | None,
    dtype: Any,
) -> Iterator[tuple[int, Array]]:
    """(First row, calibrated block) in row order."""

    def repair(panel: Panel) -> Array:
        if shift is None:
            return maps.transform_panel(panel, dtype)
        mapped = shift_odds(maps.transform_panel(panel, np.float64), shift)
        return mapped.astype(dtype or panel.dtype)

    return source.map(repair, what="repairing rows")


def _rank_blocks(
    source: Source,
    maps: LabelMaps,
    k: int,
    shift: Floats | None,
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """(First row, top K of the block) in row order."""

    def rank(panel: Panel) -> NDArray[np.int32]:
        return maps.rank_panel(panel, k) if shift is None else _rank(maps, panel, k, shift)

    return source.map(rank, what="ranking rows")


def rank_mapped(
    source: Source,
    maps: LabelMaps,
    k: int,
    shift: Floats | None = None,
) -> NDArray[np.int32]:
    """Top K of every row by maps in the order of the source's labels."""
    out = np.empty((source.n_rows, k), np.int32)
    for first, block in _rank_blocks(source, maps, k, shift):
        out[first : first + len(block)] = block
    return out


def shift_odds(probabilities: Floats, shift: Floats) -> Floats:
    """Probabilities with log-odds shifted by label, in nat."""
    with np.errstate(over="ignore"):
        odds = np.exp(np.clip(shift, -700, 700))
    return np.asarray(odds * probabilities / (1 - probabilities + odds * probabilities))


def _rank(maps: LabelMaps, panel: Panel, k: int, shift: Floats) -> NDArray[np.int32]:
    """Top k by shifted values."""
    values = maps.values(panel)
    shifted = values + shift if maps.scale == "log_odds" else shift_odds(values, shift)
    shifted[values == -np.inf] = -np.inf  # excluded
    return rank_values(shifted, panel, k)


def _reject_shift(prior_shift: Any) -> None:
    if prior_shift is not None:
        raise InvalidInput(
            "prior_shift goes with rows of this machine, got it with a table. "
            "Find it on a sample of the rows, and repair them here."
        )


def check_kind(repair: FittedRepair, source: Source, *, declared: bool) -> None:
    """Raise for scores of another kind than the repair's.

    Without a declared kind, the scores themselves are examined. Probabilities lie in [0, 1]. Many
    margins hardly ever all lie there, unless most of those of the calibration rows do.
    """
    match_kind(repair, source.kind)
    if declared:
        return
    cells = _first_cells(source)
    if cells is None or not cells.size:
        return
    with np.errstate(invalid="ignore"):
        low, high = float(cells.min()), float(cells.max())  # NaN compares as neither
    inside = low >= 0 and high <= 1
    if source.kind == "probability" and (low < 0 or high > 1) and np.isfinite([low, high]).all():
        raise InvalidInput(
            f"this repair was fitted on probabilities, got scores from {low:g} to {high:g}, as of "
            "margins. Pass probabilities, or fit a repair on margins."
        )
    has_many_cells = cells.size >= MIN_CHECKED_CELLS and source.n_labels > 1
    if source.kind == "margin" and inside and has_many_cells and not _mostly_inside(repair):
        raise InvalidInput(
            "this repair was fitted on margins, got scores that all lie between 0 and 1, as "
            "probabilities do. Pass margins; if these are, say so: "
            'open_source(scores, kind="margin").'
        )


def match_kind(repair: FittedRepair, kind: str) -> None:
    """Raise for a declared kind that is not the repair's."""
    if kind != repair.maps.kind:
        raise InvalidInput(
            f"this repair was fitted on {repair.maps.kind} scores, got {kind} scores. "
            f"Pass scores of kind {repair.maps.kind}, or fit a repair on these."
        )


def _first_cells(source: Source) -> Array | None:
    """Scores of the first rows; None if the data store their kind or are a Spark table."""
    while isinstance(source, PartialSource):
        source = source.whole
    if source.kind_is_stored or not source.ordered:
        return None
    panel = next(source.blocks(), None)
    if isinstance(panel, SparsePanel):
        return panel.cells[: CHECKED_ROWS * MIN_CHECKED_CELLS]
    return None if panel is None else panel.scores[:CHECKED_ROWS]


def _mostly_inside(repair: FittedRepair) -> bool:
    """Whether most margins of the calibration rows lie between 0 and 1, if known."""
    from oddslip.tallies.logodds_histogram import edges_of

    if repair.fingerprint is None:
        return False
    low = edges_of("margin")[:-1].round(9)
    counts = repair.fingerprint.counts.sum(axis=0, dtype=np.int64)
    return bool(2 * counts[(low >= 0) & (low <= 1)].sum() >= counts.sum())


def align_labels(names: tuple[str, ...] | None, n_labels: int, source: Source) -> Ints | None:
    """Position of each label of the source among ours; None if the order is the same.

    Warns if only one side has names and labels are matched by position.
    """
    counts = source.n_labels, n_labels
    return match_labels(source.label_names, names, ("scores", "repair"), n_labels=counts, warn=True)


def save_repair(
    repair: FittedRepair,
    path: FilePath,
    decision: tuple[JsonObject, dict[str, Array]] | None = None,
) -> None:
    """Write a fitted repair atomically, with the header and the arrays of a decision."""
    actions = sorted(set(repair.record.action))
    header = {
        "written_by": f"oddslip {__version__}",
        "calibrator": repair.calibrator,
        "parameters": plain(repair.parameters),
        "kind": repair.maps.kind,
        "scale": repair.maps.scale,
        "step": bool(repair.maps.step),
        "n_rows": int(repair.n_rows),
        "label_names": None if repair.label_names is None else list(repair.label_names),
        "prior_source": repair.record.prior_source,
        "actions": actions,
        "action": [actions.index(action) for action in repair.record.action],
        "fingerprint": repair.fingerprint and repair.fingerprint.to_dict(),
        **({} if decision is None else {"decision": decision[0]}),
    }
    arrays = {
        name: getattr(owner, name)
        for owner, names in ((repair.maps, MAP_ARRAYS), (repair.record, RECORD_ARRAYS))
        for name in names
    }
    if isinstance(repair.maps, RowAwareMaps):
        stage = repair.maps.stage
        header["stage"] = {name: float(getattr(stage, name)) for name in STAGE_NUMBERS}
        arrays |= {name: getattr(stage, name).reshape(-1) for name in STAGE_ARRAYS}
    if repair.fingerprint is not None:
        arrays |= repair.fingerprint.to_arrays()
    if decision is not None:
        arrays |= decision[1]
    write_repair_file(path, header, arrays)


def load_repair(path: FilePath) -> FittedRepair:
    """Read a fitted repair saved by this or an older version.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    FittedRepair

    Examples
    --------
    >>> load_repair("repair.oddslip").rank("scores.npy", k=7)  # doctest: +SKIP
    """
    return repair_of(read_repair_file(path))


def repair_of(stored: RepairFile) -> FittedRepair:
    """The repair that was read from a file."""
    return FittedRepair(
        maps=read_maps(stored.maps, stored.stage),
        label_names=stored.label_names,
        record=LabelRecord(
            action=stored.action,
            prior_source=stored.prior_source,
            **{name: stored.arrays[name] for name in RECORD_ARRAYS},
        ),
        calibrator=stored.calibrator,
        parameters=stored.parameters,
        n_rows=stored.n_rows,
        fingerprint=Fingerprint.read(stored),
    )
