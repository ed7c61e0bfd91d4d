"""`Decision`: how many labels to show of each row, by the goal that matters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_replicates, check_share, check_whole, is_number
from oddslip.core.formatting import count_of
from oddslip.core.passes import run_passes
from oddslip.core.row_ids import need_ids
from oddslip.core.types import Bools, FilePath, Ints, JsonObject, LabelsLike, ScoresLike
from oddslip.decisions.fitted_decision import (
    FittedDecision,
    LabelThresholds,
    ids_beside,
    in_order,
    open_for_lists,
    read_places,
)
from oddslip.decisions.length_table import LengthTable, LengthTally
from oddslip.decisions.list_rule import Form, ListRule, group_names
from oddslip.decisions.lists import ListTotals
from oddslip.decisions.repaired_rows import RepairedRows
from oddslip.decisions.risk import RiskTally, control, rows_needed
from oddslip.decisions.threshold_counts import ThresholdCounts
from oddslip.decisions.thresholds import Aim, find_fitted, find_plug_in, shrink
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import check_choice
from oddslip.repairs.fingerprint import take_fingerprint
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.repairs.map_forms import CONSTANT
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import Source
from oddslip.sources.open import Nan, open_like

GUARANTEES = ("missed", "wrong")
THRESHOLD_GOALS = ("f1", "micro_f1", "precision", "recall", "cost")
GOALS = {
    "threshold": THRESHOLD_GOALS,
    "common_threshold": (*THRESHOLD_GOALS, *GUARANTEES),
    "row": ("f1", "precision", "recall", "cost", *GUARANTEES),
    "length": ("f1", "precision", "recall", "map", "ndcg", "hit_rate", *GUARANTEES),
}
NEEDS_TARGET = ("precision", "recall", *GUARANTEES)
FORMS: dict[str, Form] = {"common_threshold": "threshold", "row": "recall", "length": "length"}
MAX_NAMES = 5  # labels named in a warning


class Decision:
    """How many labels to show of each row: thresholds or list lengths, by the goal that matters.

    Parameters
    ----------
    repair : FittedRepair, Repair or calibrator
        Fitted; turns scores into probabilities.
    rule : {"threshold", "common_threshold", "row", "length"}
        A threshold of each label, one for all labels, a length of each row's list, or one length
        for all rows.
    goal : str
        "f1" is the mean F1 of labels (of "row" and "length": of rows), "micro_f1" that of all
        cells. "precision" and "recall" show as much, or as little, as reaches the target. "cost"
        is as low as possible; of "row", with a target, as few labels as cost no more. "missed" and
        "wrong" bound the expected share of a row's missed labels, or of wrong ones among those
        shown, by the target: a guarantee for new rows that are exchangeable with those of the fit.
        "length" takes "map", "ndcg" and "hit_rate" as well, and is best for the metric at K.
    target : float, optional
        Between 0 and 1, of "precision", "recall", "missed" and "wrong"; any cost, of "cost".
    costs : tuple of float
        Of a wrong label that is shown, and of a true one that is missed.
    k_max : int, optional
        Never show more labels; default: all.
    shrinkage : float
        Thresholds of labels are drawn to those by probabilities alone, which weigh as much as this
        many positives.
    n_replicates : int
        Of the bootstrap of "length".

    Attributes
    ----------
    fitted_ : FittedDecision
        What is applied and saved.
    table_, raw_table_ : LengthTable
        Metrics at every length, of "length" without a guarantee: of repaired and of raw scores.

    Examples
    --------
    >>> import numpy as np
    >>> from oddslip.calibrators import Isotonic
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((600, 3))
    >>> labels = rng.random((600, 3)) < scores**2
    >>> repair = Isotonic().fit(scores[:300], labels[:300])
    >>> decide = Decision(repair, goal="precision", target=0.7).fit(scores[300:], labels[300:])
    >>> decide.lists([[0.95, 0.2, 0.9]])
    array([[ 2,  0, -1]], dtype=int32)
    """

    def __init__(
        self,
        repair: Any,
        rule: str = "threshold",
        *,
        goal: str = "f1",
        target: float | None = None,
        costs: tuple[float, float] = (1.0, 1.0),
        k_max: int | None = None,
        shrinkage: float = 10.0,
        n_replicates: int = 500,
    ) -> None:
        self.repair, self.rule, self.goal, self.target = repair, rule, goal, target
        self.costs, self.k_max, self.shrinkage = costs, k_max, shrinkage
        self.n_replicates = n_replicates

    def fit(
        self,
        scores: ScoresLike,
        labels: LabelsLike = None,
        *,
        groups: Any = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> Self:
        """Fit on rows that the repair was not fitted on.

        Parameters
        ----------
        scores, labels
            In any form `oddslip.evaluate` takes. Without labels thresholds are by probabilities
            alone; a guarantee and the best length need them.
        groups : array-like of shape (n_rows,), optional
            Group of each row: the guarantee then holds in each.
        exclude, nan
            Cells to ignore, as in `oddslip.rank`.
        threads : int, optional
            Threads to use; default: all available cores.

        Returns
        -------
        Decision
            This decision.
        """
        repair = getattr(self.repair, "fitted_", self.repair)
        self._check(repair)
        by_group = groups is not None
        source, order = open_for_lists(repair, scores, labels, exclude, nan, threads, by_group)
        if groups is not None and self.goal not in GUARANTEES:
            raise InvalidInput(
                f"groups go with the goals missed and wrong, got goal={self.goal!r}."
            )
        k_max = source.n_labels if self.k_max is None else self.k_max
        k_max = check_whole("k_max", k_max, 1, source.n_labels)
        if source.has_labels:
            _warn_of_calibration_rows(repair, source, order)
        maps = repair._maps(order)
        constant = repair.record.dead if order is None else repair.record.dead[order]
        constant = constant & (maps.code == CONSTANT)
        rule, summary, table = self._fit(maps, source, k_max, groups, constant)
        if order is not None:  # back to the labels of the repair
            back = np.argsort(order)
            rule, table = in_order(rule, back), None if table is None else table.take(back)
        self.layout_ = getattr(source, "layout", None)  # for tables to be listed
        self.fitted_ = FittedDecision(repair, rule, self.goal, self.target, summary, table)
        return self

    def _fit(
        self, maps: LabelMaps, source: Source, k_max: int, groups: Any, constant: Bools
    ) -> tuple[ListRule, JsonObject, LabelThresholds | None]:
        """The rule, what its lists reach, and thresholds, in the order of the source's labels."""
        table: LabelThresholds | None = None
        notes: JsonObject = {}
        if self.goal in GUARANTEES:
            rule, notes = self._control(maps, source, k_max, groups)
        elif self.rule == "length":
            rule = self._best_length(maps, source, k_max)
        elif self.rule == "row":
            level = np.array([float(self.target or 0.0)])
            rule = ListRule(self.goal, level, k_max, costs=self.costs)  # type: ignore[arg-type]
        else:
            table, notes = self._thresholds(maps, source, constant)
            rule = ListRule("threshold", np.zeros(1), k_max, table.used, costs=self.costs)
        places = read_places(rule, groups, source)
        totals = ListTotals(maps, rule, places, source.has_labels)
        return rule, source.run(totals, what="making lists").result() | notes, table

    def _thresholds(
        self, maps: LabelMaps, source: Source, constant: Bools
    ) -> tuple[LabelThresholds, JsonObject]:
        rows: Any = RepairedRows(source, maps)
        aim = Aim(self.goal, self.target, self.costs, self.rule == "common_threshold")  # type: ignore[arg-type]
        n_labels, labelled = source.n_labels, source.has_labels
        searches = [find_plug_in(n_labels, aim)] + ([find_fitted(rows, aim)] if labelled else [])
        answers = run_passes(rows, searches, what="choosing thresholds")
        plug_in, fitted = answers[0], answers[1] if labelled else np.full(n_labels, np.nan)
        n_positives = source.label_counts() if labelled else np.zeros(n_labels, np.int64)
        weights = np.full(n_labels, n_positives.sum()) if aim.common else n_positives
        used = shrink(fitted, plug_in, weights, self.shrinkage)
        # The best expected F1 of equal probabilities shows them all: a label that was never true
        # would be in every list.
        hidden = constant & (n_positives == 0) & (self.goal == "f1") & (not aim.common)
        used[hidden] = np.inf
        table = LabelThresholds(plug_in, fitted, used, n_positives)
        never_true = {"n_never_true": int(hidden.sum())}
        return table, self._compare(rows, aim, table, labelled) | never_true

    def _compare(
        self, rows: RepairedRows, aim: Aim, table: LabelThresholds, labelled: bool
    ) -> JsonObject:
        """What each kind of thresholds reaches, and the labels that miss the target."""
        kinds = {"plug_in": table.plug_in, "used": table.used}
        if labelled:
            fitted = np.where(np.isnan(table.fitted), table.plug_in, table.fitted)
            kinds["fitted"] = fitted
        stacked = np.stack(list(kinds.values()))
        counts: ThresholdCounts = rows.run(ThresholdCounts(stacked, labelled))
        pooled = (aim.common and aim.goal != "f1") or aim.goal in ("micro_f1", "cost")
        reached: JsonObject = {}
        for side, each in (("expected", counts.expected()), ("observed", counts.observed())):
            if side == "observed" and not labelled:
                continue
            values = aim.measure(each.pooled() if pooled else each)
            for kind, value in zip(kinds, values, strict=True):
                value = value[~np.isnan(value)]  # without what nothing is shown of, or true
                if value.size:  # a sum in any order of labels
                    reached.setdefault(kind, {})[side] = math.fsum(value) / value.size
        hidden = np.flatnonzero(~np.isfinite(table.used))
        names = rows.source.label_names
        unmet = [str(at) if names is None else names[at] for at in hidden.tolist()]
        if self.target is None:
            unmet = []
        if unmet:
            _warn_of_unmet("labels", unmet, f"{self.goal} {self.target:g}")
        n_shrunk = int((table.n_positives < self.shrinkage).sum()) if labelled else 0
        return {"reached": reached, "unmet": unmet, "n_few_positives": n_shrunk}

    def _control(
        self, maps: LabelMaps, source: Source, k_max: int, groups: Any
    ) -> tuple[ListRule, JsonObject]:
        """Conformal risk control, by group."""
        self._need_labels(source, "give a guarantee")
        names, places = None, None
        if groups is not None:
            of_rows = group_names(groups, source.n_rows, ids_beside(groups, source))
            distinct, places = np.unique(of_rows, return_inverse=True)
            names = tuple(distinct.tolist())
        n_groups = 1 if names is None else len(names)
        loss: Any = self.goal
        family: Any = self.rule
        tally = RiskTally(maps, loss, family, k_max, n_groups, places)
        losses = source.run(tally, what="controlling risk").result()
        alpha = float(self.target or 0)
        controls = [control(losses, group, alpha, loss, family) for group in range(n_groups)]
        unmet = [
            f"k_max={k_max}" if names is None else names[group]
            for group, each in enumerate(controls)
            if not each.holds
        ]
        few = [at for at, each in enumerate(controls) if each.n_rows < rows_needed(alpha)]
        if few:
            first_group = None if names is None else names[few[0]]
            _warn_of_few_rows(self.goal, alpha, controls[few[0]].n_rows, first_group)
        elif unmet:
            _warn_of_unmet("lists of", unmet, f"{self.goal} {alpha:g}")
        form = FORMS[self.rule]
        thresholds = np.zeros(source.n_labels) if form == "threshold" else None
        levels = np.array([each.level for each in controls])
        if form == "length":
            levels = np.minimum(levels, k_max)
        guarantee = [
            {"group": None if names is None else names[at], **each._asdict()}
            for at, each in enumerate(controls)
        ]
        rule = ListRule(form, levels, k_max, thresholds, names)
        return rule, {"guarantee": guarantee, "unmet": unmet}

    def _best_length(self, maps: LabelMaps, source: Source, k_max: int) -> ListRule:
        self._need_labels(source, "compare lengths")
        if not source.label_counts().any():
            raise InvalidInput("at least one row must have a true label, got none.")
        self.table_ = compare_lengths(source, maps, k_max, self.n_replicates)
        self.raw_table_ = compare_lengths(source, None, k_max, self.n_replicates)
        best = self.table_.best(self.goal)  # type: ignore[arg-type]
        return ListRule("length", np.array([float(best)]), k_max)

    def _need_labels(self, source: Source, purpose: str) -> None:
        if not source.has_labels:
            raise InvalidInput(
                f"labels are needed to {purpose}, got scores alone. Pass labels as well."
            )

    def _check(self, repair: Any) -> None:
        if not isinstance(repair, FittedRepair):
            raise InvalidInput(f"repair must be a fitted repair, got {type(repair).__name__}.")
        check_choice("rule", self.rule, GOALS)
        rules = [rule for rule, goals in GOALS.items() if self.goal in goals]
        if rules and self.rule not in rules:
            others = " or ".join(f'"{rule}"' for rule in rules)
            raise InvalidInput(f"goal {self.goal!r} needs rule {others}, got rule={self.rule!r}.")
        check_choice("goal", self.goal, GOALS[self.rule])
        needs = self.goal in NEEDS_TARGET and (self.rule != "length" or self.goal in GUARANTEES)
        if needs:
            check_share("target", self.target)
        elif self.target is not None and (self.rule, self.goal) != ("row", "cost"):
            raise InvalidInput(f"target must be left out with goal={self.goal!r}.")
        elif self.target is not None and not (is_number(self.target) and self.target >= 0):
            raise InvalidInput(f"target must be a cost of at least 0, got {self.target!r:.60}.")
        costs = self.costs
        right = isinstance(costs, tuple | list) and len(costs) == 2 and all(map(is_number, costs))
        if not right or not all(0 < cost < np.inf for cost in costs):
            raise InvalidInput(f"costs must be two positive numbers, got {costs!r:.60}.")
        if not is_number(self.shrinkage) or not 0 <= self.shrinkage < np.inf:
            raise InvalidInput(f"shrinkage must be at least 0, got {self.shrinkage!r:.60}.")
        check_replicates(self.n_replicates)

    def lists(self, scores: ScoresLike, **options: Any) -> Any:
        """The labels to show of each row, best first.

        Parameters
        ----------
        scores, **options
            As in `FittedDecision.lists`.

        Returns
        -------
        ndarray of int32, shape (n_rows, k_max)
            Label indices; -1 in the slots after a list. A Spark table is read by the columns of
            the fit.
        """
        fitted = self._fitted()
        names = fitted.repair.label_names
        scores = open_like(scores, self.layout_, kind=fitted.repair.maps.kind, label_names=names)
        return fitted.lists(scores, **options)

    def save(self, path: FilePath) -> None:
        """Save the repair and the rule to one file, which `oddslip.load_decision` reads."""
        self._fitted().save(path)

    def plot(self) -> Any:
        """Precision and recall by the length of lists, raw and repaired; of ``rule="length"``.

        Returns
        -------
        matplotlib.figure.Figure
        """
        fitted = self._fitted()
        if not hasattr(self, "table_"):
            raise InvalidInput(
                f"plot() compares lengths, got rule={self.rule!r} for {self.goal}. "
                'Fit rule="length" for f1, map, ndcg or hit_rate.'
            )
        from oddslip.reports.figures.curves import draw_lengths

        return draw_lengths(self.raw_table_, self.table_, int(fitted.rule.levels[0]))

    def write_page(self, path: FilePath) -> None:
        """Write a report: one HTML file, no network needed.

        Parameters
        ----------
        path : str or path
            For a `FittedDecision` use `oddslip.reports.html.decision.write_page`.
        """
        from oddslip.reports.html.decision import write_page

        self._fitted()
        write_page(self, path)

    def _fitted(self) -> FittedDecision:
        if not hasattr(self, "fitted_"):
            raise InvalidInput("this Decision is not fitted yet. Call fit first.")
        return self.fitted_

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target={self.target:g}"
        return f"Decision({self.rule!r}, goal={self.goal!r}{target})"


def compare_lengths(
    source: Source, maps: LabelMaps | None, k_max: int, n_replicates: int
) -> LengthTable:
    """Metrics of lists of 1 to ``k_max`` labels.

    Maps are in the order of the source's labels; None ranks raw scores.
    """
    if n_replicates and not source.ordered:
        need_ids(source.has_ids, "drawing rows")
    tally = LengthTally(maps, k_max, n_replicates, DEFAULT_SEED)
    return source.run(tally, what="comparing lengths").table()


def _warn_of_calibration_rows(repair: FittedRepair, source: Source, order: Ints | None) -> None:
    """Warn if the rows look like those that the repair was fitted on."""
    if repair.fingerprint is None or repair.fingerprint.n_rows != source.n_rows:
        return
    now, before = take_fingerprint(source), repair.fingerprint.take(order)
    if np.array_equal(now.counts, before.counts):
        warnings.warn(
            "the scores are those that the repair was fitted on, whose probabilities are too good. "
            "Fit the decision on other rows.",
            UserWarning,
            stacklevel=3,
        )


def _warn_of_few_rows(goal: str, alpha: float, n_rows: int, group: str | None) -> None:
    rows = count_of(n_rows, "row") + (" with a true label" if goal == "missed" else "")
    of_group = "" if group is None else f" of group {group!r:.60}"
    shown = "lists are as long as they can be" if goal == "missed" else "no label is shown"
    warnings.warn(
        f"{rows}{of_group} cannot guarantee {goal} {alpha:g}, which takes "
        f"{rows_needed(alpha):,}: {shown}.",
        UserWarning,
        stacklevel=5,
    )


def _warn_of_unmet(what: str, names: Sequence[str], goal: str) -> None:
    some = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    warnings.warn(f"{len(names):,} {what} cannot reach {goal}: {some}.", UserWarning, stacklevel=5)
