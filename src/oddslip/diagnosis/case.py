"""The rows a diagnosis reads, and all that is known of an arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators.policy import find_prior
from oddslip.core.arguments import check_seed
from oddslip.core.panel import Kind, Panel, check_k
from oddslip.core.row_ids import UnorderedNames, is_frame, is_numbering
from oddslip.core.row_keys import need_ids
from oddslip.core.threads import available_threads
from oddslip.core.weights import by_label, named_values, resolve_weights, with_names
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import check_choice, label_propensities, resolve_propensities
from oddslip.metrics.evaluation import NAMES
from oddslip.shifts import step_budget
from oddslip.shifts.twin import open_twin
from oddslip.sources import Source, open_source
from oddslip.sources.open import Nan, is_file_or_table
from oddslip.sources.views import LabelledSource, TwinnedSource, align_columns

CALIBRATION_SHARE = 0.3  # of the rows of a split (Section 3)


def draw_calibration_rows(n_rows: int, seed: int = DEFAULT_SEED) -> NDArray[np.bool_]:
    """Which rows calibrate: the first 30% of a seeded permutation, at least one.

    Examples
    --------
    >>> int(draw_calibration_rows(10, seed=42).sum())
    3
    """
    chosen = np.zeros(n_rows, np.bool_)
    order = np.random.default_rng(seed).permutation(n_rows)
    chosen[order[: max(1, int(CALIBRATION_SHARE * n_rows))]] = True
    return chosen


def count_labels(source: Source) -> NDArray[np.int64]:
    """Positives of each label."""
    return source.label_counts()


Protocol = Literal["deployment", "cross-fitted"]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One arm on the rows it is evaluated on, with whatever else is known of it.

    Under the cross-fitted protocol ``calibration`` is the arm itself: maps are fitted on all folds
    but one and rank that one. ``prior`` is the training prevalence where given, else the smoothed
    calibration prevalence.
    Panels of ``paired`` are those of the arm, and bring the twin where there is one.
    ``budget`` is None where the training parameters are not known. ``metric`` is the one that
    rungs are compared by; ``propensities`` are those of PSP, where given.
    """

    arm: Source
    twin: Source | None
    paired: Source
    calibration: Source
    protocol: Protocol
    k: int
    weights: NDArray[np.float64] | None
    prior: NDArray[np.float64]
    prior_source: str
    calibration_counts: NDArray[np.int64]
    evaluation_counts: NDArray[np.int64]
    budget: float | None
    seed: int
    threads: int | None = None
    metric: str = "map"
    propensities: NDArray[np.float64] | None = None

    @property
    def scoring(self) -> dict[str, Any]:
        """What rules choose by."""
        return {"k": self.k, "metric": self.metric, "propensities": self.propensities}

    def find_propensities(self) -> NDArray[np.float64]:
        """Those given, else those that the evaluated labels say."""
        if self.propensities is not None:
            return self.propensities
        return label_propensities(self.evaluation_counts, self.arm.n_rows)

    @property
    def crossed(self) -> bool:
        """Whether the evaluated rows calibrate one another, fold by fold."""
        return self.protocol == "cross-fitted"

    @property
    def named_prior(self) -> Any:
        """The prior as verbs take it, which match it by name."""
        return with_names(self.prior, self.arm.label_names)

    @property
    def prior_given(self) -> bool:
        """Whether the training prevalence was given."""
        return self.prior_source == "given"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the labels, their numbers where they have none."""
        return self.arm.label_names or tuple(str(label) for label in range(self.arm.n_labels))


def open_case(
    scores: Any,
    labels: Any,
    *,
    k: int,
    metric: str = "map",
    propensities: Any = None,
    weights: Any = None,
    unweighted: Any = None,
    calibration: Any = None,
    prior: Any = None,
    kind: Kind | None = None,
    rounds: int | None = None,
    learning_rate: float | None = None,
    max_delta_step: float | None = None,
    seed: int = DEFAULT_SEED,
    keyed: bool = False,
    label_names: Sequence[str] | None = None,
    exclude: Any = None,
    nan: Nan = "refuse",
    threads: int | None = None,
) -> Case:
    """Open all inputs of `diagnose`. Nothing but labels is read yet."""
    available_threads(threads)  # refused before anything is read
    check_choice("metric", metric, NAMES)
    whole = open_source(
        scores, labels, kind=kind, label_names=label_names, exclude=exclude, nan=nan
    )
    if not whole.has_labels:
        raise InvalidInput("labels are needed to diagnose, got scores alone. Pass labels as well.")
    for what, numbers in (("weights", weights), ("prior", prior)):
        _check_orientation("scores", whole, tuple(named_values(what, numbers) or ()), what)
    k = check_k(k, whole.n_labels)
    seed = check_seed(seed)
    if keyed or not whole.ordered:
        need_ids(whole.has_ids, "diagnosing rows")
    other = None
    if unweighted is not None and whole.ordered:
        other = open_twin(unweighted, None, whole, exclude=exclude, nan=nan)
    if calibration is None and whole.n_rows < 2:
        raise InvalidInput(
            "at least 2 rows are needed to calibrate on some and evaluate others, got 1. "
            "Pass calibration=(scores, labels)."
        )
    arm, twin, paired = _pair(whole, other, unweighted)
    held_out = arm if calibration is None else _open_calibration(calibration, whole, nan)
    evaluation_counts = count_labels(arm)
    if not evaluation_counts.any():
        raise InvalidInput(
            f"at least one evaluated row must have a true label, got none in {arm.n_rows:,} rows."
        )
    calibration_counts = count_labels(held_out)
    prior = by_label("prior", prior, whole.label_names)
    prevalence, prior_source = find_prior(prior, calibration_counts, held_out.totals(threads))
    trained = _as_weights(weights, arm, evaluation_counts, None if prior is None else prevalence)
    return Case(
        arm=arm,
        twin=twin,
        paired=paired,
        calibration=held_out,
        protocol="cross-fitted" if calibration is None else "deployment",
        k=k,
        weights=trained,
        prior=prevalence,
        prior_source=prior_source,
        calibration_counts=calibration_counts,
        evaluation_counts=evaluation_counts,
        budget=_as_budget(rounds, learning_rate, max_delta_step),
        seed=seed,
        threads=threads,
        metric=metric,
        propensities=resolve_propensities(propensities, trained, whole.n_labels, whole.label_names),
    )


def _pair(
    whole: Source, other: Source | None, unweighted: Any
) -> tuple[Source, Source | None, Source]:
    """The arm, its twin, and the arm with panels that bring the twin."""
    if whole.ordered:
        arm = LabelledSource(whole, whole.positives())
        arm.row_keys()  # ids are hashed once, before threads need them
        return arm, other, arm if other is None else TwinnedSource(arm, other)
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
    if isinstance(calibration, Panel | Source):
        source = open_source(calibration)
    elif isinstance(calibration, tuple | list) and len(calibration) in (2, 3):
        if isinstance(calibration[0], Panel | Source):
            raise InvalidInput("calibration must be (scores, labels) or a panel, got a mixture.")
        exclude = calibration[2] if len(calibration) == 3 else None
        source = open_source(
            *calibration[:2], kind=whole.kind, label_names=_given_names(calibration[0], whole),
            exclude=exclude, nan=nan,
        )  # fmt: skip
    elif is_file_or_table(calibration):
        source = open_source(calibration, kind=whole.kind, nan=nan)
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


def _given_names(scores: Any, whole: Source) -> tuple[str, ...] | None:
    """Names for calibration scores that have none and go by position: labels may use them."""
    names = whole.label_names
    bare = not (is_file_or_table(scores) or is_frame(scores))
    unseen = isinstance(names, UnorderedNames)
    return names if bare and names and not unseen and not is_numbering(names) else None


def _as_weights(
    weights: Any,
    whole: Source,
    counts: NDArray[np.int64],
    prior: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Weights by name are ratios of the training rows where their prevalence was given."""
    if weights is None:
        return None
    if prior is not None:
        return resolve_weights(weights, prior, 1, label_names=whole.label_names)
    return resolve_weights(weights, counts, whole.totals(), label_names=whole.label_names)


def _as_budget(
    rounds: int | None, learning_rate: float | None, max_delta_step: float | None
) -> float | None:
    given = rounds is not None, learning_rate is not None
    if rounds is None or learning_rate is None:
        if any(given) or max_delta_step is not None:
            raise InvalidInput(
                "the step budget needs both rounds and learning_rate, "
                f"got rounds={rounds}, learning_rate={learning_rate}."
            )
        return None
    return step_budget(rounds, learning_rate, max_delta_step)
