"""Rules: how a candidate is chosen from out-of-fold values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from oddslip.core.types import Bools, Floats, PerLabel
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import metric_name
from oddslip.selection.candidates import (
    HALFWAY,
    HIERARCHICAL,
    PAPER,
    RAW,
    WIDE,
    Candidate,
    read_candidate,
)
from oddslip.selection.trials import Trials

# The constants of the default rule; docs/repair.md says how they were chosen.
GUARD = 3.0  # standard errors by which raw must be beaten: the best of a dozen looks too good
NAMED_GUARD = 2.0  # by hierarchical and halfway, which were named before: no best of many
NEAR = 2.0  # standard errors by which the best must beat hierarchical to be taken in its place
# A loss that matters, where nothing surely beats raw: so much of the metric, or such a share of
# what raw has, whichever is less.
TOLERANCE, TOLERATED_SHARE = 0.01, 0.02
ROW_GUARD = 2.0  # standard errors by which the row-aware stage must beat what was chosen
REPEATS = 3  # times the folds are drawn
MANY_ROWS = 20_000  # from here on how folds fall hardly matters, and they are drawn once
# Standard errors by which further repeats may move a paired difference: a candidate that falls
# short by more is not tried in them.
DRIFT = 1.0
TIED = 1e-12  # means closer than this are equal
# Share of a threshold within which a gain equals it. A gain by one row alone is one standard
# error exactly, and rounding, which differs between engines, may not decide on which side it is.
ROUNDING = 1e-9


class Choice(NamedTuple):
    """The chosen candidate's place among those tried, and why it was chosen, in one sentence."""

    place: int
    why: str


@dataclass(frozen=True, slots=True)
class Rule:
    """What is tried, and how one is chosen.

    Parameters
    ----------
    name : str
    candidates : tuple of Candidate
        Raw must be among them.
    guard : float, optional
        None: the best out-of-fold mean wins. Else only candidates that beat raw by more than
        this many standard errors count, and raw is kept if there is none. The standard error is
        that of the mean, over rows, of the paired difference to raw.
    guards : tuple of (Candidate, float)
        Candidates with a guard of their own.
    n_repeats : int
        Number of independent draws of the folds; the values of a row are averaged.
    favourite : Candidate, optional
        Taken in place of the best where it is sure itself and the best does not beat it by more
        than ``near`` standard errors, which are those of the two's paired difference.
    near : float
    leaning : tuple of Candidate
        Where no candidate is sure of a gain, the first of these is taken in place of raw that has
        the better mean and is sure, by its guard, not to lose what matters.
    fixed : Candidate, optional
        Take this one whatever the values are.
    row_guard : float, optional
        Standard errors by which the row-aware stage must beat the chosen candidate to be used;
        -inf uses it in any case, None never.
    listed : bool
        Equal means go to the candidate that is listed first, not to the simpler one.

    Notes
    -----
    Equal means go to the simpler candidate, in the order of
    `oddslip.calibrators.catalogue.CANDIDATES`; of two isotonic ones, that with the larger tau. In
    the paper's rule they go to the smaller tau, and to a per-label map before the shared one.

    Examples
    --------
    >>> Rule("mine", (Candidate("raw"), Candidate("offset")), guard=1.0).n_repeats
    1
    """

    name: str
    candidates: tuple[Candidate, ...]
    guard: float | None = None
    guards: tuple[tuple[Candidate, float], ...] = ()
    n_repeats: int = 1
    favourite: Candidate | None = None
    near: float = 0.0
    leaning: tuple[Candidate, ...] = ()
    fixed: Candidate | None = None
    row_guard: float | None = None
    listed: bool = False

    def __post_init__(self) -> None:
        if RAW not in self.candidates or len(set(self.candidates)) < len(self.candidates):
            raise InvalidInput("candidates must hold raw, and each candidate once.")
        if self.fixed is not None and self.fixed not in self.candidates:
            raise InvalidInput(f"candidates must hold the fixed one, {self.fixed.name!r}.")
        if self.favourite is not None and self.favourite not in self.candidates:
            raise InvalidInput(f"candidates must hold the favourite, {self.favourite.name!r}.")
        for candidate in self.leaning:
            if candidate not in self.candidates:
                raise InvalidInput(f"candidates must hold what is leaned to, {candidate.name!r}.")
        for guard in (self.guard, *(guard for _, guard in self.guards)):
            if guard is not None and not 0 <= guard < np.inf:
                raise InvalidInput(f"guard must be at least 0 and finite, got guard={guard!r}.")
        if self.n_repeats < 1:
            raise InvalidInput(f"n_repeats must be at least 1, got n_repeats={self.n_repeats!r}.")

    def candidates_for(self, weights: PerLabel) -> tuple[Candidate, ...]:
        """Those that can be tried, given the weights or None."""
        if weights is not None:
            return self.candidates
        if self.fixed is not None and self.fixed.needs_weights:
            raise InvalidInput(
                f"rule {self.name!r} needs the weights that labels were trained with. "
                "Pass weights=..., or --weights in a shell."
            )
        return tuple(each for each in self.candidates if not each.needs_weights)

    def repeats_for(self, n_rows: int) -> int:
        """Times the folds of so many rows are drawn."""
        return self.n_repeats if n_rows < MANY_ROWS else 1

    def contenders(self, trials: Trials) -> tuple[Candidate, ...]:
        """Candidates that may be chosen once all repeats are known, given one repeat.

        Raw and those that the rule names stay. Any other leaves if it is far from being sure of a
        gain, or far below one that is sure. All leave if the favourite is sure and none is near to
        surely beating it.
        """
        trials = trials.of([each for each in trials.candidates if each in self.candidates])
        if trials.n_evaluated < 2 or self.fixed is not None:
            return trials.candidates
        gains, errors = trials.gains()
        guards = np.array([self.guard_of(each) for each in trials.candidates])
        unguarded = np.full(gains.size, self.guard is None)
        sure = np.flatnonzero(unguarded | _exceeds(gains, (guards + DRIFT) * errors)).tolist()

        def beats(place: int, other: int, n_errors: float) -> bool:
            lead, error = trials.lead(place, other)
            return bool(_exceeds(lead, n_errors * error))

        near = np.flatnonzero(unguarded | _exceeds(gains, (guards - DRIFT) * errors)).tolist()
        contenders = [
            place for place in near if not any(beats(other, place, DRIFT) for other in sure)
        ]
        for place in sure:
            if trials.candidates[place] == self.favourite and not any(
                beats(other, place, self.near - DRIFT) for other in contenders
            ):
                contenders = []
        named = (RAW, self.favourite, *self.leaning)
        return tuple(
            each
            for place, each in enumerate(trials.candidates)
            if each in named or place in contenders
        )

    def foldable_contenders(self, trials: Trials) -> tuple[Candidate, ...]:
        """Those of all candidates and those of the ones that can be folded."""
        foldable = trials.of([each for each in trials.candidates if each.foldable])
        return tuple(dict.fromkeys((*self.contenders(trials), *self.contenders(foldable))))

    def choose(self, trials: Trials) -> Choice:
        """The candidate to take."""
        criterion = metric_name(trials.metric, trials.k)
        names = [candidate.name for candidate in trials.candidates]
        if self.fixed is not None:
            return Choice(
                trials.candidates.index(self.fixed), f"{self.fixed.name} was asked for by name."
            )
        gains, errors = trials.gains()
        raw = trials.candidates.index(RAW)
        eligible = np.array([each not in trials.losers for each in trials.candidates])
        every = eligible if self.guard is None else np.ones_like(eligible)
        best = _best(trials, every, self.candidates.index if self.listed else None)
        level = trials.means
        if self.guard is None:
            why = f"{names[best]} has the best out-of-fold {criterion}, {level[best]:.4f}"
            return Choice(best, f"{why} (raw: {level[raw]:.4f}).")
        guards = np.array([self.guard_of(each) for each in trials.candidates])
        sure = eligible & _exceeds(gains, guards * errors)
        sure[raw] = False
        if sure.any():
            winner = _best(trials, sure)
            place = self._favoured(trials, winner, sure)
            why = f"{names[place]} gains {gains[place]:.4f} in out-of-fold {criterion} over raw"
            why += f", {_in_errors(gains[place], errors[place], guards[place])}"
            if place != winner:
                why += f"; {names[winner]} does not surely beat it"
            return Choice(place, f"{why}.")
        leaned = self._lean(trials, gains, errors)
        if leaned is not None:
            return leaned
        if best == raw:
            return Choice(raw, f"raw is kept: no candidate beats its out-of-fold {criterion}.")
        why = f"raw is kept: {names[best]} gains {gains[best]:.4f} in out-of-fold {criterion}"
        return Choice(raw, f"{why}, {_in_errors(gains[best], errors[best], guards[best])}.")

    def choose_foldable(self, trials: Trials) -> Choice:
        """The candidate to take among those that can be folded, and what that costs."""
        foldable = [each for each in trials.candidates if each.foldable]
        if self.fixed is not None and not self.fixed.foldable:
            raise InvalidInput(
                f"a foldable repair must be affine in the log-odds, got rule {self.name!r}. "
                f"Use one of {', '.join(each.name for each in WIDE if each.foldable)}."
            )
        choice = self.choose(trials.of(foldable))
        place = trials.candidates.index(foldable[choice.place])
        best = self.choose(trials).place
        if best == place:
            return Choice(place, choice.why)
        lead, error = trials.lead(best, place)
        why = (
            f"{choice.why} That it can be folded costs {lead:.4f} of out-of-fold "
            f"{metric_name(trials.metric, trials.k)} (standard error {error:.4f}) against "
            f"{trials.candidates[best].name}."
        )
        return Choice(place, why)

    def guard_of(self, candidate: Candidate) -> float:
        """Standard errors by which a candidate must beat raw."""
        return dict(self.guards).get(candidate, self.guard or 0.0)

    def _lean(self, trials: Trials, gains: Floats, errors: Floats) -> Choice | None:
        """What has the better mean and is sure not to lose what matters, though not to gain."""
        raw = trials.means[trials.candidates.index(RAW)]
        tolerated = min(TOLERANCE, TOLERATED_SHARE * float(raw))
        for candidate in (each for each in self.leaning if each in trials.candidates):
            place, required = trials.candidates.index(candidate), self.guard_of(candidate)
            gain, error = float(gains[place]), float(errors[place])
            if gain > 0 and required * error - gain < tolerated:
                gain_text = (
                    f"{gain:.4f} in out-of-fold {metric_name(trials.metric, trials.k)} over raw"
                )
                return Choice(
                    place,
                    f"{candidate.name} gains {gain_text}, {gain / error:.1f} standard errors: no "
                    f"sure gain, and by {_count_errors(required)} no loss of {tolerated:.4f}.",
                )
        return None

    def _favoured(self, trials: Trials, winner: int, sure: Bools) -> int:
        """The favourite's place if it may stand in for the winner, else the winner's."""
        if self.favourite is None or self.favourite not in trials.candidates:
            return winner
        place = trials.candidates.index(self.favourite)
        lead, error = trials.lead(winner, place)
        return winner if not sure[place] or _exceeds(lead, self.near * error) else place


AUTO = Rule(
    "auto",
    WIDE,
    guard=GUARD,
    guards=((HALFWAY, NAMED_GUARD), (HIERARCHICAL, NAMED_GUARD)),
    n_repeats=REPEATS,
    favourite=HIERARCHICAL,
    near=NEAR,
    leaning=(HIERARCHICAL,),
)
RULES = {
    "paper": Rule("paper", PAPER, listed=True),
    "auto": AUTO,
    "row_aware": replace(AUTO, name="row_aware", row_guard=ROW_GUARD),
}


def read_rule(rule: str | Rule) -> Rule:
    """A rule by name: "auto", "row_aware", "paper", or the candidate to take in any case.

    Examples
    --------
    >>> read_rule("isotonic").fixed.name
    'isotonic-0'
    """
    if isinstance(rule, Rule):
        return rule
    if not isinstance(rule, str):
        raise InvalidInput(f"rule must be a name or a Rule, got {rule!r}.")
    if rule in RULES:
        return RULES[rule]
    fixed = read_candidate(rule)
    return Rule(rule, (RAW,) if fixed == RAW else (RAW, fixed), fixed=fixed)


def _exceeds(gains: Any, thresholds: Any) -> Any:
    """Whether gains are above thresholds by more than rounding."""
    return gains > thresholds * (1.0 + ROUNDING) + TIED


def _best(
    trials: Trials,
    allowed: Bools,
    before: Callable[[Candidate], Any] | None = None,
) -> int:
    """The best mean among the allowed; of equals the simplest, or the first by ``before``."""
    means = np.where(allowed, trials.means, -np.inf)
    tied = np.flatnonzero(means >= means.max() - TIED).tolist()
    order = before or (lambda candidate: candidate.complexity)
    return min(tied, key=lambda place: order(trials.candidates[place]))


def _in_errors(gain: float, error: float, guard: float) -> str:
    requirement = f"{_count_errors(guard)} {'is' if guard == 1 else 'are'} required"
    if not 0 < error < np.inf:
        return f"with no standard error to hold it against; {requirement}"
    return f"{gain / error:.1f} standard errors; {requirement}"


def _count_errors(number: float) -> str:
    return f"{number:g} standard {'error' if number == 1 else 'errors'}"


def choose_by_fold(rule: Rule, trials: Trials, repeat: int = -1) -> list[int]:
    """What a rule chooses without each fold of a repeat, as places among the candidates.

    The mean of the best of many candidates is too high, because its rows chose it. Without its
    fold, no row has a say in its own choice. Where no other row has a true label, the choice is
    that of all rows.
    """
    places = []
    for fold in range(trials.n_folds):
        others = trials.without_fold(repeat, fold)
        places.append(rule.choose(others if others.n_evaluated else trials).place)
    return places
