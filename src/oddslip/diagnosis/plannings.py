"""`plan`: from counts, weights and training parameters to what they will do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.diagnosis.advices import recommend
from oddslip.diagnosis.ladders import estimate_ladder
from oddslip.diagnosis.plans import Plan, WhatIfLoss
from oddslip.diagnosis.row_sources import LabelledSource
from oddslip.errors import InvalidInput
from oddslip.labels import Labels, Positives, as_labels
from oddslip.metrics.at_k import metric_values
from oddslip.metrics.evaluations import Estimate
from oddslip.metrics.rankings import Rankings, rank
from oddslip.panels import Kind, Panel, check_k, check_names
from oddslip.shifts import (
    largest_unsaturating_cap,
    leaf_saturation_weight,
    leaf_value,
    over_correction,
    smallest_admitting_cap,
    step_budget,
    unrealizable,
    what_if,
)
from oddslip.shifts.thresholds import SATURATED_PROBABILITY
from oddslip.sources import Source, open_source
from oddslip.sources.opening import is_path, open_labels
from oddslip.tallies import available_threads
from oddslip.weights import balance_ratios, resolve_weights

ROWS_IN_LEAF = 20  # LightGBM's min_data_in_leaf unless set


def plan(
    labels: Any = None,
    *,
    counts: Any = None,
    n_rows: int | None = None,
    rounds: int,
    learning_rate: float,
    max_delta_step: float = 0,
    weights: Any = "balanced",
    unweighted: Any = None,
    k: int = 7,
    kind: Kind | None = None,
    rows_in_leaf: int = ROWS_IN_LEAF,
    label_names: Sequence[str] | None = None,
    n_replicates: int = 2000,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Plan:
    """Say what a weight will do, before training.

    Parameters
    ----------
    labels : optional
        True labels of the training rows, in any form `oddslip.evaluate` takes.
    counts, n_rows : optional
        Or the positives of each label, and the number of rows.
    rounds, learning_rate, max_delta_step
        Of the booster; a cap of 0 means none.
    weights : str, number or array-like of shape (n_labels,)
        "balanced" is r_j = negatives / positives; "sqrt" its square root; "10x" ten times it, or
        another multiple; "common" one weight for all labels, negatives over positives of all
        cells; "none" is 1. A number is common to all labels.
    unweighted : optional
        Scores of an unweighted model: of the rows of ``labels``, or a panel or (scores, labels)
        of other rows. Better not of rows the model was fitted on.
    k : int
        Slots per row, for the what-if loss.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    rows_in_leaf : int
        Fewest rows of a leaf.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    n_replicates : int
        Bootstrap replicates of the what-if loss; 0 for none.
    seed : int
        Same seed, same intervals.
    threads : int, optional
        Threads to use; all cores available unless told.

    Examples
    --------
    >>> found = plan(counts=[500, 10], n_rows=1000, rounds=60, learning_rate=0.05)
    >>> found.intended.round(2).tolist(), round(found.admitting_cap, 2)
    ([0.0, 4.6], 1.53)
    >>> plan(
    ...     counts=[500, 10], n_rows=1000, rounds=60, learning_rate=0.05, max_delta_step=0.5
    ... ).unrealizable.tolist()
    [False, True]
    """
    available_threads(threads)  # refused even where nothing is ranked
    truth, n_positives, total = _count(labels, counts, n_rows)
    n_labels = n_positives.size
    names = check_names(label_names, n_labels) or tuple(str(j) for j in range(n_labels))
    weight = resolve_weights(weights, n_positives, total, label_names=names)
    if isinstance(rows_in_leaf, bool) or rows_in_leaf < 1:
        raise InvalidInput(f"rows_in_leaf must be at least 1, got rows_in_leaf={rows_in_leaf}.")
    budget = step_budget(rounds, learning_rate, max_delta_step)
    prior = n_positives / total
    eps = 1 - SATURATED_PROBABILITY
    found = Plan(
        recommendation="",
        label_names=names,
        n_rows=total,
        n_positives=n_positives,
        prior=prior,
        weights=weight,
        intended=np.log(weight),
        rounds=rounds,
        learning_rate=learning_rate,
        max_delta_step=float(max_delta_step or 0),
        budget=budget,
        unrealizable=unrealizable(weight, budget),
        over_correction=over_correction(weight, budget),
        admitting_cap=smallest_admitting_cap(weight, rounds, learning_rate),
        unsaturating_cap=largest_unsaturating_cap(prior, rounds, learning_rate),
        rows_in_leaf=int(rows_in_leaf),
        leaf_value=leaf_value(1, rows_in_leaf - 1, weight),
        leaf_ratio=weight / leaf_saturation_weight(1, 1, eps),
        leaf_saturates=weight >= leaf_saturation_weight(1, rows_in_leaf - 1, eps),
        k=k,
        what_if=_what_if(unweighted, truth, weight, k, kind, n_replicates, seed, threads),
    )
    return recommend(found)


def _count(
    labels: Any, counts: Any, n_rows: int | None
) -> tuple[Labels | None, NDArray[np.int64], int]:
    """True labels where given, positives per label, and rows."""
    if (labels is None) == (counts is None):
        raise InvalidInput("either labels or counts must be given, and not both.")
    if labels is None:
        if n_rows is None:
            raise InvalidInput("counts need the number of rows. Pass n_rows as well.")
        numbers = np.asarray(counts)
        if numbers.dtype.kind not in "iu" or n_rows < 1 or numbers.size == 0:
            raise InvalidInput(
                "counts must be whole numbers, one per label, and n_rows at least 1, "
                f"got dtype {numbers.dtype}, size {numbers.size} and n_rows={n_rows}."
            )
        balance_ratios(numbers, n_rows)  # refuses counts that are not between 0 and n_rows
        return None, numbers.astype(np.int64), int(n_rows)
    if n_rows is not None:
        raise InvalidInput("labels bring their number of rows; pass n_rows with counts alone.")
    if is_path(labels):
        labels = open_labels(Path(labels))
    shape = getattr(labels, "shape", None)
    if shape is not None and len(shape) == 2:
        width = int(shape[1])
    else:
        width = 1 + max((max(row, default=-1) for row in labels), default=-1)
    truth = as_labels(labels, width)
    positives = truth.positives(0, truth.shape[0])
    if 0 in truth.shape:
        raise InvalidInput(f"labels must hold a row and a label, got shape {truth.shape}.")
    return truth, np.bincount(positives.indices, minlength=width), truth.shape[0]


def _what_if(
    unweighted: Any,
    truth: Labels | None,
    weight: NDArray[np.float64],
    k: int,
    kind: Kind | None,
    n_replicates: int,
    seed: int,
    threads: int | None,
) -> WhatIfLoss | None:
    if unweighted is None:
        return None
    source = _open_unweighted(unweighted, truth, kind)
    k = check_k(k, source.n_labels)
    found = what_if(source, weight, k=k, threads=threads)
    if not source.has_labels:
        return WhatIfLoss(source.n_rows, found.mean_overlap, found.share_changed)
    truth_known = source.positives()
    if not truth_known.indices.size:
        raise InvalidInput("the rows of the unweighted scores must hold a true label, got none.")
    rankings = {"raw": rank(source, k=k, threads=threads), "what-if": found.ranking}
    values = {
        name: metric_values(Rankings.made(shown, truth_known, source.n_labels))
        for name, shown in rankings.items()
    }
    ladder = estimate_ladder(
        values, k=k, n_rows=source.n_rows, n_replicates=n_replicates, seed=seed, threads=threads
    )
    gain = ladder.gain("what-if")
    return WhatIfLoss(
        source.n_rows,
        found.mean_overlap,
        found.share_changed,
        ladder["raw"]["map"],
        ladder["what-if"]["map"],
        Estimate(-gain.value, -gain.high, -gain.low),
    )


def _open_unweighted(unweighted: Any, truth: Labels | None, kind: Kind | None) -> Source:
    if isinstance(unweighted, tuple) and len(unweighted) == 2:
        return open_source(*unweighted, kind=kind)
    own = isinstance(unweighted, Panel | Source)
    source = open_source(unweighted, kind=None if own else kind)
    if source.has_labels or truth is None:
        return source
    if (source.n_rows, source.n_labels) != truth.shape:
        raise InvalidInput(
            "unweighted scores must have the rows and labels of labels, "
            f"{truth.shape}, got {(source.n_rows, source.n_labels)}. "
            "Pass (scores, labels) for other rows."
        )
    positives: Positives = truth.positives(0, source.n_rows)
    return LabelledSource(source, positives)
