"""Candidates: the calibrators a rule chooses among, from the simplest to the most flexible."""

from __future__ import annotations

import re
from dataclasses import dataclass

from oddslip.calibrators.catalogue import CANDIDATES, CATALOGUE
from oddslip.errors import InvalidInput

PAPER_TAUS = (0, 1, 2, 5, 10)
STRENGTHS = (5, 20)
FOLDABLE = frozenset(
    ("raw", "inversion", "label_free", "temperature", "offset", "halfway", "hierarchical", "platt")
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A calibrator that may be chosen.

    Parameters
    ----------
    form : str
        One of `oddslip.calibrators.catalogue.CANDIDATES`: a calibrator by its name; "halfway",
        the mean of raw and hierarchical log-odds; or "shrunk": a label with n positives gets
        n / (n + strength) of its isotonic map and the rest of its offset map.
    tau : int
        Isotonic only: a label with at most this many positives is dead.
    strength : int
        Shrunk only: at this many positives the two maps weigh the same.

    Examples
    --------
    >>> Candidate("isotonic", tau=5).name
    'isotonic-5'
    """

    form: str
    tau: int = 0
    strength: int = 0

    def __post_init__(self) -> None:
        if self.form not in CANDIDATES:
            raise InvalidInput(f"form must be one of {', '.join(CANDIDATES)}, got {self.form!r}.")
        for name, owner in (("tau", "isotonic"), ("strength", "shrunk")):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidInput(f"{name} must be a whole number, at least 0, got {value!r}.")
            if value and self.form != owner:
                raise InvalidInput(f"{name} belongs to {owner!r} alone, got form={self.form!r}.")

    @property
    def name(self) -> str:
        """Its form, with tau or the strength where it has one: ``isotonic-5``."""
        number = {"isotonic": self.tau, "shrunk": self.strength}.get(self.form)
        return self.form if number is None else f"{self.form}-{number}"

    @property
    def needs_weights(self) -> bool:
        """Whether it cannot be fitted without the weights that labels were trained with."""
        return "weights" in CATALOGUE[self.form].needs

    @property
    def foldable(self) -> bool:
        """Whether its maps are lines of the log-odds, which `oddslip.fold` writes into a model."""
        return self.form in FOLDABLE

    @property
    def complexity(self) -> tuple[int, int]:
        """What ties are broken by: the smaller, the simpler. A larger tau is simpler."""
        return CANDIDATES.index(self.form), -self.tau - self.strength


def read_candidate(name: str) -> Candidate:
    """The candidate of this name. Without a number, isotonic has tau 0, shrunk strength 20.

    Examples
    --------
    >>> read_candidate("isotonic")
    Candidate(form='isotonic', tau=0, strength=0)
    """
    parts = re.fullmatch(r"([a-z_-]*[a-z])(?:-(\d{1,9}))?", name)
    form, number = parts.groups() if parts else ("", None)
    if form == "isotonic":
        return Candidate("isotonic", tau=int(number or 0))
    if form == "shrunk":
        return Candidate("shrunk", strength=STRENGTHS[-1] if number is None else int(number))
    if form not in CANDIDATES or number is not None:
        message = (
            f'rule must be "auto", "paper" or a candidate, one of {", ".join(CANDIDATES)}, '
            f"or with a number as in isotonic-5, got {name!r}."
        )
        if name in CATALOGUE and name not in CANDIDATES:
            message += f' No rule takes it: build_calibrator("{name}"), or --calibrator {name}.'
        raise InvalidInput(message)
    return Candidate(form)


RAW = Candidate("raw")
HALFWAY = Candidate("halfway")
HIERARCHICAL = Candidate("hierarchical")
# In the order in which the paper's rule takes one of equals.
PAPER = (*(Candidate("isotonic", tau=tau) for tau in PAPER_TAUS), Candidate("pooled"), RAW)
# A shared map has no place here: it ranks as raw does, save where it ties what raw tells apart.
WIDE = (
    RAW,
    Candidate("inversion"),
    Candidate("label_free"),
    Candidate("temperature"),
    Candidate("offset"),
    HALFWAY,
    HIERARCHICAL,
    Candidate("platt"),
    Candidate("beta"),
    Candidate("hierarchical_isotonic"),
    *(Candidate("isotonic", tau=tau) for tau in PAPER_TAUS),
)
