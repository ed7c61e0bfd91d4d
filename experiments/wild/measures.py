"""What is measured of one model in one repeat: lists, all cells, and what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oddslip
from experiments.mcgrad import calibrate_with_mcgrad
from experiments.row_aware.study import group_folds, timed
from experiments.wild.models import Rows
from oddslip.core.panel import Panel
from oddslip.metrics.reliability import reliability_at_k

K = 7
KS = (3, K)
N_REPEATS = 20
# Folds drawn by each protocol; of two halves one fits and the other is measured.
PROTOCOLS = {"half": 2, "folds": 5, "rows": 2}
BY_ROW = "rows"  # rows are dealt without regard to their groups, as if they were independent
RULES = {
    "isotonic": "isotonic-0",
    "Platt": "platt",
    "temperature": "temperature",
    "paper": "paper",
    "auto": "auto",
}
PEERS = {"MCGrad": False, "MCGrad, row": True}  # whether it sees numbers of the row
UNWEIGHTED = "unweighted"

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Contender = Callable[[Rows, Bools, Bools], tuple[Floats, str]]


def repair_rows(rule: str, rows: Rows, fitting: Bools, measured: Bools) -> tuple[Floats, str]:
    """Probabilities of the measured rows by a repair of the others, and what was chosen."""
    repair = oddslip.Repair(k=K, rule=rule, weights=rows.weights, prior=rows.prior)
    repair.fit(Panel(rows.scores[fitting], rows.truth[fitting], row_ids=rows.groups[fitting]))
    return np.asarray(repair.transform(rows.scores[measured]), np.float64), repair.chosen_


def repair_with_peer(
    by_row: bool, rows: Rows, fitting: Bools, measured: Bools
) -> tuple[Floats, str]:
    """Probabilities of the measured rows by MCGrad."""
    scores, truth = rows.scores[fitting], rows.truth[fitting]
    return calibrate_with_mcgrad(scores, truth, rows.scores[measured], by_row=by_row), "MCGrad"


OURS: dict[str, Contender] = {name: partial(repair_rows, rule) for name, rule in RULES.items()}
THEIRS: dict[str, Contender] = {name: partial(repair_with_peer, row) for name, row in PEERS.items()}


def measure_repeat(
    rows: Rows,
    contenders: Mapping[str, Contender],
    protocol: str,
    repeat: int,
    timings: dict[str, float],
) -> dict[str, Any]:
    """Raw scores and every contender on the rows that a protocol measures in one repeat."""
    rows = ungroup(rows) if protocol == BY_ROW else rows
    folds = group_folds(rows.groups, repeat + 1, PROTOCOLS[protocol])[repeat]
    sides = range(folds.n_folds) if protocol == "folds" else (1,)
    measured = np.isin(folds.folds, list(sides))
    tables = {"raw": rows.scores} | (
        {} if rows.unweighted is None else {UNWEIGHTED: rows.unweighted}
    )
    chosen: dict[str, list[str]] = {}
    for name, contender in contenders.items():
        table = np.empty_like(rows.scores)
        with timed(timings, name):
            for side in sides:
                inside = folds.folds == side
                table[inside], choice = contender(rows, ~inside, inside)
                chosen.setdefault(name, []).append(choice)
        tables[name] = table
    truth, groups = rows.truth[measured], rows.groups[measured]
    values = {name: measure_table(table[measured], truth) for name, table in tables.items()}
    raw = row_values(rows.scores[measured], truth)
    evaluated = groups[truth.any(axis=1)]
    for name, table in tables.items():
        by_row = row_values(table[measured], truth)
        values[name]["gains"] = {
            metric: compare_groups(by_row[metric] - raw[metric], evaluated) for metric in raw
        }
    for name, choices in chosen.items():
        values[name]["chosen"] = choices
    return {"n_rows": int(measured.sum()), "n_groups": np.unique(groups).size, "values": values}


def ungroup(rows: Rows) -> Rows:
    """The same rows, each a group of its own."""
    return rows._replace(groups=np.arange(len(rows.truth)))


def has_groups(rows: Rows) -> bool:
    """Whether several rows are of one artist or patient."""
    return np.unique(rows.groups).size < len(rows.groups)


def row_values(table: Floats, truth: Bools) -> dict[str, Floats]:
    """MAP at 3 and 7 and nDCG at 7 of every row with a true label."""
    first, second = (oddslip.evaluate(table, truth, k=k, n_replicates=0) for k in KS)
    return {
        f"map_{KS[0]}": first.per_row("map"),
        f"map_{K}": second.per_row("map"),
        f"ndcg_{K}": second.per_row("ndcg"),
    }


def measure_table(table: Floats, truth: Bools) -> dict[str, Any]:
    """Means of `row_values`, micro PR-AUC, and whether what is shown is as sure as it says."""
    from sklearn.metrics import average_precision_score

    shown = reliability_at_k(table, truth, k=K)
    slots = shown.n_shown > 0
    share = float(np.average(shown.share[slots], weights=shown.n_shown[slots]))
    return {
        **{name: float(values.mean()) for name, values in row_values(table, truth).items()},
        "pr_auc": float(average_precision_score(truth.ravel(), table.ravel())),
        "shown": {"probability": share + shown.bias, "share": share, "ece": shown.ece},
    }


def compare_groups(differences: Floats, groups: NDArray[np.int64]) -> dict[str, float]:
    """Mean over rows, and its standard error where the rows of a group depend on each other.

    Examples
    --------
    >>> compare_groups(np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1]))
    {'difference': 0.5, 'standard_error': 0.5}
    """
    mean = float(differences.mean())
    sums = np.bincount(np.unique(groups, return_inverse=True)[1], differences - mean)
    n = sums.size
    error = np.sqrt((sums**2).sum() * n / max(1, n - 1)) / differences.size
    return {"difference": mean, "standard_error": float(error)}


def diagnose_rows(rows: Rows) -> dict[str, Any]:
    """What `oddslip.diagnose` says of the raw scores, and what the publishers' metrics are."""
    values = {
        "n_rows": len(rows.truth),
        "n_labels": rows.truth.shape[1],
        "n_groups": np.unique(rows.groups).size,
        "raw": measure_table(rows.scores, rows.truth),
        "by_group": _diagnose(rows),
    }
    return values | ({BY_ROW: _diagnose(ungroup(rows))} if has_groups(rows) else {})


def _diagnose(rows: Rows) -> dict[str, Any]:
    panel = Panel(rows.scores, rows.truth, row_ids=rows.groups)
    diagnosis = oddslip.diagnose(panel, k=K, weights=rows.weights, prior=rows.prior)
    return {
        "verdict": diagnosis.verdict.code,
        "sentence": diagnosis.verdict.sentence,
        "findings": [finding.code for finding in diagnosis.findings],
    }
