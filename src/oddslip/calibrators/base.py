"""Base classes of the calibrators: fit on any source, transform, rank and save."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from oddslip.calibrators.logistic.moments import Cells, Summary
from oddslip.calibrators.policy import DeadLabelPolicy, Fitted, record_policy
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind, Panel
from oddslip.core.passes import Passes, run, without_passes
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Bools, FilePath, Ints, LabelsLike, PerLabel, ScoresLike
from oddslip.core.weights import by_label
from oddslip.repairs.fingerprint import Expected, take_fingerprint
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import Source
from oddslip.sources.open import Nan, is_spark, kind_for, open_like, open_rows, weigh_rows


class FitResult(NamedTuple):
    """What a fit leads to: maps, the record of each label, and what is stored beside them."""

    maps: LabelMaps
    record: LabelRecord
    expected: Expected | None = None
    findings: dict[str, str] | None = None


class ScoreTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit stores maps of scores in ``fitted_``; a subclass has `_fit_rows`."""

    kind: Kind

    def fit(
        self,
        scores: ScoresLike,
        labels: LabelsLike = None,
        *,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> Self:
        """Fit on calibration rows.

        Parameters
        ----------
        scores, labels
            In any form `oddslip.evaluate` takes.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row, for rows that were sampled unequally; a weight of 2 counts as two
            rows. Whether a label is dead depends on its number of positive rows, not their weight.
        label_names : sequence of str, optional
            Names of the labels; default: those of a frame or a file.
        exclude, nan
            Cells to ignore, as in `oddslip.rank`; maps are fitted on the other cells.
        threads : int, optional
            Threads to use; default: all available cores.

        Returns
        -------
        ScoreTransformer
            This estimator.
        """
        source = open_rows(
            scores,
            labels,
            kind=kind_for(scores, self.kind),
            label_names=label_names,
            exclude=exclude,
            nan=nan,
            threads=threads,
            purpose=self._purpose(),
        )
        source = weigh_rows(source, sample_weight)
        self._set_fitted(source, self._fit_rows(source))
        return self

    def _purpose(self) -> str | None:
        """What labels are needed for, see `open_rows`."""
        return "fit"

    @abstractmethod
    def _fit_rows(self, source: Source) -> FitResult:
        """The maps of these rows."""

    def transform(
        self,
        scores: ScoresLike,
        *,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        threads: int | None = None,
    ) -> Array:
        """Calibrated probabilities of all cells, in the dtype of the scores.

        Rounding to float32 can tie cells near 1. `rank` compares before rounding, and
        ``fitted_.transform(scores, dtype=np.float64)`` has more digits.

        Parameters
        ----------
        scores, exclude, nan, prior_shift, threads
            As in `FittedRepair.transform`.

        Returns
        -------
        ndarray of shape (n_rows, n_labels)
        """
        check_is_fitted(self)
        return self.fitted_.transform(
            self._open_table(scores),
            exclude=exclude,
            nan=nan,
            prior_shift=prior_shift,
            threads=threads,
        )

    def fit_transform(
        self,
        scores: ScoresLike,
        labels: LabelsLike = None,
        *,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> Array:
        """Fit on these rows and calibrate them.

        Parameters
        ----------
        scores, labels, sample_weight, label_names, exclude, nan, threads
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_labels)
            As from `transform`.
        """
        options: dict[str, Any] = {"exclude": exclude, "nan": nan, "threads": threads}
        self.fit(scores, labels, sample_weight=sample_weight, label_names=label_names, **options)
        options["kind"] = kind_for(scores, self.kind)
        if is_spark(scores):
            return self.fitted_.transform(self._open_table(scores))
        source = open_rows(scores, **options)
        if source.label_names is None and self.fitted_.label_names is not None:
            # These are the columns that got their names in `fit`.
            source = open_rows(scores, label_names=self.fitted_.label_names, **options)
        return self.fitted_.transform(source)

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
        scores, k, exclude, nan, prior_shift, names, threads
            As in `FittedRepair.rank`.

        Returns
        -------
        ndarray of int32, shape (n_rows, k)
            Label indices. With ``names``, an array of names, or a frame if a pandas frame was
            ranked.
        """
        check_is_fitted(self)
        return self.fitted_.rank(
            self._open_table(scores),
            k=k,
            exclude=exclude,
            nan=nan,
            prior_shift=prior_shift,
            names=names,
            threads=threads,
        )

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` returns: those of the labels.

        With them ``set_output(transform="pandas")`` returns frames with the labels' names.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names to use if the labels had none in `fit`.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names: Any = self.fitted_.label_names
        if names is None:
            n_labels = self.fitted_.maps.n_labels
            names = [f"x{j}" for j in range(n_labels)] if input_features is None else input_features
        return np.asarray(names, dtype=object)

    def save(self, path: FilePath) -> None:
        """Save the fitted maps to one file, which `oddslip.load_repair` reads."""
        check_is_fitted(self)
        self.fitted_.save(path)

    def to_onnx(self, path: FilePath, **options: Any) -> Any:
        """Write the fitted maps as an ONNX graph, as `FittedRepair.to_onnx` does."""
        check_is_fitted(self)
        return self.fitted_.to_onnx(path, **options)

    def to_sql(self, path: FilePath, **options: Any) -> Any:
        """Write the fitted maps as SQL, as `FittedRepair.to_sql` does."""
        check_is_fitted(self)
        return self.fitted_.to_sql(path, **options)

    def to_json(self, path: FilePath) -> Any:
        """Write the fitted maps as JSON, as `FittedRepair.to_json` does."""
        check_is_fitted(self)
        return self.fitted_.to_json(path)

    def _open_table(self, scores: ScoresLike) -> ScoresLike:
        """A Spark table opened with the columns of `fit`; other scores unchanged."""
        layout, names = getattr(self, "layout_", None), self.fitted_.label_names
        return open_like(scores, layout, kind=self.kind, label_names=names)

    def _set_fitted(self, source: Source, fit: FitResult) -> None:
        """Set the fitted attributes; findings are saved with the parameters."""
        parameters = {
            name: value
            for name, value in self.get_params().items()
            if isinstance(value, str | int | float | bool | None)
        }
        self.n_features_in_ = source.n_labels
        if not source.ordered:
            self.layout_ = source.layout  # type: ignore[attr-defined]  # for tables to be repaired
        self.record_ = fit.record
        fingerprint = take_fingerprint(source, fit.maps, getattr(self, "k", None))
        self.fitted_ = FittedRepair(
            maps=fit.maps,
            label_names=source.label_names and tuple(source.label_names),  # as saved
            record=fit.record,
            calibrator=type(self).__name__,
            parameters=parameters | (fit.findings or {}),
            n_rows=source.n_rows,
            fingerprint=replace(fingerprint, expected=fit.expected),
        )
        self._warn_of_risen_dead(source)

    def _warn_of_risen_dead(self, source: Source) -> None:
        """Warn of dead labels that keep their raw score and rise above calibrated ones."""
        keeps_raw = np.array([action == "identity" for action in self.record_.action])
        if not keeps_raw.any() or keeps_raw.all():
            return
        n_risen = source.run(RisenDeadLabels(self.fitted_.maps, keeps_raw)).result()
        if n_risen:
            warnings.warn(
                f"{int(keeps_raw.sum()):,} dead labels keep their raw score and rise in "
                f"{n_risen:,} of {source.n_rows:,} calibration rows. "
                'Use dead="prior" unless that is meant.',
                UserWarning,
                stacklevel=4,  # the caller of `fit`
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


class Calibrator(ScoreTransformer):
    """Base of the calibrators; a subclass implements `_map_labels`."""

    def _fit_rows(self, source: Source) -> FitResult:
        ordered = self._in_label_order(source)
        maps, record = run(source, ordered._map_labels(source), what="fitting maps")
        self.__dict__ |= {name: each for name, each in vars(ordered).items() if name[-1] == "_"}
        return FitResult(maps, record)

    def _in_label_order(self, source: Source) -> Self:
        """This calibrator, with a prior and weights by name put in the order of the labels."""
        changes = {}
        for name in ("prior", "weights"):
            value = getattr(self, name, None)
            ordered = by_label(name, value, source.label_names)
            if ordered is not value:
                changes[name] = ordered
        return clone(self).set_params(**changes) if changes else self

    @abstractmethod
    def _map_labels(self, source: Source) -> Passes[Fitted]:
        """The maps of all labels, and the record of each."""


class SummaryCalibrator(Calibrator):
    """A calibrator fitted on the cells of rows or of a summary, see `_map_cells`."""

    def _map_labels(self, source: Source, summary: Summary | None = None) -> Passes[Fitted]:
        """The maps of all labels; a summary of the rows saves the passes that make one."""
        cells = yield from Cells.read(source, summary=summary)
        return (yield from self._map_cells(cells))

    def _map_summary(
        self, summary: Summary, near: Any = None
    ) -> tuple[LabelMaps, LabelRecord, Any]:
        """The maps fitted on a summary of the rows; there is no fit to start from."""
        cells = without_passes(Cells.read(summary))
        return *without_passes(self._map_cells(cells)), near

    @abstractmethod
    def _map_cells(self, cells: Cells) -> Passes[Fitted]:
        """The maps of all labels, and the record of each."""


class PerLabelCalibrator(Calibrator):
    """A calibrator with one map per label and a dead-label policy."""

    dead: str
    tau: int
    prior: PerLabel

    def _record(self, totals: LabelTotals, fallback: Any = False) -> LabelRecord:
        """The record of the dead-label policy; ``fallback`` marks labels with another map."""
        return record_policy(totals, DeadLabelPolicy(self.dead, self.tau, self.prior), fallback)


class RisenDeadLabels(MergeableTally):
    """Rows in which the highest dead label overtakes calibrated labels."""

    JOINED: ClassVar = {"n_risen": "add"}

    def __init__(self, maps: LabelMaps, dead: Bools) -> None:
        self.maps, self.dead, self.n_risen = maps, dead, 0

    def add(self, panel: Panel) -> None:
        """Compare the rows of one block."""
        panel = panel.checked()
        values, present = (panel.scores, self.maps.values(panel)), panel.present()
        if present is not None:
            values = np.where(present, values[0], -np.inf), np.where(present, values[1], -np.inf)
        before, after = map(self._above, values)
        self.n_risen += int((after < before).sum())

    def _above(self, values: Array) -> Ints:
        top_dead = values[:, self.dead].max(axis=1, keepdims=True)
        return np.asarray((values[:, ~self.dead] > top_dead).sum(axis=1))

    def result(self) -> int:
        """Number of these rows."""
        return self.n_risen
