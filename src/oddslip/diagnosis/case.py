"""The rows a diagnosis reads, and all that is known of an arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from oddslip.calibrators.policy import DeadLabelPolicy, find_prior
from oddslip.core.arguments import check_seed
from oddslip.core.panel import Panel, check_k
from oddslip.core.row_ids import UnorderedNames, is_frame, is_numbering
from oddslip.core.types import Floats, Ints, LabelsLike, PerLabel, ScoresLike
from oddslip.core.weights import by_label, named_values, resolve_weights
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import Scoring, resolve_propensities
from oddslip.shifts import step_budget
from oddslip.shifts.twin import open_twin
from oddslip.sources import Source
from oddslip.sources.open import Nan, is_file_or_table, open_rows
from oddslip.sources.views import LabelledSource, TwinnedSource, align_columns

Protocol = Literal["deployment", "cross-fitted"]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One arm on the rows it is evaluated on, with whatever else is known of it.

    Under the cross-fitted protocol ``calibration`` is the arm itself: maps are fitted on all folds
    but one and rank that one. ``prior`` is the training prevalence where given, else the smoothed
    calibration prevalence.
    Panels of ``paired`` are those of the arm, and bring the twin where there is one.
    ``budget`` is None where the training parameters are not known. ``scoring`` is what rungs are
    compared by.
    """

    arm: Source
    twin: Source | None
    paired: Source
    calibration: Source
    protocol: Protocol
    scoring: Scoring
    weights: Floats | None
    prior: Floats
    prior_source: str
    calibration_counts: Ints
    evaluation_counts: Ints
    budget: float | None
    seed: int

    @property
    def crossed(self) -> bool:
        """Whether the evaluated rows calibrate one another, fold by fold."""
        return self.protocol == "cross-fitted"

    @property
    def policy(self) -> DeadLabelPolicy:
        """What is known of the labels, for maps of them."""
        return DeadLabelPolicy(prior=self.prior if self.prior_given else None, weights=self.weights)

    @property
    def prior_given(self) -> bool:
        """Whether the training prevalence was given."""
        return self.prior_source == "given"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the labels, their numbers where they have none."""
        return self.arm.label_names or tuple(str(label) for label in range(self.arm.n_labels))


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What is known of how the arm was trained: see `oddslip.diagnose`."""

    weights: PerLabel = None
    prior: PerLabel = None
    rounds: int | None = None
    learning_rate: float | None = None
    max_delta_step: float | None = None

    def weights_of(self, arm: Source, counts: Ints, prior: Floats | None) -> Floats | None:
        """Weights by name are ratios of the training rows where their prevalence was given."""
        if self.weights is None:
            return None
        rows = (counts, arm.totals()) if prior is None else (prior, 1)
        return resolve_weights(self.weights, *rows, label_names=arm.label_names)

    def budget(self) -> float | None:
        """The step budget, None where nothing is known of it."""
        parts = self.rounds is not None, self.learning_rate is not None
        if self.rounds is None or self.learning_rate is None:
            if any(parts) or self.max_delta_step is not None:
                raise InvalidInput(
                    "the step budget needs both rounds and learning_rate, "
                    f"got rounds={self.rounds}, learning_rate={self.learning_rate}."
                )
            return None
        return step_budget(self.rounds, self.learning_rate, self.max_delta_step)


@dataclass(frozen=True, slots=True, eq=False)
class OtherScores:
    """The twin's scores and the calibration rows, as `oddslip.diagnose` takes them."""

    unweighted: ScoresLike = None
    calibration: Any = None
    exclude: LabelsLike = None
    nan: Nan = "refuse"


def open_case(
    whole: Source, scoring: Scoring, training: Training, others: OtherScores, *, seed: int
) -> Case:
    """Everything that `diagnose` needs of rows with labels. Nothing but labels is read yet.

    Propensities may still be in the form that users give them.
    """
    names, calibration, prior = whole.label_names, others.calibration, training.prior
    for what, numbers in (("weights", training.weights), ("prior", prior)):
        _check_orientation("scores", whole, tuple(named_values(what, numbers) or ()), what)
    k, seed = check_k(scoring.k, whole.n_labels), check_seed(seed)
    if calibration is None and whole.n_rows < 2:
        raise InvalidInput(
            "at least 2 rows are needed to calibrate on some and evaluate others, got 1. "
            "Pass calibration=(scores, labels)."
        )
    arm, twin, paired = _pair(whole, others)
    held_out = arm if calibration is None else _open_calibration(calibration, whole, others.nan)
    evaluation_counts = arm.label_counts()
    if not evaluation_counts.any():
        raise InvalidInput(
            f"at least one evaluated row must have a true label, got none in {arm.n_rows:,} rows."
        )
    calibration_counts = held_out.label_counts()
    prior = by_label("prior", prior, names)
    prevalence, prior_source = find_prior(prior, calibration_counts, held_out.totals())
    weights = training.weights_of(arm, evaluation_counts, None if prior is None else prevalence)
    propensities = resolve_propensities(scoring.propensities, weights, whole.n_labels, names)
    return Case(
        arm=arm,
        twin=twin,
        paired=paired,
        calibration=held_out,
        protocol="cross-fitted" if calibration is None else "deployment",
        scoring=Scoring(k, scoring.metric, propensities),
        weights=weights,
        prior=prevalence,
        prior_source=prior_source,
        calibration_counts=calibration_counts,
        evaluation_counts=evaluation_counts,
        budget=training.budget(),
        seed=seed,
    )


def _pair(whole: Source, others: OtherScores) -> tuple[Source, Source | None, Source]:
    """The arm, its twin, and the arm with panels that bring the twin."""
    unweighted = others.unweighted
    if whole.ordered:
        arm: Source = LabelledSource(whole, whole.positives())
        arm.row_keys()  # ids are hashed once, before threads need them
        if unweighted is None:
            return arm, None, arm
        twin = open_twin(unweighted, None, whole, exclude=others.exclude, nan=others.nan)
        return arm, twin, TwinnedSource(arm, twin)
    if unweighted is None:
        return whole, None, whole
    if whole.partial:
        raise InvalidInput(
            "unweighted scores of a table go with rows that have every label, got absent cells. "
            "Leave unweighted out."
        )
    if not isinstance(unweighted, str):
        raise InvalidInput(f"unweighted must name a column of the table, got {unweighted!r:.60}.")
    both: Any = whole.with_twin(unweighted)  # type: ignore[attr-defined]
    return both, both.of_twin(), both


def _open_calibration(calibration: Any, whole: Source, nan: Nan) -> Source:
    threads = whole.threads
    if isinstance(calibration, Panel | Source):
        source = open_rows(calibration, threads=threads)
    elif isinstance(calibration, tuple | list) and len(calibration) in (2, 3):
        if isinstance(calibration[0], Panel | Source):
            raise InvalidInput("calibration must be (scores, labels) or a panel, got a mixture.")
        source = open_rows(
            *calibration[:2],
            kind=whole.kind,
            label_names=_given_names(calibration[0], whole),
            exclude=calibration[2] if len(calibration) == 3 else None,
            nan=nan,
            threads=threads,
        )
    elif is_file_or_table(calibration):
        source = open_rows(calibration, kind=whole.kind, nan=nan, threads=threads)
    else:
        raise InvalidInput(
            "calibration must be (scores, labels), a panel, or a table that holds both, "
            f"got {type(calibration).__name__}."
        )
    if not source.has_labels:
        raise InvalidInput("calibration needs labels, got scores alone. Pass (scores, labels).")
    _check_orientation("scores", whole, source.label_names or (), "calibration rows")
    _check_orientation("calibration scores", source, whole.label_names or (), "scores")
    if source.n_labels != whole.n_labels or source.kind != whole.kind:
        raise InvalidInput(
            "calibration scores must have the labels and the kind of the scores, "
            f"{whole.n_labels:,} labels and {whole.kind}, "
            f"got {source.n_labels:,} labels and {source.kind}."
        )
    source = align_columns(whole, source, ("scores", "calibration scores"))
    return LabelledSource(source, source.positives()) if source.ordered else source


def _check_orientation(what: str, source: Source, labels: Sequence[str], by: str) -> None:
    """Refuse a matrix whose rows have the names of the labels."""
    ids = source.row_ids() if labels and source.ordered else None
    if ids is None or labels[0] in (source.label_names or ()):
        return
    if set(labels) <= set(map(str, ids.tolist())):
        raise InvalidInput(
            f"{what} must have one row per case and one column per label, got rows named as the "
            f"labels of {by} are, {labels[0]!r:.60} for one: they look transposed. Pass .T of "
            "scores and labels."
        )


def _given_names(scores: ScoresLike, whole: Source) -> tuple[str, ...] | None:
    """Names for calibration scores that have none and go by position: labels may use them."""
    names = whole.label_names
    bare = not (is_file_or_table(scores) or is_frame(scores))
    unseen = isinstance(names, UnorderedNames)
    return names if bare and names and not unseen and not is_numbering(names) else None
