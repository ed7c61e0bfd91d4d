"""`plan`: what a weight will do, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_replicates, check_seed, check_whole, reject_masked
from oddslip.core.formatting import count_of, nat, score, signed, weight_text
from oddslip.core.labels import SparseLabels
from oddslip.core.panel import Kind, Panel, check_k, check_names, no_cells
from oddslip.core.results import as_frame, html_table, plain
from oddslip.core.row_ids import take_ids
from oddslip.core.threads import available_threads
from oddslip.core.types import Bools, Floats, Ints, JsonObject, LabelsLike, ScoresLike
from oddslip.core.weights import balance_ratios, resolve_weights, with_names
from oddslip.diagnosis.comparison import is_gain
from oddslip.diagnosis.ladder import ladder_of_sums
from oddslip.diagnosis.thresholds import COMMON_WEIGHT
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import metric_values
from oddslip.metrics.bootstrap import bootstrap_rows
from oddslip.metrics.evaluation import Estimate
from oddslip.metrics.ranking import Rankings, rank
from oddslip.shifts import (
    InversionBounds,
    inversion_bounds,
    largest_unsaturating_cap,
    leaf_saturation_weight,
    leaf_value,
    over_correction,
    smallest_admitting_cap,
    step_budget,
    unrealizable,
    what_if,
)
from oddslip.shifts.flood import FLOOD_THRESHOLD, flood
from oddslip.sources import Source
from oddslip.sources.arrays import ArraySource
from oddslip.sources.open import is_file_or_table, kind_for, open_labels, open_rows
from oddslip.sources.views import LabelledSource, align_columns, align_rows
from oddslip.tallies.logodds_histogram import SATURATED_PROBABILITY

ROWS_IN_LEAF = 20  # LightGBM's min_data_in_leaf unless set
NUM_LEAVES = 31  # and its num_leaves


@dataclass(frozen=True, slots=True, eq=False)
class WhatIfLoss:
    """What the weights would do to the top K of the unweighted scores, if fully realized.

    ``unweighted``, ``weighted`` and ``loss`` are MAP@K and need the true labels of the rows.
    """

    n_rows: int
    mean_overlap: float
    share_changed: float
    unweighted: Estimate | None = None
    weighted: Estimate | None = None
    loss: Estimate | None = None

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {
                "n_rows": self.n_rows,
                "mean_overlap": self.mean_overlap,
                "share_changed": self.share_changed,
                "unweighted": self.unweighted and self.unweighted.to_dict(),
                "weighted": self.weighted and self.weighted.to_dict(),
                "loss": self.loss and self.loss.to_dict(),
            }
        )


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What `plan` found. Start with ``recommendation``.

    Attributes
    ----------
    recommendation : str
        What to do, in a sentence or two.
    weights, intended : numpy.ndarray
        w_j and ln w_j, in nat.
    budget : float
        The largest shift the booster can realize, in nat; infinite without a cap.
    unrealizable : numpy.ndarray of bool
        Labels whose ln w_j is beyond the budget.
    over_correction : numpy.ndarray
        Nats by which the inversion would overshoot at least.
    admitting_cap : float
        The smallest cap (max_delta_step) that admits every intended shift.
    unsaturating_cap : float
        The largest cap that rules out saturated cells.
    leaf_value : numpy.ndarray
        Where a leaf of ``rows_in_leaf`` rows with a single positive is driven: near 1, leaves
        with one positive and leaves with many tie.
    leaf_ratio : numpy.ndarray
        Negatives per positive up to which a leaf is driven to a stored 1.0.
    inversion : InversionBounds
        Whether inverting by ln w_j can be exact, or keep the order of rows, under this cap.
    flood : float
        How much of the lists the first round hands to rare labels: docs/paper/boundary.md.
    what_if : WhatIfLoss or None
        Needs the scores of an unweighted model.
    """

    recommendation: str = field(init=False)
    label_names: tuple[str, ...]
    n_rows: int
    n_positives: Ints
    prior: Floats
    weights: Floats
    intended: Floats
    rounds: int
    learning_rate: float
    max_delta_step: float
    budget: float
    unrealizable: Bools
    over_correction: Floats
    admitting_cap: float
    unsaturating_cap: float
    rows_in_leaf: int
    leaf_value: Floats
    leaf_ratio: Floats
    leaf_saturates: Bools
    inversion: InversionBounds
    k: int
    flood: float
    what_if: WhatIfLoss | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "recommendation", recommend(self))

    @property
    def n_labels(self) -> int:
        """Labels that are planned for."""
        return len(self.label_names)

    @property
    def floods(self) -> bool:
        """Whether rare labels are expected to flood the lists, so that the ranking collapses."""
        return self.flood >= FLOOD_THRESHOLD

    @property
    def capped(self) -> bool:
        """Whether the leaf step has a cap."""
        return math.isfinite(self.budget)

    def label_columns(self) -> dict[str, Any]:
        """One value per label in each column."""
        return {
            "label": list(self.label_names),
            "n_positives": self.n_positives,
            "prior": self.prior,
            "weight": self.weights,
            "intended_shift": self.intended,
            "unrealizable": self.unrealizable,
            "over_correction": self.over_correction,
            "leaf_value": self.leaf_value,
            "leaf_ratio": self.leaf_ratio,
            "leaf_saturates": self.leaf_saturates,
        }

    def to_frame(self) -> Any:
        """A pandas frame with one line per label."""
        return as_frame(self.label_columns())

    def to_dict(self) -> JsonObject:
        """Built-in types only: what ``--json`` prints. An infinite budget or cap is null."""
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.plan/1",
                "recommendation": self.recommendation,
                "n_rows": self.n_rows,
                "n_labels": self.n_labels,
                "k": self.k,
                "rounds": self.rounds,
                "learning_rate": self.learning_rate,
                "max_delta_step": self.max_delta_step,
                "capped": self.capped,
                "budget": self.budget,
                "n_unrealizable": int(self.unrealizable.sum()),
                "smallest_admitting_cap": self.admitting_cap,
                "largest_unsaturating_cap": self.unsaturating_cap,
                "rows_in_leaf": self.rows_in_leaf,
                "n_leaf_saturates": int(self.leaf_saturates.sum()),
                "flood": self.flood,
                "floods": self.floods,
                "inversion": self.inversion.to_dict(),
                "what_if": self.what_if and self.what_if.to_dict(),
                "labels": self.label_columns(),
            }
        )

    def plot(self) -> Any:
        """A matplotlib figure: ln w of every label against the step budget.

        Examples
        --------
        >>> from oddslip import plan
        >>> early = plan(counts=[500, 10], n_rows=1000, rounds=60, learning_rate=0.05)
        >>> early.plot().axes[0].get_xlabel()
        'intended shift ln w, nat'
        """
        # When asked for, as in `Diagnosis.plot`: else reports import results, never the reverse.
        from oddslip.reports.figures.plan import draw_plan

        return draw_plan(self)

    def __repr__(self) -> str:
        return f"Plan({self.n_rows:,} rows x {self.n_labels:,} labels, {self.recommendation!r})"

    def __str__(self) -> str:
        """What `oddslip plan` prints."""
        from oddslip.reports.text import as_text, show_plan

        return as_text(show_plan(self))

    def _repr_html_(self) -> str:
        rows = [
            ["largest intended shift, nat", nat(float(np.abs(self.intended).max()))],
            ["step budget, nat", nat(self.budget) if self.capped else "no cap, no bound"],
            ["labels beyond the budget", f"{int(self.unrealizable.sum()):,}"],
            ["smallest cap that admits all", nat(self.admitting_cap)],
            ["largest cap without saturation", nat(self.unsaturating_cap)],
            ["flood", f"{self.flood:.2f} (rankers collapse from {FLOOD_THRESHOLD:g} on)"],
            ["inverting by ln w", self.inversion.sentence],
        ]
        return html_table(["", "value"], rows, self.recommendation)


# ----------------------------------------------------------------------------------------- the verb


def plan(
    labels: LabelsLike = None,
    *,
    counts: Any = None,
    n_rows: int | None = None,
    rounds: int,
    learning_rate: float,
    max_delta_step: float = 0,
    weights: Any = "balanced",
    unweighted: ScoresLike = None,
    k: int = 7,
    kind: Kind | None = None,
    rows_in_leaf: int = ROWS_IN_LEAF,
    num_leaves: int = NUM_LEAVES,
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
    rows_in_leaf, num_leaves : int
        Fewest rows of a leaf, and leaves of a tree.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    n_replicates : int
        Bootstrap replicates of the what-if loss; 0 for none.
    seed : int
        Same seed, same intervals.
    threads : int, optional
        Threads to use; all available cores by default.

    Examples
    --------
    >>> early = plan(counts=[500, 10], n_rows=1000, rounds=60, learning_rate=0.05)
    >>> early.intended.round(2).tolist(), round(early.admitting_cap, 2)
    ([0.0, 4.6], 1.53)
    >>> plan(
    ...     counts=[500, 10], n_rows=1000, rounds=60, learning_rate=0.05, max_delta_step=0.5
    ... ).unrealizable.tolist()
    [False, True]
    """
    available_threads(threads)  # refused even where nothing is ranked
    truth, n_positives, total = _count(labels, counts, n_rows, label_names)
    n_labels = n_positives.size
    own_names = check_names(label_names, n_labels) if truth is None else truth.label_names
    weight = resolve_weights(weights, n_positives, total, label_names=own_names)
    names = own_names or tuple(str(j) for j in range(n_labels))
    rows_in_leaf = check_whole("rows_in_leaf", rows_in_leaf, 1)
    num_leaves = check_whole("num_leaves", num_leaves, 2)
    seed, n_replicates = check_seed(seed), check_replicates(n_replicates)
    budget = step_budget(rounds, learning_rate, max_delta_step)
    prior = n_positives / total
    source = None
    if unweighted is not None:
        source = _open_unweighted(unweighted, truth, kind, threads)
    eps = 1 - SATURATED_PROBABILITY
    return Plan(
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
        rows_in_leaf=rows_in_leaf,
        leaf_value=leaf_value(1, rows_in_leaf - 1, weight),
        leaf_ratio=weight / leaf_saturation_weight(1, 1, eps),
        leaf_saturates=weight >= leaf_saturation_weight(1, rows_in_leaf - 1, eps),
        inversion=inversion_bounds(weight, budget),
        k=k,
        flood=flood(
            n_positives,
            total,
            weight,
            k=k,
            num_leaves=num_leaves,
            rows_in_leaf=rows_in_leaf,
            learning_rate=learning_rate,
            max_delta_step=float(max_delta_step or 0),
        ),
        what_if=None if source is None else _what_if(source, weight, k, n_replicates, seed),
    )


def _count(
    labels: LabelsLike, counts: Any, n_rows: int | None, label_names: Sequence[str] | None
) -> tuple[Source | None, Ints, int]:
    """Rows with their true labels where given, positives per label, and rows."""
    if (labels is None) == (counts is None):
        raise InvalidInput("either labels or counts must be given, and not both.")
    if labels is None:
        if n_rows is None:
            raise InvalidInput("counts need the number of rows. Pass n_rows as well.")
        n_rows = check_whole("n_rows", n_rows)
        numbers = np.asarray(reject_masked("counts", counts))
        if numbers.dtype.kind not in "iu" or n_rows < 1 or numbers.size == 0:
            raise InvalidInput(
                "counts must be whole numbers, one per label, and n_rows at least 1, "
                f"got dtype {numbers.dtype}, size {numbers.size} and n_rows={n_rows}."
            )
        balance_ratios(numbers, n_rows)  # refuses counts that are not between 0 and n_rows
        return None, numbers.astype(np.int64), int(n_rows)
    if n_rows is not None:
        raise InvalidInput("labels bring their number of rows; pass n_rows with counts alone.")
    if is_file_or_table(labels):
        labels = open_labels(labels)
    ids = labels.row_ids if isinstance(labels, SparseLabels) else take_ids(labels)[1]
    shape = getattr(labels, "shape", None)
    width = int(shape[1]) if shape is not None and len(shape) == 2 else _width(labels)
    shape = len(labels) if shape is None else int(shape[0]), width
    if 0 in shape:
        raise InvalidInput(f"labels must hold a row and a label, got shape {shape}.")
    truth = ArraySource(Panel(no_cells(shape), labels, label_names=label_names, row_ids=ids))
    return truth, truth.label_counts(), truth.n_rows


def _width(lists: Any) -> int:
    """Labels that lists of label indices speak of."""
    try:
        return int(1 + max((max(row, default=-1) for row in lists), default=-1))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"labels must be 0/1 cells or a list of label indices per row, got {lists!r:.60}."
        ) from error


def _what_if(source: Source, weight: Floats, k: int, n_replicates: int, seed: int) -> WhatIfLoss:
    """What the weights do to a ranking by unweighted scores."""
    k = check_k(k, source.n_labels)
    changed = what_if(source, with_names(weight, source.label_names), k=k)
    if not source.has_labels:
        return WhatIfLoss(source.n_rows, changed.mean_overlap, changed.share_changed)
    truth_known = source.positives()
    if not truth_known.indices.size:
        raise InvalidInput("the rows of the unweighted scores must hold a true label, got none.")
    rankings = {"raw": rank(source, k=k), "what-if": changed.ranking}
    values = {
        name: metric_values(Rankings.of(ranking, truth_known, source.n_labels))
        for name, ranking in rankings.items()
    }
    sums = bootstrap_rows(
        np.hstack([*values.values(), np.ones((len(values["raw"]), 1))]),
        source.row_keys()[truth_known.counts > 0],
        n_replicates=n_replicates,
        seed=seed,
        threads=source.threads,
    )
    ladder = ladder_of_sums(sums, {"raw": 0, "what-if": 1}, k=k, n_rows=source.n_rows, seed=seed)
    gain = ladder.gain("what-if")
    return WhatIfLoss(
        source.n_rows,
        changed.mean_overlap,
        changed.share_changed,
        ladder["raw"]["map"],
        ladder["what-if"]["map"],
        Estimate(-gain.value, -gain.high, -gain.low),
    )


def _open_unweighted(
    unweighted: ScoresLike, truth: Source | None, kind: Kind | None, threads: int | None
) -> Source:
    sides = "labels", "unweighted scores"
    if isinstance(unweighted, tuple) and len(unweighted) == 2:
        source = open_rows(*unweighted, kind=kind, threads=threads)
    else:
        source = open_rows(unweighted, kind=kind_for(unweighted, kind), threads=threads)
    if truth is None:
        return source
    if source.has_labels:
        return align_columns(truth, source, sides)
    if (source.n_rows, source.n_labels) != (truth.n_rows, truth.n_labels):
        raise InvalidInput(
            "unweighted scores must have the rows and labels of labels, "
            f"{(truth.n_rows, truth.n_labels)}, got {(source.n_rows, source.n_labels)}. "
            "Pass (scores, labels) for other rows."
        )
    source = align_columns(truth, align_rows(truth, source, sides), sides)
    return LabelledSource(source, truth.positives())


# ------------------------------------------------------------------------------- the recommendation

INVERSION_DOUBTED = (
    "by the paper's association, which is no law, inverting by ln w pays less there, so measure it "
    "before you rely on it"
)
CALIBRATE = "calibrate per label on held-out rows, with dead labels at their prior"


def recommend(plan: Plan) -> str:
    """What to do, in a sentence or two."""
    if plan.weights.max() > plan.weights.min() * COMMON_WEIGHT:
        return (
            f"Train without label-specific weights: {_tell_cost(plan)}.{_tell_flood(plan)} "
            f"If they must stay, {_advise_cap(plan)}."
        )
    weight = float(plan.weights[0])
    if abs(weight - 1) < COMMON_WEIGHT - 1:
        return "Train as planned: no label is weighted, so no order is changed."
    return (
        f"Train as planned: the weight {weight_text(weight)} is common to all labels, which "
        "changes no order within a row."
    )


def _tell_cost(plan: Plan) -> str:
    """What the weights would do to the order, by the what-if where there is one."""
    measured = plan.what_if
    if measured is None or measured.loss is None or measured.unweighted is None:
        ratio = weight_text(float(plan.weights.max() / plan.weights.min()))
        return f"these multiply the odds of one label against another by up to {ratio}"
    loss, level = measured.loss, measured.unweighted.value
    if is_gain(loss, level):
        return f"fully realized, these cost {score(loss.value)} of MAP@{plan.k} {score(level)}"
    return f"they buy nothing for the order (what-if MAP@{plan.k} {signed(-loss.value)})"


def _tell_flood(plan: Plan) -> str:
    """A warning where the ranking is expected to collapse."""
    if not plan.floods:
        return ""
    return (
        f" Expect rare labels to flood the top {plan.k}: flood is {plan.flood:.2f}. Of 88 rankers "
        f"in our study, 11 of the 16 with {FLOOD_THRESHOLD:g} or more collapsed, and none below it."
    )


def _advise_cap(plan: Plan) -> str:
    """Which cap on the leaf step to take, and what to do after training."""
    low, high, cap = nat(plan.admitting_cap), nat(plan.unsaturating_cap), nat(plan.max_delta_step)
    if plan.admitting_cap <= plan.unsaturating_cap:
        window = (
            f"a max_delta_step between {low} and {high} admits every shift without saturating any "
            "cell"
        )
        if plan.admitting_cap <= plan.max_delta_step <= plan.unsaturating_cap:
            return f"your cap of {cap} is right ({window}); then {CALIBRATE}"
        return f"{window}: set one, then {CALIBRATE}"
    if plan.capped and plan.max_delta_step <= plan.unsaturating_cap:
        labels = count_of(int(plan.unrealizable.sum()), "label")
        return (
            f"your cap of {cap} rules out saturated cells but leaves {labels} short of the shift: "
            f"{CALIBRATE}; {INVERSION_DOUBTED}"
        )
    return (
        f"no cap admits every shift (from {low}) and rules out saturation (up to {high}): "
        f"cap at {high} or below, then {CALIBRATE}; {INVERSION_DOUBTED}"
    )
