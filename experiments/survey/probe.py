"""What one implementation does with a label that is never true: a script for its own environment.

Run as ``python probe.py NAME``; it needs NumPy and the implementation, nothing of ours, and prints
one line of JSON. The split is the same for all: 60 calibration rows, scores of three labels, of
which the last is never true. An implementation for one label gets that label's column alone.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

ROWS = np.random.default_rng(7)
SCORES = ROWS.dirichlet([2.0, 2.0, 1.0], 60)  # calibration rows, three labels
CLASSES = ROWS.integers(0, 2, 60)  # the third label is never true
FRESH = ROWS.dirichlet([2.0, 2.0, 1.0], 25)  # rows to be mapped
ALONE, NEVER, FRESH_ALONE = SCORES[:, 2], np.zeros(60, int), FRESH[:, 2]
CLOSE = 1e-6

Column = Any  # the mapped scores of the label that was never true, or None where there is no map
Probe = Callable[[], Column]
PROBES: dict[str, tuple[str, Probe]] = {}  # by name: the distribution whose version counts


def probe(name: str, distribution: str) -> Callable[[Probe], Probe]:
    """Enter a probe under its name."""

    def enter(function: Probe) -> Probe:
        PROBES[name] = distribution, function
        return function

    return enter


class Given:
    """A classifier that was fitted before: its probabilities are its features."""

    def __init__(self, n_classes: int = 3) -> None:
        self.classes_ = np.arange(n_classes)
        self.n_features_in_ = n_classes

    _estimator_type = "classifier"

    def fit(self, X: Any, y: Any) -> Given:
        """It is fitted."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """The features."""
        return np.asarray(X)

    def predict(self, X: Any) -> Any:
        """The top label."""
        return np.asarray(X).argmax(axis=1)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What a clone needs."""
        return {"n_classes": len(self.classes_)}

    def set_params(self, **params: Any) -> Given:
        """Nothing to set."""
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )


@probe("scikit-learn IsotonicRegression", "scikit-learn")
def _sklearn_isotonic() -> Column:
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip").fit(ALONE, NEVER).predict(FRESH_ALONE)


@probe("scikit-learn _SigmoidCalibration", "scikit-learn")
def _sklearn_sigmoid() -> Column:
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration().fit(ALONE, NEVER).predict(FRESH_ALONE)


@probe("scikit-learn CalibratedClassifierCV, a class absent from the split", "scikit-learn")
def _sklearn_classes() -> Column:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    # A class that is there when the classifier is fitted, and not among the calibration rows.
    classes = np.concatenate([CLASSES, np.full(20, 2)])
    rows = np.log(np.concatenate([SCORES, SCORES[:20]]))
    split = [(np.arange(20, 80), np.arange(20))]
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=split)
    return model.fit(rows, classes).predict_proba(np.log(FRESH))[:, 2]


@probe("scikit-learn CalibratedClassifierCV, one class alone", "scikit-learn")
def _sklearn_one_class() -> Column:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", cv=2)
    return model.fit(ALONE[:, None], NEVER).predict_proba(FRESH_ALONE[:, None])[:, -1]


@probe("scikit-learn LogisticRegression as calibrator", "scikit-learn")
def _sklearn_logistic() -> Column:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(ALONE[:, None], NEVER)
    return model.predict_proba(FRESH_ALONE[:, None])[:, -1]


@probe("netcal IsotonicRegression, one label", "netcal")
def _netcal_isotonic() -> Column:
    from netcal.binning import IsotonicRegression

    model = IsotonicRegression()
    model.fit(ALONE, NEVER)
    return model.transform(FRESH_ALONE)


@probe("netcal HistogramBinning, one against all", "netcal")
def _netcal_histogram() -> Column:
    from netcal.binning import HistogramBinning

    model = HistogramBinning()
    model.fit(SCORES, CLASSES)
    return model.transform(FRESH)[:, 2]


@probe("PyCalib IsotonicCalibration", "pycalib")
def _pycalib_isotonic() -> Column:
    from pycalib.models.calibrators import IsotonicCalibration

    return _last(IsotonicCalibration().fit(ALONE, NEVER).predict_proba(FRESH_ALONE))


@probe("PyCalib SigmoidCalibration", "pycalib")
def _pycalib_sigmoid() -> Column:
    from pycalib.models.calibrators import SigmoidCalibration

    return _last(SigmoidCalibration().fit(ALONE, NEVER).predict_proba(FRESH_ALONE))


@probe("PyCalib LogisticCalibration", "pycalib")
def _pycalib_logistic() -> Column:
    from pycalib.models.calibrators import LogisticCalibration

    model = LogisticCalibration().fit(ALONE[:, None], NEVER)
    return _last(model.predict_proba(FRESH_ALONE[:, None]))


def _last(mapped: Any) -> Column:
    """The column of the label itself, beside which some give that of its absence."""
    return np.asarray(mapped).reshape(len(FRESH_ALONE), -1)[:, -1]


@probe("MAPIE TopLabelCalibrator", "mapie")
def _mapie() -> Column:
    from mapie.calibration import TopLabelCalibrator

    # Its trigger is another: a label that is no calibration row's top label, and then is a row's.
    scores, fresh = SCORES + np.array([1.0, 1.0, 0.0]), FRESH + np.array([0.0, 0.0, 1.0])
    scores, fresh = (each / each.sum(axis=1, keepdims=True) for each in (scores, fresh))
    model = TopLabelCalibrator(estimator=Given(), cv="prefit", calibrator="isotonic")
    model.fit(scores, CLASSES)
    # One score a row, that of its top label; version 1.6 puts an unseen label's into column 0.
    return np.nanmax(np.asarray(model.predict_proba(fresh)), axis=1), fresh[:, 2]


@probe("scikit-multilearn", "scikit-multilearn")
def _multilearn() -> Column:
    import pkgutil

    import skmultilearn

    named = [module.name for module in pkgutil.walk_packages(skmultilearn.__path__)]
    assert not any("calib" in name for name in named), named
    return None  # no calibration at all


@probe("betacal BetaCalibration", "betacal")
def _betacal() -> Column:
    from betacal import BetaCalibration

    return BetaCalibration().fit(ALONE[:, None], NEVER).predict(FRESH_ALONE[:, None])


@probe("venn-abers VennAbersCalibrator, one label", "venn-abers")
def _venn_abers() -> Column:
    from venn_abers import VennAbersCalibrator

    pair, fresh = (np.column_stack([1 - each, each]) for each in (ALONE, FRESH_ALONE))
    return VennAbersCalibrator().predict_proba(p_cal=pair, y_cal=NEVER, p_test=fresh)[:, 1]


@probe("venn-abers, one against rest", "venn-abers")
def _venn_abers_rest() -> Column:
    from venn_abers import VennAbersCalibrator

    mapped = VennAbersCalibrator().predict_proba(p_cal=SCORES, y_cal=CLASSES, p_test=FRESH)
    return mapped[:, 2] if mapped.shape[1] > 2 else None


@probe("ml-insights SplineCalib", "ml-insights")
def _ml_insights() -> Column:
    from ml_insights import SplineCalib

    model = SplineCalib()
    model.fit(ALONE, NEVER)
    return model.calibrate(FRESH_ALONE)


@probe("torch-uncertainty IsotonicRegressionScaler", "torch-uncertainty")
def _torch_uncertainty() -> Column:
    import torch
    from torch_uncertainty.post_processing import IsotonicRegressionScaler

    logits, fresh = (torch.log(torch.tensor(each, dtype=torch.float32)) for each in (SCORES, FRESH))
    rows = torch.utils.data.TensorDataset(logits, torch.tensor(CLASSES))
    model = IsotonicRegressionScaler(model=torch.nn.Identity())
    model.fit(torch.utils.data.DataLoader(rows, batch_size=60))
    return model(fresh).softmax(dim=1)[:, 2].detach().numpy()


def judge(mapped: Column, raw: Any) -> tuple[str, str]:
    """Behaviour and a note: absent, identity, constant, or another map."""
    if mapped is None:
        return "absent", "no map of this label's own"
    column = np.asarray(mapped, float).ravel()
    if column.shape == raw.shape and np.isfinite(column).any():  # others are not this label's rows
        column, raw = column[np.isfinite(column)], raw[np.isfinite(column)]
    if column.shape == raw.shape and np.abs(column - raw).max() < CLOSE:
        return "identity", "scores pass through"
    if np.ptp(column) < CLOSE:
        return "constant", f"{column[0]:.4g} for every score"
    return "other", f"from {column.min():.4g} to {column.max():.4g}"


def run(name: str) -> dict[str, Any]:
    """The behaviour of one implementation, and what it said on the way."""
    distribution, function = PROBES[name]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            mapped = function()
            mapped, raw = mapped if isinstance(mapped, tuple) else (mapped, FRESH_ALONE)
            behaviour, note = judge(mapped, raw)
        except Exception as error:  # whatever it raises is what is asked for
            behaviour, note = "raises", f"{type(error).__name__}: {error}".splitlines()[0][:200]
            if isinstance(error, ImportError):
                behaviour = "does not load"
    ours = [str(each.message).splitlines()[0][:200] for each in said if "label" in str(each.message)
            or "class" in str(each.message)]  # fmt: skip
    return {
        "version": version(distribution),
        "behaviour": behaviour,
        "note": note,
        "warned": ours[:1],
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
