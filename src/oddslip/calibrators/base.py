"""What all calibrators share: fit on any source, a dead-label policy, transform, rank, save."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from oddslip.calibrators.dead_labels import LabelRecord, check_policy, find_prior
from oddslip.calibrators.fitted import FittedRepair
from oddslip.calibrators.maps import LabelMaps
from oddslip.errors import InvalidInput
from oddslip.sources import Source, open_source


class Calibrator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the calibrators. After `fit`, ``fitted_`` holds what is applied and saved.

    A subclass says how it maps all labels (`_map_labels`). Per-label calibrators have the
    arguments ``dead``, ``tau`` and ``prior``.
    """

    kind: str

    def fit(self, scores: Any, labels: Any = None, *, label_names: Any = None) -> Self:
        """Fit on calibration rows: scores and labels in any form `oddslip.evaluate` takes."""
        source = self._open(scores, labels, label_names)
        if not source.has_labels:
            raise InvalidInput("labels are needed to fit, got scores alone. Pass labels as well.")
        maps, record = self._map_labels(source)
        self.n_features_in_ = source.n_labels
        self.record_ = record
        self.fitted_ = FittedRepair(
            maps=maps,
            label_names=source.label_names,
            record=record,
            calibrator=type(self).__name__,
            parameters={
                name: value
                for name, value in self.get_params().items()
                if isinstance(value, str | int | float | bool | None)
            },
            n_rows=source.n_rows,
        )
        self._warn_of_risen_dead(source)
        return self

    def transform(self, scores: Any) -> NDArray[Any]:
        """Calibrated probabilities of all cells, in the type of the scores.

        Rounding to float32 can tie cells near 1 again. `rank` compares before rounding, and
        ``fitted_.transform(scores, dtype=np.float64)`` keeps more.
        """
        check_is_fitted(self)
        return self.fitted_.transform(scores if _is_source(scores) else self._open(scores))

    def rank(self, scores: Any, *, k: int) -> NDArray[np.int32]:
        """Top K after calibration, in one pass, without building the repaired matrix."""
        check_is_fitted(self)
        return self.fitted_.rank(scores if _is_source(scores) else self._open(scores), k=k)

    def save(self, path: Any) -> None:
        """Save what was fitted to one file. `oddslip.load_repair` reads it."""
        check_is_fitted(self)
        self.fitted_.save(path)

    @abstractmethod
    def _map_labels(self, source: Source) -> tuple[LabelMaps, LabelRecord]:
        """The maps of all labels, and what was done to each."""

    def _open(self, scores: Any, labels: Any = None, label_names: Any = None) -> Source:
        kind = None if _is_source(scores) else self.kind
        return open_source(scores, labels, kind=kind, label_names=label_names)  # type: ignore[arg-type]

    def _warn_of_risen_dead(self, source: Source) -> None:
        """Under the identity policy dead labels can rise when the others are calibrated."""
        keeps_raw = np.array([action == "identity" for action in self.record_.action])
        if not keeps_raw.any() or keeps_raw.all():
            return
        risen = sum(
            rows
            for _, rows in source.map(
                lambda panel: _count_risen(panel, self.fitted_.maps, keeps_raw)
            )
        )
        if risen:
            warnings.warn(
                f"{int(keeps_raw.sum()):,} dead labels keep their raw score and rise in "
                f"{risen:,} of {source.n_rows:,} calibration rows. "
                'Use dead="prior" unless that is meant.',
                UserWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


class PerLabelCalibrator(Calibrator):
    """A calibrator with one map per label, and so with a dead-label policy."""

    dead: str
    tau: int
    prior: Any

    def _map_labels(self, source: Source) -> tuple[LabelMaps, LabelRecord]:
        check_policy(self.dead, self.tau)
        return self._fit_labels(source)

    @abstractmethod
    def _fit_labels(self, source: Source) -> tuple[LabelMaps, LabelRecord]:
        """The maps of all labels, and what was done to each."""

    def _record(
        self,
        n_positives: NDArray[np.int64],
        n_rows: int,
        fallback: NDArray[np.bool_] | None = None,
        fallback_name: str = "",
    ) -> LabelRecord:
        prior, origin = find_prior(self.prior, n_positives, n_rows)
        is_dead = n_positives <= self.tau
        action = np.where(is_dead, self.dead, "calibrated")
        if fallback is not None:
            action = np.where(~is_dead & fallback, fallback_name, action)
        return LabelRecord(tuple(action.tolist()), n_positives, prior, origin, is_dead)


def _is_source(scores: Any) -> bool:
    from oddslip.panels import Panel

    return isinstance(scores, Source | Panel)


def _count_risen(panel: Any, maps: LabelMaps, dead: NDArray[np.bool_]) -> int:
    """Rows in which fewer calibrated labels stand above the highest dead one than before."""
    before = panel.checked().scores
    after = maps.values(panel)

    def above(values: NDArray[Any]) -> NDArray[np.int64]:
        top_dead = values[:, dead].max(axis=1, keepdims=True)
        return np.asarray((values[:, ~dead] > top_dead).sum(axis=1))

    return int((above(after) < above(before)).sum())
