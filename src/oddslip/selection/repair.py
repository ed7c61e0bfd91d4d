"""`Repair`: the calibrator that chooses its calibrator, and the table of its choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

from oddslip import DEFAULT_SEED
from oddslip.calibrators.base import FitResult, ScoreTransformer
from oddslip.calibrators.policy import (
    DeadLabelPolicy,
    DeadPolicy,
    check_policy,
    count_positives,
)
from oddslip.core.panel import Kind
from oddslip.core.passes import run
from oddslip.core.results import as_frame, html_table, plain
from oddslip.core.row_ids import need_ids
from oddslip.core.types import Floats, JsonObject, LabelsLike, PerLabel, ScoresLike
from oddslip.core.weights import by_label, resolve_weights
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import Scoring, metric_name, resolve_propensities
from oddslip.metrics.evaluation import Estimate
from oddslip.repairs.fingerprint import Expected
from oddslip.selection.fold_fits import affordable
from oddslip.selection.folds import FoldAssignment, assign_folds
from oddslip.selection.row_aware import (
    MAX_LABELS,
    MAX_PAIRS,
    ROW_AWARE,
    StageTrial,
    can_try_stage,
    try_stage,
)
from oddslip.selection.rules import Choice, Rule, read_rule
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import Source
from oddslip.sources.open import Nan

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """One candidate: its out-of-fold mean, its paired difference to raw, and that one's error.

    ``n_repeats`` is how many times the folds were drawn for it.
    """

    candidate: str
    mean: float
    difference: Estimate
    standard_error: float
    n_repeats: int


@dataclass(frozen=True, eq=False)
class SelectionTable:
    """Out-of-fold means of all candidates, and their differences to raw with intervals.

    ``n_evaluated`` of ``n_rows`` rows have a true label. ``fits`` says how many fits were made
    out of fold, by what was fitted: candidates share them. Intervals are by the normal law; no
    choice rests on them.

    Attributes
    ----------
    rule, chosen, why : str
        The rule, what it chose, and why.
    candidates, means, standard_errors, repeats : tuple
        Each candidate's name, out-of-fold mean, standard error of its difference to raw, and
        repeats of the folds: one where it could not win after that.
    metric, k, n_folds, n_repeats, seed, level
        How candidates were compared.
    """

    rule: str
    chosen: str
    why: str
    metric: str
    k: int
    n_rows: int
    n_evaluated: int
    n_folds: int
    n_repeats: int
    seed: int
    level: float
    fits: dict[str, int]
    candidates: tuple[str, ...]
    means: tuple[float, ...]
    standard_errors: tuple[float, ...]
    repeats: tuple[int, ...]
    _gains: tuple[float, ...] = field(repr=False)

    @cached_property
    def lines(self) -> tuple[CandidateResult, ...]:
        """One line per candidate, in the order they were given."""
        return tuple(
            CandidateResult(
                candidate,
                self.means[at],
                Estimate(self._gains[at], *interval),
                self.standard_errors[at],
                self.repeats[at],
            )
            for at, (candidate, interval) in enumerate(
                zip(self.candidates, self._intervals(), strict=True)
            )
        )

    @property
    def note(self) -> str:
        """A sentence about the candidates tried in one repeat of several; empty without any."""
        if min(self.repeats) == self.n_repeats:
            return ""
        return f"* could not win after one of {self.n_repeats} draws of the folds: values of that."

    def mark(self, line: CandidateResult) -> str:
        """The candidate's name, with a star where the note is about it."""
        return line.candidate + " *" * (line.n_repeats < self.n_repeats)

    def _intervals(self) -> list[tuple[float, float]]:
        """Of every difference, by the normal law."""
        reach = NormalDist().inv_cdf((1 + self.level) / 2)
        return [
            (gain - reach * error, gain + reach * error)
            for gain, error in zip(self._gains, self.standard_errors, strict=True)
        ]

    def __repr__(self) -> str:
        metric = metric_name(self.metric, self.k)
        return f"SelectionTable({self.chosen} of {len(self.candidates)} candidates, by {metric})"

    def __str__(self) -> str:
        """What `oddslip fit` prints of it."""
        from oddslip.reports.text import as_text, show_selection

        return as_text(show_selection(self))

    def __getitem__(self, candidate: str) -> CandidateResult:
        return next(line for line in self.lines if line.candidate == candidate)

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        fields = (
            "rule",
            "chosen",
            "why",
            "metric",
            "k",
            "n_rows",
            "n_evaluated",
            "n_folds",
            "n_repeats",
            "seed",
            "level",
            "fits",
        )
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.selection/1",
                **{name: getattr(self, name) for name in fields},
                "candidates": [
                    {name: values[at] for name, values in self._columns().items()}
                    for at in range(len(self.lines))
                ],
            }
        )

    def to_frame(self) -> Any:
        """A pandas frame with one line per candidate."""
        return as_frame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "candidate": [line.candidate for line in self.lines],
            "mean": [line.mean for line in self.lines],
            "difference": [line.difference.value for line in self.lines],
            "low": [line.difference.low for line in self.lines],
            "high": [line.difference.high for line in self.lines],
            "standard_error": [line.standard_error for line in self.lines],
            "n_repeats": [line.n_repeats for line in self.lines],
            "chosen": [line.candidate == self.chosen for line in self.lines],
        }

    def _repr_html_(self) -> str:
        rows = [
            [
                self.mark(line) + (" (chosen)" if line.candidate == self.chosen else ""),
                f"{line.mean:.4f}",
                f"{line.difference.value:+.4f}",
                f"{line.difference.low:+.4f} to {line.difference.high:+.4f}",
            ]
            for line in self.lines
        ]
        header = [
            "candidate",
            f"out-of-fold {metric_name(self.metric, self.k)}",
            "less raw",
            f"{self.level:.0%} interval",
        ]
        return html_table(header, rows, f"{self.why} {self.note}".strip())


def make_table(rule: Rule, trials: Trials, choice: Choice) -> SelectionTable:
    """The table of a choice."""
    gains, errors = trials.gains()
    return SelectionTable(
        rule=rule.name,
        chosen=trials.candidates[choice.place].name,
        why=choice.why,
        metric=trials.metric,
        k=trials.k,
        n_rows=trials.fits.source.n_rows,
        n_evaluated=trials.n_evaluated,
        n_folds=trials.n_folds,
        n_repeats=trials.n_repeats,
        seed=trials.seed,
        level=LEVEL,
        fits=trials.n_fits,
        candidates=tuple(candidate.name for candidate in trials.candidates),
        means=tuple(trials.means.tolist()),
        standard_errors=tuple(errors.tolist()),
        repeats=tuple(trials.repeats_of(candidate) for candidate in trials.candidates),
        _gains=tuple(gains.tolist()),
    )


def add_stage_line(table: SelectionTable, stage: StageTrial, rule: Rule) -> SelectionTable:
    """The table with a line of the row-aware stage, which is chosen if it passes the guard."""
    gains, errors = stage.trials.gains()
    gain, error = stage.gain()
    metric = metric_name(table.metric, table.k)
    before = stage.trials.candidates[stage.place - 1].name
    evidence = (
        f"{gain:+.4f} in out-of-fold {metric} over {before}, "
        f"{gain / error if error else 0.0:.1f} standard errors; {rule.row_guard:g} are needed."
    )
    if rule.row_guard is not None and stage.passes(rule.row_guard):
        chosen, why = ROW_AWARE.name, f"row_aware gains by labels that occur together: {evidence}"
    else:
        chosen, why = table.chosen, f"{table.why} The row-aware stage is not used: {evidence}"
    return replace(
        table,
        chosen=chosen,
        why=why,
        candidates=(*table.candidates, ROW_AWARE.name),
        means=(*table.means, float(stage.trials.means[stage.place])),
        standard_errors=(*table.standard_errors, float(errors[stage.place])),
        repeats=(*table.repeats, stage.trials.n_repeats),
        _gains=(*table._gains, float(gains[stage.place])),
    )


class Repair(ScoreTransformer):
    """Choose a calibrator by the metric that is deployed, on the calibration rows, and fit it.

    Every candidate is fitted on all folds but one and ranks that one; the metric at K of the rows
    so ranked decides. What was chosen is then fitted on all rows.

    Parameters
    ----------
    k : int
        Slots per row.
    rule : str or Rule
        "paper": the best out-of-fold mean of isotonic with tau 0, 1, 2, 5, 10, pooled and raw.
        "auto": a wider choice and more folds, but raw is kept unless a candidate surely beats it,
        and hierarchical is taken unless the best surely beats that; see docs/repair.md.
        "row_aware": as "auto", and then a stage that adds what a row's other labels say, if it
        surely gains. Or the name of a candidate to take in any case: "raw", "hierarchical",
        "isotonic-5", ...
    metric : {"map", "precision", "recall", "ndcg", "psp", "hit_rate"}
        What candidates are compared by.
    propensities : array-like or "weights", optional
        For PSP; by default from the counts of the labels fitted on. "weights" are propensities
        1 / w, the metric that weighted training approximates.
    prior : array-like, optional
        Training prevalence of each label, for dead labels; else the smoothed prevalence of the
        rows fitted on.
    weights : number, array-like or str, optional
        The positive weight each label was trained with, as in `Inversion`. Candidates that need
        it are tried only where it is given.
    dead : {"prior", "identity", "exclude"}
        What a dead label gets.
    kind : {"probability", "margin"}
        What the scores are.
    n_folds : int
        The key of a row decides its fold: the hash of its id, or of its number without one. Rows
        with the same id share a fold.
    seed : int
        Same seed, same folds.
    keyed : bool
        Demand row ids, so that the choice does not depend on the order of the rows.
    foldable : bool
        Choose among repairs that `oddslip.fold` can write into a model. ``why_`` says what that
        costs.

    Attributes
    ----------
    chosen_ : str
        Name of the chosen candidate.
    why_ : str
        Why, in one sentence.
    table_ : SelectionTable
        Out-of-fold means of all candidates and their differences to raw, with intervals.
    fitted_ : FittedRepair
        What is applied and saved.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((400, 3)) < [0.5, 0.1, 0.02]
    >>> scores = np.where(truth, 0.6, 0.4) + 0.3 * rng.random((400, 3)) + [-0.3, 0.0, 0.1]
    >>> repair = Repair(k=1, rule="paper").fit(scores.clip(0, 1), truth)
    >>> repair.chosen_
    'isotonic-0'
    >>> repair.rank([[0.6, 0.8, 0.9]])
    array([[0]], dtype=int32)
    """

    def __init__(
        self,
        *,
        k: int,
        rule: str | Rule = "auto",
        metric: str = "map",
        propensities: PerLabel = None,
        prior: PerLabel = None,
        weights: PerLabel = None,
        dead: DeadPolicy = "prior",
        kind: Kind = "probability",
        n_folds: int = 5,
        seed: int = DEFAULT_SEED,
        keyed: bool = False,
        foldable: bool = False,
    ) -> None:
        self.k = k
        self.rule = rule
        self.metric = metric
        self.propensities = propensities
        self.prior = prior
        self.weights = weights
        self.dead = dead
        self.kind = kind
        self.n_folds = n_folds
        self.seed = seed
        self.keyed = keyed
        self.foldable = foldable

    def _fit_rows(self, source: Source) -> FitResult:
        check_policy(self.dead, 0)
        rule = read_rule(self.rule)
        candidates = rule.candidates_for(self.weights)
        if rule.fixed is None:
            candidates = affordable(candidates, source)
        names = source.label_names
        propensities = resolve_propensities(
            self.propensities, self._weights_of(source), source.n_labels, names
        )
        if self.keyed:
            need_ids(source.has_ids, "drawing folds")
        policy = DeadLabelPolicy(
            self.dead,
            prior=by_label("prior", self.prior, names),
            weights=by_label("weights", self.weights, names),
        )
        folds = self._assign_folds(source, rule.repeats_for(source.n_rows))
        scoring = Scoring(self.k, self.metric, propensities)
        computation = try_candidates(
            source,
            candidates,
            scoring,
            policy,
            folds=folds,
            seed=self.seed,
            screen=rule.foldable_contenders if self.foldable else rule.contenders,
        )
        trials = run(source, computation, what="trying candidates")
        choice = rule.choose_foldable(trials) if self.foldable else rule.choose(trials)
        chosen = trials.candidates[choice.place]
        stage = self._try_stage(rule, trials, choice.place, folds, scoring, policy)
        table = make_table(rule, trials, choice)
        fit = FitResult(
            *trials.fits.fit(chosen, None), Expected(self.metric, *trials.level(choice.place))
        )
        if stage is not None:
            table = add_stage_line(table, stage, rule)
            if table.chosen == ROW_AWARE.name:
                level = stage.trials.level(stage.place)
                fit = FitResult(stage.maps, stage.record, Expected(self.metric, *level))
        self.table_, self.chosen_, self.why_ = table, table.chosen, table.why
        return fit._replace(findings={"chosen": table.chosen, "why": table.why})

    def _try_stage(
        self,
        rule: Rule,
        trials: Trials,
        chosen: int,
        folds: Sequence[FoldAssignment],
        scoring: Scoring,
        policy: DeadLabelPolicy,
    ) -> StageTrial | None:
        """The row-aware stage behind the choice, where the rule has one."""
        if rule.row_guard is None:
            return None
        if not self.foldable and trials.fits.source.ordered and can_try_stage(trials):
            computation = try_stage(trials, chosen, folds, scoring, policy)
            stage = run(trials.fits.source, computation, what="trying the row-aware stage")
            if stage is not None:
                return stage
        raise InvalidInput(
            f"rule {rule.name!r} needs 3 to {MAX_LABELS:,} labels, at most {MAX_PAIRS:,} pairs of "
            "labels that are true together, rows on this machine, and foldable=False. "
            'Fit with rule="auto".'
        )

    def _assign_folds(self, source: Source, n_repeats: int) -> Sequence[FoldAssignment]:
        """Folds of the calibration rows, for each repeat."""
        return assign_folds(source, self.n_folds, seed=self.seed, n_repeats=n_repeats)

    def _weights_of(self, source: Source) -> Floats | None:
        """The weights by label, where propensities are made of them; as maps read them."""
        if self.weights is None or not isinstance(self.propensities, str):
            return None
        prior = by_label("prior", self.prior, source.label_names)
        if prior is None:
            totals = count_positives(source)
            counts = totals.positives, totals.total
        else:
            counts = prior, 1
        return resolve_weights(self.weights, *counts, label_names=source.label_names)

    def rank(
        self,
        scores: ScoresLike,
        *,
        k: int | None = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        prior_shift: Any = None,
        names: bool = False,
        threads: int | None = None,
    ) -> Any:
        """Top K after the repair.

        Parameters
        ----------
        scores, exclude, nan, prior_shift, names, threads
            As in `FittedRepair.rank`.
        k : int, optional
            Slots per row; default: the k of the choice.

        Returns
        -------
        ndarray of int32, shape (n_rows, k)
            As from `FittedRepair.rank`.
        """
        k = self.k if k is None else k
        options: dict[str, Any] = {"exclude": exclude, "nan": nan, "prior_shift": prior_shift}
        return super().rank(scores, k=k, **options, names=names, threads=threads)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "table_"):
            return str(super().__repr__(N_CHAR_MAX))
        choice = f"rule={self.table_.rule!r}, chosen={self.chosen_!r}"
        return f"{type(self).__name__}(k={self.k}, {choice}, {self.n_features_in_:,} labels)"

    def _repr_html_(self) -> str:
        """The table of the choice, once fitted."""
        if hasattr(self, "table_"):
            return self.table_._repr_html_()
        return str(super()._repr_html_())
