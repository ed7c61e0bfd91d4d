"""What all calibrators share: fit on any source, a dead-label policy, transform, rank, save."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from oddslip.calibrators.fingerprint import Expected, take_fingerprint
from oddslip.calibrators.fitted_repair import FittedRepair, open_as
from oddslip.calibrators.logistic.moments import Cells, Summary
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import LabelRecord, record_policy
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Panel, read_sample_weight
from oddslip.core.tally import MergeableTally
from oddslip.core.threads import available_threads
from oddslip.core.weights import by_label
from oddslip.errors import InvalidInput
from oddslip.sources import Source, open_source
from oddslip.sources.open import Nan, is_spark
from oddslip.sources.views import WeightedSource, refuse_weights


class ScoreTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit leaves maps of scores behind, in ``fitted_``.

    A subclass fits: it opens the rows (`_open_labelled`), finds the maps, and keeps them (`_keep`).
    """

    kind: str

    @abstractmethod
    def fit(
        self,
        scores: Any,
        labels: Any = None,
        *,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        exclude: Any = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> Self:
        """Fit on calibration rows."""

    def transform(
        self,
        scores: Any,
        *,
        exclude: Any = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Calibrated probabilities of all cells, in the type of the scores.

        Rounding to float32 can tie cells near 1 again. `rank` compares before rounding, and
        ``fitted_.transform(scores, dtype=np.float64)`` keeps more.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        exclude, nan
            Cells that count for nothing, as in `oddslip.rank`; NaN in what is returned.
        prior_shift : "em" or PriorShift, optional
            Correct prevalences that moved since calibration: see `FittedRepair.transform`.
        threads : int, optional
            Threads to use; all cores available unless told.
        """
        check_is_fitted(self)
        told: dict[str, Any] = {"exclude": exclude, "nan": nan, "prior_shift": prior_shift}
        return self.fitted_.transform(self._opened(scores), **told, threads=threads)

    def fit_transform(
        self,
        scores: Any,
        labels: Any = None,
        *,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        exclude: Any = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Fit on these rows and calibrate them; takes the arguments of `fit`."""
        given: dict[str, Any] = {"sample_weight": sample_weight, "label_names": label_names}
        absent: dict[str, Any] = {"exclude": exclude, "nan": nan}
        fitted = self.fit(scores, labels, **given, **absent, threads=threads).fitted_
        source = open_as(self.kind, self._opened(scores), **absent)
        if source.label_names is None and fitted.label_names is not None:
            # These are the columns that got their names in `fit`.
            source = open_as(self.kind, scores, None, fitted.label_names, **absent)
        return fitted.transform(source, threads=threads)

    def rank(
        self,
        scores: Any,
        *,
        k: int,
        exclude: Any = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        names: bool = False,
        threads: int | None = None,
    ) -> Any:
        """Top K after calibration, in one pass, without building the repaired matrix.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        k : int
            Slots per row, ``1 <= k <= n_labels``.
        exclude, nan
            Cells that count for nothing, as in `oddslip.rank`: a row with fewer than k labels to
            show has -1 in its last slots.
        prior_shift : "em" or PriorShift, optional
            As in `transform`.
        names : bool
            Names of labels instead of their indices, as in `oddslip.rank`.
        threads : int, optional
            Threads to use; all cores available unless told.

        Returns
        -------
        ndarray of int32, shape (n_rows, k)
            Label indices; with ``names`` an array of names, or a frame where a pandas frame was
            ranked.
        """
        check_is_fitted(self)
        told: dict[str, Any] = {"exclude": exclude, "nan": nan, "prior_shift": prior_shift}
        opened = self._opened(scores)
        return self.fitted_.rank(opened, k=k, **told, names=names, threads=threads)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that `transform` returns: those of the labels.

        Hence ``set_output(transform="pandas")`` gives frames with the labels' names.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names to use where the labels had none in `fit`.
        """
        check_is_fitted(self)
        names: Any = self.fitted_.label_names
        if names is None:
            n_labels = self.fitted_.maps.n_labels
            names = [f"x{j}" for j in range(n_labels)] if input_features is None else input_features
        return np.asarray(names, dtype=object)

    def save(self, path: Any) -> None:
        """Save what was fitted to one file. `oddslip.load_repair` reads it."""
        check_is_fitted(self)
        self.fitted_.save(path)

    def to_onnx(self, path: Any, **options: Any) -> Any:
        """Write what was fitted as an ONNX graph; takes the arguments of `FittedRepair.to_onnx`."""
        check_is_fitted(self)
        return self.fitted_.to_onnx(path, **options)

    def to_sql(self, path: Any, **options: Any) -> Any:
        """Write what was fitted as SQL; takes the arguments of `FittedRepair.to_sql`."""
        check_is_fitted(self)
        return self.fitted_.to_sql(path, **options)

    def to_json(self, path: Any) -> Any:
        """Write what was fitted as JSON, as `FittedRepair.to_json` does."""
        check_is_fitted(self)
        return self.fitted_.to_json(path)

    def _opened(self, scores: Any) -> Any:
        """A Spark table opened by the columns that `fit` knew; anything else as it is."""
        if not is_spark(scores):
            return scores
        layout = getattr(self, "layout_", None)
        names = {"scores": layout.scores, "row_id": layout.row_id} if layout else {}
        told: Any = {"kind": self.kind, "label_names": self.fitted_.label_names} | names
        return open_source(scores, **told)

    def _open_labelled(
        self,
        scores: Any,
        labels: Any,
        label_names: Sequence[str] | None,
        threads: int | None,
        sample_weight: Any = None,
        exclude: Any = None,
        nan: Nan = "refuse",
    ) -> Source:
        """The rows to fit on. What can not be is refused before anything is read."""
        available_threads(threads)
        source = open_as(self.kind, scores, labels, label_names, exclude=exclude, nan=nan)
        self._need_labels(source)
        if sample_weight is None:
            return source
        refuse_weights(source)
        ids, indexed = source.row_ids(), source.indexed
        weight = read_sample_weight(sample_weight, source.n_rows, ids, indexed=indexed)
        return source if weight is None else WeightedSource(source, weight)

    def _need_labels(self, source: Source) -> None:
        """Refuse rows without true labels."""
        if not source.has_labels:
            raise InvalidInput("labels are needed to fit, got scores alone. Pass labels as well.")

    def _keep(
        self,
        source: Source,
        maps: LabelMaps,
        record: LabelRecord,
        threads: int | None,
        expected: Expected | None = None,
        **findings: str,
    ) -> None:
        """Keep what was fitted; findings are saved beside the parameters."""
        parameters = {
            name: value
            for name, value in self.get_params().items()
            if isinstance(value, str | int | float | bool | None)
        }
        self.n_features_in_ = source.n_labels
        if not source.ordered:
            self.layout_ = source.layout  # type: ignore[attr-defined]  # as tables to be repaired
        self.record_ = record
        self.fitted_ = FittedRepair(
            maps=maps,
            label_names=source.label_names and tuple(source.label_names),  # as saved
            record=record,
            calibrator=type(self).__name__,
            parameters=parameters | findings,
            n_rows=source.n_rows,
            fingerprint=replace(
                take_fingerprint(source, maps, getattr(self, "k", None), threads),
                expected=expected,
            ),
        )
        self._warn_of_risen_dead(source, threads)

    def _warn_of_risen_dead(self, source: Source, threads: int | None) -> None:
        """Under the identity policy dead labels can rise when the others are calibrated."""
        keeps_raw = np.array([action == "identity" for action in self.record_.action])
        if not keeps_raw.any() or keeps_raw.all():
            return
        tally = RisenDeadLabels(self.fitted_.maps, keeps_raw)
        risen = source.run(tally, threads=threads).result()
        if risen:
            warnings.warn(
                f"{int(keeps_raw.sum()):,} dead labels keep their raw score and rise in "
                f"{risen:,} of {source.n_rows:,} calibration rows. "
                'Use dead="prior" unless that is meant.',
                UserWarning,
                stacklevel=4,  # whoever called `fit`
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


class Calibrator(ScoreTransformer):
    """Base of the calibrators: a subclass says how it maps all labels (`_map_labels`)."""

    def fit(
        self,
        scores: Any,
        labels: Any = None,
        *,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        exclude: Any = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> Self:
        """Fit on calibration rows.

        Parameters
        ----------
        scores, labels
            In any form `oddslip.evaluate` takes.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts, as if it stood there so many times: for rows that were
            sampled unequally. Labels are dead by their number of rows, whatever these weigh.
        label_names : sequence of str, optional
            Names of the labels; a frame or a file brings its own.
        exclude, nan
            Cells that count for nothing, as in `oddslip.rank`: a map is fitted on the cells that
            are there, and so speaks of those.
        threads : int, optional
            Threads to use; all cores available unless told.
        """
        source = self._open_labelled(
            scores, labels, label_names, threads, sample_weight, exclude, nan
        )
        named = self._by_label(source)
        maps, record = named._map_labels(source, threads)
        self.__dict__ |= {name: each for name, each in vars(named).items() if name[-1] == "_"}
        self._keep(source, maps, record, threads)
        return self

    def _by_label(self, source: Source) -> Self:
        """This calibrator, with a prior and weights that are given by name in the labels' order."""
        given = {name: getattr(self, name, None) for name in ("prior", "weights")}
        ordered = {name: by_label(name, each, source.label_names) for name, each in given.items()}
        if all(ordered[name] is given[name] for name in given):
            return self
        named: Self = clone(self)
        named.set_params(
            **{name: ordered[name] for name in given if ordered[name] is not given[name]}
        )
        return named

    @abstractmethod
    def _map_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        """The maps of all labels, and what was done to each."""


class SummaryCalibrator(Calibrator):
    """A calibrator fitted on cells, be they of rows or of a summary: see `_map_cells`."""

    def _map_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        return self._map_cells(Cells(source, False, threads))

    def _map_summary(
        self, summary: Summary, near: None = None
    ) -> tuple[LabelMaps, LabelRecord, None]:
        """The maps as a summary of the rows gives them; there is nothing to start from."""
        return *self._map_cells(Cells(summary, False, None)), near

    @abstractmethod
    def _map_cells(self, cells: Cells) -> tuple[LabelMaps, LabelRecord]:
        """The maps of all labels, and what was done to each."""


class PerLabelCalibrator(Calibrator):
    """A calibrator with one map per label, and so with a dead-label policy."""

    dead: str
    tau: int
    prior: Any

    def _record(self, seen: LabelTotals, fallback: Any = False) -> LabelRecord:
        """What the policy does to each label; ``fallback`` marks those with another map."""
        return record_policy(
            seen, dead=self.dead, tau=self.tau, prior=self.prior, fallback=fallback
        )


class RisenDeadLabels(MergeableTally):
    """Rows in which fewer calibrated labels stand above the highest dead one than before."""

    JOINED: ClassVar = {"n_risen": "add"}

    def __init__(self, maps: LabelMaps, dead: NDArray[np.bool_]) -> None:
        self.maps, self.dead, self.n_risen = maps, dead, 0

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"maps": self.maps, "dead": self.dead}

    def add(self, panel: Panel) -> None:
        """Compare the rows of one block."""
        panel = panel.checked()
        values, there = (panel.scores, self.maps.values(panel)), panel.present()
        if there is not None:
            values = np.where(there, values[0], -np.inf), np.where(there, values[1], -np.inf)
        before, after = map(self._above, values)
        self.n_risen += int((after < before).sum())

    def _above(self, values: NDArray[Any]) -> NDArray[np.int64]:
        top_dead = values[:, self.dead].max(axis=1, keepdims=True)
        return np.asarray((values[:, ~self.dead] > top_dead).sum(axis=1))

    def result(self) -> int:
        """How many rows."""
        return self.n_risen
