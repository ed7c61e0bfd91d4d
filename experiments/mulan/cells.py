"""One cell of the MULAN study: every rung of the ladder, and what the selection rules choose."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import map_gap
from experiments.datasets.mulan.reader import MulanData
from experiments.folds import PaperRepair
from experiments.mulan.arms import Arm
from oddslip.calibrators import Ceiling, Inversion, Isotonic, build_calibrator
from oddslip.core.labels import DenseLabels
from oddslip.metrics import Evaluation, average_precision_at_k, evaluate, mean_auc
from oddslip.metrics.at_k import Column, metric_values
from oddslip.metrics.ranking import Rankings
from oddslip.shifts import realized_shift, saturation

DECIMALS = 12  # to which scores are rounded before distinct ones are counted
SATURATED = 1 - 1e-9  # from which on the paper's section 4 calls a score saturated
METRICS = {"map": Column.MAP, "recall": Column.RECALL, "ndcg": Column.NDCG}
RULES = ("paper", "auto")


def describe_data(data: MulanData) -> dict[str, Any]:
    """What Table 2 says of a data set before any model."""
    positives = data.calibration_positives
    return {
        "n_labels": data.n_labels,
        "k": data.k,
        "n_fitted": int(data.fitted.size),
        "n_test": len(data.Y_test),
        "median_calibration_positives": float(np.median(positives)),
        "n_dead": int((positives == 0).sum()),
        "min_r": float(data.r.min()),
        "max_r": float(data.r.max()),
        "popularity": score(np.broadcast_to(data.prevalence, data.Y_test.shape), data),
    }


def measure_cell(data: MulanData, arm: Arm, twin: Arm, weighted: bool) -> dict[str, Any]:
    """Rungs of the ladder of one arm, and what its scores look like. ``twin`` is unweighted."""
    prior = data.prevalence
    calibrators = {
        "raw": build_calibrator("raw"),
        "isotonic": build_calibrator("isotonic", prior=prior),
        "isotonic, identity": build_calibrator("isotonic", dead="identity"),
        "isotonic, exclude": build_calibrator("isotonic", dead="exclude"),
    }
    names = ("pooled", "offset", "label_free", "platt", "beta")
    for name in (*names, *(["inversion"] if weighted else [])):
        calibrators[name] = build_calibrator(name, prior=prior, weights=arm.weights)
    truth = data.Y_train[data.calibration]
    rankings = {}
    for name, calibrator in calibrators.items():
        with warnings.catch_warnings():
            # Dead labels that rise under the identity policy are what that rung is there to show.
            warnings.simplefilter("ignore", UserWarning)
            calibrator.fit(arm.calibration, truth)
        rankings[name] = calibrator.rank(arm.test, k=data.k)
    if weighted:
        shifted = Inversion(1.0 / arm.weights).fit(twin.calibration, truth)
        rankings["what-if"] = shifted.rank(twin.test, k=data.k)
    ceiling = Ceiling().fit(arm.test, data.Y_test)
    rankings["ceiling"] = ceiling.rank(arm.test, k=data.k)
    positives = DenseLabels(data.Y_test).positives(0, len(data.Y_test))
    values = {
        rung: metric_values(Rankings.of(ranking, positives, data.n_labels)).mean(axis=0)
        for rung, ranking in rankings.items()
    }
    metrics = {
        metric: {rung: float(row[column]) for rung, row in values.items()}
        for metric, column in METRICS.items()
    }
    return metrics | _describe_scores(data, arm, weighted) | {"sha256": arm.hashes()}


def _describe_scores(data: MulanData, arm: Arm, weighted: bool) -> dict[str, Any]:
    stored = saturation(arm.test.astype(np.float32), k=data.k)
    description: dict[str, Any] = {
        "auc": mean_auc(arm.test, data.Y_test),
        "distinct": float(np.mean([_distinct(column) for column in arm.test.T])),
        "saturated_share": float((arm.test >= SATURATED).mean()),
        "stored_share": float(stored.share),
        "tied_rows": stored.tied_rows,
    }
    if weighted:
        shift = realized_shift(arm.test, np.clip(data.prevalence, 1e-9, 1 - 1e-9))
        intended = np.log(arm.weights)
        readable = shift.identified & (np.abs(intended) > 1e-6) & np.isfinite(shift.shift)
        ratio = shift.shift[readable] / intended[readable]
        description["n_identified"] = int(readable.sum())
        description["median_realized"] = float(np.median(ratio)) if ratio.size else None
    return description


def _distinct(column: NDArray[np.float64]) -> int:
    return np.unique(np.round(column, DECIMALS)).size


def score(scores: Any, data: MulanData) -> float:
    """MAP@K of scores on the test rows."""
    return float(average_precision_at_k(scores, data.Y_test, k=data.k))


def compare_rules(data: MulanData, arm: Arm) -> dict[str, Any]:
    """For each rule: what it chose, MAP@K on the test rows, and the paired difference to raw."""
    raw = _evaluate(arm.test, data)
    truth = data.Y_train[data.calibration]
    choices: dict[str, Any] = {}
    for rule in RULES:
        repair = PaperRepair(k=data.k, rule=rule, prior=data.prevalence).fit(arm.calibration, truth)
        choices[rule] = {
            "chosen": repair.chosen_,
            "out_of_fold": dict(zip(repair.table_.candidates, repair.table_.means, strict=True)),
            **_against(repair.fitted_.transform(arm.test), raw, data),
        }
    fixed = Isotonic(prior=data.prevalence).fit(arm.calibration, truth)
    choices["tau 0"] = {"chosen": "isotonic", **_against(fixed.transform(arm.test), raw, data)}
    return choices


def _evaluate(scores: NDArray[np.float64], data: MulanData) -> Evaluation:
    return evaluate(scores, data.Y_test, k=data.k, n_replicates=0)


def _against(scores: NDArray[np.float64], raw: Evaluation, data: MulanData) -> dict[str, float]:
    evaluation = _evaluate(scores, data)
    difference = map_gap(evaluation, raw, seed=0)  # as the cells on record were drawn
    return {
        "map": evaluation["map"].value,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
    }
