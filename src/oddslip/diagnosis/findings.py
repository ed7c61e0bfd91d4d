"""`Finding`: one thing worth saying, with its evidence and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from oddslip.core.results import plain
from oddslip.core.types import JsonObject

Severity = Literal["critical", "warning", "info"]

# Every code with its name. A code never changes its meaning; new ones are added.
CODES = {
    "OS101": "weights differ across labels",
    "OS102": "weight common to all labels",
    "OS103": "weights do not fit the scores",
    "OS104": "weights look like logarithms",
    "OS105": "scores look corrected already",
    "OS201": "ranking below popularity",
    "OS202": "cells saturated",
    "OS203": "ties decide the top K",
    "OS204": "stored probabilities lose what margins keep",
    "OS205": "no signal within labels",
    "OS206": "twin does not follow the scores",
    "OS207": "twin identical to the scores",
    "OS208": "twin and scores look swapped",
    "OS209": "margins look like probabilities",
    "OS210": "scores hold the labels",
    "OS301": "shift fell short",
    "OS302": "shift not identifiable",
    "OS303": "inversion will pay",
    "OS304": "inversion will not pay",
    "OS305": "inversion not decided",
    "OS401": "dead labels take slots",
    "OS402": "calibration positives scarce",
    "OS403": "calibration hurts here",
    "OS404": "labels without calibration positives are true in evaluation",
    "OS405": "calibration and evaluation rows overlap",
    "OS406": "prevalence drifts between calibration and evaluation",
    "OS407": "calibration rows come from the evaluated panel",
    "OS408": "labels occur together",
    "OS501": "scores moved",
    "OS502": "slots moved",
    "OS503": "label-free shift moved",
    "OS504": "more cells saturated than calibrated on",
    "OS505": "scores became coarser",
    "OS506": "ties decide more rows",
    "OS507": "expected precision moved",
    "OS508": "ranking surely dropped",
    "OS509": "no prior shift explains the scores",
    "OS510": "not safe to ship as it is",
    "OS511": "nothing to compare with",
    "OS512": "guarantee surely broken",
    "OS601": "cells are absent",
}


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One thing worth saying.

    Attributes
    ----------
    code : str
        Short and stable, such as "OS101"; see `CODES`.
    severity : {"critical", "warning", "info"}
    sentence : str
        What was found.
    evidence : dict
        The numbers behind it.
    advice : str
        What to do about it.

    Examples
    --------
    >>> Finding("OS102", "info", "All weights are 3.", {"weight": 3.0}, "Nothing.").anchor
    'findings.md#os102'
    """

    code: str
    severity: Severity
    sentence: str
    evidence: dict[str, Any]
    advice: str

    @property
    def name(self) -> str:
        """What this kind of finding is called."""
        return CODES[self.code]

    @property
    def anchor(self) -> str:
        """Where the documentation explains it."""
        return f"findings.md#{self.code.lower()}"

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {
                "code": self.code,
                "name": self.name,
                "severity": self.severity,
                "sentence": self.sentence,
                "evidence": self.evidence,
                "advice": self.advice,
                "doc": self.anchor,
            }
        )


def order_findings(findings: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first; those equally grave in the order they were made."""
    severities = get_args(Severity)
    return tuple(sorted(findings, key=lambda finding: severities.index(finding.severity)))
