"""One cell of the matched-pair study: an arm under both protocols, its twin, what rules choose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.recommendation import Recommendation
from experiments.folds import PaperRepair
from experiments.pairs.arms import LEARNERS, SEED, Arm
from experiments.pairs.paper import is_papers_data
from experiments.pairs.protocols import (
    N_REPLICATES,
    PROTOCOLS,
    compare_repaired,
    mean_gap,
    open_rows,
)
from experiments.pairs.supplement.measures import (
    attribute_ties,
    cap_what_if,
    compare_again,
    count_dead,
    count_zeros,
    measure_direct,
    step_what_if,
    sweep_splits,
    tabulate_labels,
)
from experiments.pairs.training import ArmScores
from experiments.store import Stages, row_precisions, stage
from oddslip.core.weights import balance_ratios
from oddslip.diagnosis import Diagnosis, diagnose
from oddslip.metrics import mean_auc, rank
from oddslip.shifts import saturation

RULES = ("paper", "auto")
LABEL_TABLES = tuple(Arm(learner, "r") for learner in LEARNERS)  # of figure S1
HARM = 0.01  # below raw by more than this counts as harm, as in the paper's section 4
K = 7
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def describe_data(data: Recommendation) -> dict[str, Any]:
    """What the page says of the data before any model."""
    ratios = balance_ratios(data.positives, data.train.n_rows)
    about = {
        **data.describe(),
        "k": choose_k(data),
        "smallest_weight": float(ratios.min()),
        "largest_weight": float(ratios.max()),
        "n_labels_without_training_positive": int((data.positives == 0).sum()),
        "settings": data.settings,
        "generated": data.generated,
        "dead_frequency": count_dead(data.test.Y.tocsr()),
    }
    return about | {"papers_data": is_papers_data(data.name, about)}


def choose_k(data: Recommendation) -> int:
    """Slots per row: the paper's 7, or all labels where there are fewer."""
    return min(K, data.n_labels)


def measure_arm(
    data: Recommendation, arm: Arm, scores: ArmScores, twin: ArmScores | None
) -> dict[str, Any]:
    """The ladder of an arm under both protocols, and what its scores look like.

    ``twin`` is that of a weighted arm, None for an arm without a weight.
    """
    k = choose_k(data)
    stages: Stages = dict(scores.stages)
    with stage(stages, "diagnose"):
        stored = saturation(scores.test, k=k, distinct=False)
        cell: dict[str, Any] = {
            "k": k,
            "auc": mean_auc(scores.test, data.test.Y),
            "saturated_share": stored.share,
            "saturated_per_row": stored.share * data.n_labels,
            "full_rows_share": stored.full_rows / data.test.n_rows,
            "zero_share": count_zeros(scores.test),
            "weights": summarise(scores.weights),
            "sha256": scores.hashes(),
        }
        for protocol in PROTOCOLS:
            diagnosis = _diagnose(data, arm, scores, twin, protocol)
            cell[protocol] = summarise_diagnosis(diagnosis)
            if protocol == "deployment" and arm in LABEL_TABLES:
                cell["labels"] = tabulate_labels(data, diagnosis)
            if twin is not None:
                gap = compare_repaired(scores, twin, data, protocol, k)
                cell[protocol]["repaired_minus_twin"] = gap
        if twin is not None:
            cell["reordered"] = attribute_ties(scores, twin, data, k)
            cell["what_if"] = step_what_if(scores, twin, data, k)
            cell["capped_what_if"] = cap_what_if(arm, scores, twin, data, k)
            cell["direct"] = measure_direct(arm, scores, twin)
    return cell | {"stages": stages}


def measure_part(
    part: str, data: Recommendation, scores: ArmScores, again: ArmScores | None = None
) -> dict[str, Any]:
    """What fewer calibration rows cost ("splits"), what rules choose ("choices"), or "again".

    ``again`` are the scores of the same arm trained a second time.
    """
    stages: Stages = {}
    with stage(stages, "diagnose"):
        if again is not None:
            findings: Any = compare_again(scores, again, data, choose_k(data))
        else:
            measure = {"splits": sweep_splits, "choices": compare_choices}[part]
            findings = measure(scores, data, choose_k(data))
    return {"k": choose_k(data), part: findings, "stages": stages}


def _diagnose(
    data: Recommendation, arm: Arm, scores: ArmScores, twin: ArmScores | None, protocol: str
) -> Diagnosis:
    rows = open_rows(scores, data, protocol)
    return diagnose(
        rows.evaluated,
        k=choose_k(data),
        weights=scores.weights if arm.weighted else None,
        unweighted=None if twin is None else open_rows(twin, data, protocol).evaluated,
        calibration=rows.calibration,
        prior=scores.prior,
        seed=SEED,
        n_replicates=N_REPLICATES,
        **arm.budget(),
    )


def summarise_diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    """A diagnosis without its columns of one number per label; of those, quantiles."""
    summary = diagnosis.to_dict()
    for column in ("schema", "labels", "missing"):
        del summary[column]
    summary["findings"] = {each.code: each.sentence for each in diagnosis.findings}
    summary["ladder"]["rungs"] = {
        rung.pop("rung"): {
            "map": rung["metrics"].pop("map"),
            "minus_raw": rung["minus_raw"]["map"],
            **{name: estimate["value"] for name, estimate in rung["metrics"].items()},
        }
        for rung in summary["ladder"]["rungs"]
    }
    shifts, counts = diagnosis.shifts, diagnosis.calibration_counts
    alive = counts[counts > 0]
    summary["calibration_positives"] = {
        "n_dead": int((counts == 0).sum()),
        "n_dead_evaluated": int(((counts == 0) & (diagnosis.evaluation_counts == 0)).sum()),
        "min_alive": int(alive.min()) if alive.size else None,
        "median_alive": float(np.median(alive)) if alive.size else None,
    }
    readable = shifts.identified
    quantiles = {"realized": summarise(shifts.realized[readable])}
    if shifts.intended is not None:
        both = readable & shifts.weighted
        quantiles["ratio"] = summarise(shifts.ratio[both])
        # What the inversion takes away beyond what the learner had added.
        quantiles["over_inverted"] = summarise((shifts.intended - shifts.realized)[both])
    if shifts.direct is not None:
        quantiles["direct"] = summarise(shifts.direct[np.isfinite(shifts.direct)])
    summary["label_quantiles"] = quantiles
    return summary


def summarise(values: NDArray[np.float64]) -> dict[str, float] | None:
    """Quantiles by name; None of nothing.

    Examples
    --------
    >>> summarise(np.array([1.0, 3.0]))["0.5"]
    2.0
    """
    if not values.size:
        return None
    quantiles = np.quantile(values, QUANTILES)
    return {f"{q:g}": float(value) for q, value in zip(QUANTILES, quantiles, strict=True)}


def rung_values(cell: Any, protocol: str) -> dict[str, float]:
    """MAP@K of the rungs of a cell's ladder by name."""
    rungs = cell[protocol]["ladder"]["rungs"]
    return {name: rung["map"]["value"] for name, rung in rungs.items()}


def compare_choices(scores: ArmScores, data: Recommendation, k: int) -> dict[str, Any]:
    """For each rule: its choice, MAP@K, and the paired difference to raw; deployment protocol."""
    rows = open_rows(scores, data, "deployment")
    truth = rows.evaluated.positives()
    raw = row_precisions(rank(rows.evaluated, k=k), truth, data.n_labels)
    choices: dict[str, Any] = {"raw": float(raw.mean())}
    for rule in RULES:
        repair = PaperRepair(k=k, rule=rule, prior=scores.prior).fit(rows.calibration)
        values = row_precisions(repair.rank(rows.evaluated), truth, data.n_labels)
        choices[rule] = {
            "chosen": repair.chosen_,
            "map": float(values.mean()),
            "difference": mean_gap(values - raw),
        }
    return choices
