"""The dead-label policy: what becomes of a label without enough calibration positives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind, Panel
from oddslip.core.passes import Passes
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Bools, Floats, PerLabel
from oddslip.core.weights import per_label, resolve_weights
from oddslip.errors import InvalidInput
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.map_forms import Scale
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import Source
from oddslip.tallies.cell_counts import Knots

Fitted = tuple[LabelMaps, LabelRecord]
DeadPolicy = Literal["prior", "identity", "exclude"]
MISSED = 20.0  # positives that a given prior promises: if all stay away, it is not by chance


@dataclass(frozen=True, slots=True, eq=False)
class DeadLabelPolicy:
    """What becomes of a label with at most ``tau`` positives, and what is known of the labels.

    Attributes
    ----------
    dead : {"prior", "identity", "exclude"}
    tau : int
    prior : array-like, optional
        Of each label; else the smoothed prevalence of the rows fitted on.
    weights : number, array-like or str, optional
        As in `oddslip.calibrators.Inversion`, for maps that need or take them.
    """

    dead: str = "prior"
    tau: int = 0
    prior: PerLabel = None
    weights: PerLabel = None


def check_policy(dead: str, tau: Any) -> None:
    """Refuse a policy or a threshold that does not exist."""
    if dead not in get_args(DeadPolicy):
        allowed = ", ".join(f'"{policy}"' for policy in get_args(DeadPolicy))
        raise InvalidInput(f"dead must be one of {allowed}, got {dead!r}.")
    if isinstance(tau, bool) or not isinstance(tau, int | np.integer) or tau < 0:
        raise InvalidInput(f"tau must be a whole number, at least 0, got tau={tau!r}.")


def find_prior(prior: PerLabel, n_positives: Array, n_rows: Any) -> tuple[Floats, str]:
    """Prior of each label and where it comes from.

    Given training prevalences are taken as they are. Otherwise it is the calibration prevalence,
    smoothed by half a positive and half a negative, so that a dead label is rare but possible.
    """
    if prior is None:
        smoothed = (n_positives.astype(np.float64) + 0.5) / (n_rows + 1.0)
        return smoothed, "smoothed calibration prevalence"
    values = per_label("prior", prior, n_positives.size)
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if wrong.size:
        raise InvalidInput(
            f"prior must be between 0 and 1, got {values[wrong[0]]:g} for label {wrong[0]}."
        )
    return values.copy(), "given"


def find_unobservable(totals: LabelTotals, prior: Floats, prior_source: str) -> Bools:
    """Labels of which these rows say nothing: a given prior promises positives, and none is there.

    They were not recorded yet, or fell out on the way. That they are none is no news of the label.

    Examples
    --------
    >>> totals = LabelTotals.alike(np.array([0, 0, 1]), 300)
    >>> find_unobservable(totals, np.array([0.1, 0.01, 0.1]), "given")
    array([ True, False, False])
    """
    missed = (totals.n_positives == 0) & (prior * totals.total >= MISSED)
    return np.asarray(missed & (prior_source == "given"))


def weights_trained(
    weights: PerLabel,
    record: LabelRecord,
    totals: LabelTotals,
    label_names: Sequence[str] | None = None,
) -> Floats:
    """Weights of all labels; a name is read off the prior where given, else off the positives."""
    from_prior = record.prior_source == "given"
    counts = (record.prior, 1) if from_prior else (totals.positives, totals.total)
    return resolve_weights(weights, *counts, label_names=label_names, in_order=True)


def record_policy(
    totals: LabelTotals, policy: DeadLabelPolicy, fallback: Any = False
) -> LabelRecord:
    """Labels with at most ``tau`` positives are dead; the others are calibrated, or fall back."""
    priors, origin = find_prior(policy.prior, totals.positives, totals.total)
    is_dead = totals.n_positives <= policy.tau
    action = np.where(is_dead, policy.dead, np.where(fallback, "fallback", "calibrated"))
    return LabelRecord(tuple(action.tolist()), totals.n_positives, priors, origin, is_dead)


def record_alike(action: str, totals: LabelTotals, prior: PerLabel = None) -> LabelRecord:
    """All labels are treated alike; none is dead, since nothing is fitted to one alone."""
    priors, origin = find_prior(prior, totals.positives, totals.total)
    nobody = np.zeros(priors.size, np.bool_)
    return LabelRecord((action,) * priors.size, totals.n_positives, priors, origin, nobody)


class CheckedScores(MergeableTally):
    """Validates every score of a pass; holds no sums."""

    def empty_like(self) -> Self:
        """Another."""
        return type(self)()

    def spec(self) -> dict[str, Any]:
        """No arguments."""
        return {}

    def add(self, panel: Panel) -> None:
        """Look at one block; refuses it if a cell is not valid."""
        panel.checked()

    def result(self) -> None:
        """Nothing."""


def count_checked(source: Source) -> Passes[LabelTotals]:
    """Positives per label, for maps that need no score to be fitted: bad ones are refused."""
    yield CheckedScores()
    return count_positives(source)


def count_positives(source: Source) -> LabelTotals:
    """Positives per label of a whole source. Scores are not looked at."""
    weight = source.sample_weight
    if weight is None:
        return LabelTotals.alike(source.label_counts(), source.totals())
    positives = source.positives()
    labels = positives.indices
    n_positives = np.bincount(labels, minlength=source.n_labels)
    units = np.zeros(source.n_labels, np.int64)
    np.add.at(units, labels, np.repeat(weight.units, positives.counts))
    return LabelTotals(n_positives, weight.floats(units), source.totals())


# One parameter for each array of `LabelMaps` that a caller may set.
def build_maps(
    kind: Kind,
    scale: Scale,
    record: LabelRecord,
    *,
    knots: Knots | None = None,
    step: bool = False,
    code: NDArray[np.int8] | None = None,
    a: Any = 0.0,
    b: Any = 0.0,
    c: Any = 0.0,
) -> LabelMaps:
    """Maps of all labels: the dead ones as the record says, the others as given."""
    from oddslip.kernels.maps import CONSTANT, EXCLUDED, IDENTITY, KNOTS

    n = len(record.action)
    action = np.array(record.action)
    is_dead = record.dead
    codes = np.full(n, KNOTS, np.int8) if code is None else code.astype(np.int8)
    for policy, dead_code in (("prior", CONSTANT), ("identity", IDENTITY), ("exclude", EXCLUDED)):
        codes[is_dead & (action == policy)] = dead_code
    indptr, x, y = knots or (np.zeros(n + 1, np.int64), np.empty(0), np.empty(0))

    def unless_dead(values: Any) -> Floats:
        return np.where(is_dead, 0.0, values).astype(np.float64)

    return LabelMaps(
        kind=kind,
        scale=scale,
        code=codes,
        a=np.where(codes == CONSTANT, np.where(is_dead, record.prior, a), unless_dead(a)),
        b=unless_dead(b),
        c=unless_dead(c),
        start=indptr[:-1].astype(np.int64),
        stop=indptr[1:].astype(np.int64),
        x=x,
        y=y,
        step=step,
    )


def build_shared_maps(kind: Kind, n_labels: int, knots: Knots, *, step: bool = False) -> LabelMaps:
    """The same map for every label, from the knots of cells counted as one label's."""
    from oddslip.kernels.maps import KNOTS

    zeros = np.zeros(n_labels)
    return LabelMaps(
        kind=kind,
        scale="probability",
        code=np.full(n_labels, KNOTS, np.int8),
        a=zeros,
        b=zeros,
        c=zeros,
        start=np.zeros(n_labels, np.int64),
        stop=np.full(n_labels, knots.x.size, np.int64),
        x=knots.x,
        y=knots.y,
        step=step,
    )


def possible_prior(prior: Floats, n_rows: Any) -> Floats:
    """Priors of 0 and 1 as the rarest and commonest that still have log-odds.

    A label that was never true in training may be true some day: it counts as rare as half a
    positive among these rows, or as the rarest other label if that is rarer.
    """
    inside = prior[(prior > 0) & (prior < 1)]
    least = min([0.5 / (float(np.max(n_rows)) + 1.0), *np.minimum(inside, 1 - inside).tolist()])
    return np.where(prior <= 0, least, np.where(prior >= 1, 1 - least, prior))
