"""The rules of `oddslip lint`: what each code means, why it matters and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Severity = Literal["note", "warning"]
SEVERITIES: tuple[Severity, ...] = ("note", "warning")
PAGE = "docs/lint.md"
PROJECT = "https://github.com/oddslip/oddslip"


class Rule(NamedTuple):
    """One code. ``severity`` applies where nothing ranks labels in the same file."""

    name: str
    severity: Severity
    reason: str
    advice: str


_TRAIN_OR_CALIBRATE = (
    "Train without it or with one weight for all labels, or calibrate each label on held-out rows "
    "before you rank (`oddslip fit`)."
)

# A code never changes its meaning; new ones are added.
RULES = {
    "OS900": Rule(
        "source not readable",
        "warning",
        "This source cannot be parsed, so nothing in it was checked.",
        "Correct it, or leave it out of the paths.",
    ),
    "OS901": Rule(
        "weight of positives per label",
        "note",
        "The weight of positives differs between labels, so it multiplies the odds of each label "
        "by another factor and moves rare labels up in every row.",
        _TRAIN_OR_CALIBRATE,
    ),
    "OS902": Rule(
        "automatic weights per label",
        "note",
        "The booster weights each label by its own imbalance, so the odds of rare labels grow most "
        "and scores of different labels no longer compare.",
        _TRAIN_OR_CALIBRATE,
    ),
    "OS903": Rule(
        "balanced classes per label",
        "note",
        "Balanced class weights make every label look as frequent as its absence, so rare labels "
        "outrank frequent ones.",
        _TRAIN_OR_CALIBRATE,
    ),
    "OS904": Rule(
        "vector of positive weights",
        "note",
        "The loss weights the positives of each label differently, so each logit is shifted by "
        "about the logarithm of its own weight.",
        "Pass one number for all labels, leave it out, or calibrate each label on held-out rows "
        "before you rank (`oddslip fit`).",
    ),
    "OS905": Rule(
        "raw scores beside calibrated ones",
        "warning",
        "A label with one class only keeps its raw score beside calibrated ones, and raw scores "
        "are larger: such dead labels take slots of the top K.",
        "Send these labels to their prior, as `oddslip fit` does.",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A place in a file where a rule applies.

    Attributes
    ----------
    path : str
    line, column : int
        From 1; in a notebook those of the cell.
    code : str
        A key of `RULES`.
    severity : {"note", "warning"}
    detail : str
        What else is known about this place; may be empty.
    cell : int or None
        Number of the code cell of a notebook, from 1.

    Examples
    --------
    >>> Finding("train.py", 3, 1, "OS901", "note").doc
    'docs/lint.md#os901'
    """

    path: str
    line: int
    column: int
    code: str
    severity: Severity
    detail: str = ""
    cell: int | None = None

    @property
    def reason(self) -> str:
        """One or two sentences on why it matters here."""
        return f"{RULES[self.code].reason} {self.detail}".rstrip()

    @property
    def doc(self) -> str:
        """Where the documentation explains it."""
        return f"{PAGE}#{self.code.lower()}"

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        rule = RULES[self.code]
        return {
            "path": self.path,
            "cell": self.cell,
            "line": self.line,
            "column": self.column,
            "code": self.code,
            "name": rule.name,
            "severity": self.severity,
            "reason": self.reason,
            "advice": rule.advice,
            "doc": self.doc,
        }
