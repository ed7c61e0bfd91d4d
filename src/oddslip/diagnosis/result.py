"""`Measurements` of a ranker, and the `Diagnosis`: the same with findings and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from oddslip.core.formatting import score, signed
from oddslip.core.panel import Kind
from oddslip.core.results import as_frame, html_findings, html_table, html_text, plain
from oddslip.core.types import Floats, Ints, JsonObject
from oddslip.diagnosis.case import Protocol
from oddslip.diagnosis.decomposition import Decomposition
from oddslip.diagnosis.drift import Drift, Takeover
from oddslip.diagnosis.findings import Finding
from oddslip.diagnosis.label_shifts import LabelShifts, WeightFit
from oddslip.diagnosis.ladder import Ladder
from oddslip.diagnosis.rungs import Chosen
from oddslip.diagnosis.signal import Signal, TwinAgreement
from oddslip.diagnosis.thresholds import COMMON_WEIGHT
from oddslip.metrics.at_k import metric_of_sums
from oddslip.metrics.reliability import Reliability
from oddslip.shifts import Saturation

Weighting = Literal["unknown", "none", "common", "label-specific"]


class Variable(str):
    """A variable in a line of Python, in place of a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Verdict(NamedTuple):
    """The outcome in one word for machines and in one sentence for people.

    ``repair`` is the rung of the ladder to deploy in place of raw, None if no rung surely repairs.
    """

    code: str
    sentence: str
    repair: str | None = None


class Missing(NamedTuple):
    """Something that could not be computed, and the input that would allow it."""

    what: str
    needs: str


class Ties(NamedTuple):
    """Evaluated rows whose raw top K is decided by ties, and how far they can move it.

    ``worst`` and ``best`` bound the metric of the ladder, ``map_worst`` and ``map_best`` MAP.
    """

    n_rows: int
    map_worst: float
    map_best: float
    worst: float
    best: float

    @classmethod
    def of_sums(cls, n_rows: int, bounds: Floats, metric: str, n: int) -> Ties:
        """From sums over ``n`` rows, tied cells in their worst order and in their best."""
        sides = [
            [float(metric_of_sums(sums, each, n)) for sums in bounds] for each in ("map", metric)
        ]
        return cls(n_rows, *sides[0], *sides[1])


class Overlap(NamedTuple):
    """Labels of the top K that the twin shows too: mean over rows, and rows where not all are."""

    mean: float
    share_changed: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Measurements:
    """All numbers of a case: what checks and the verdict read.

    `Diagnosis` says what each is.
    """

    ladder: Ladder
    chosen: Chosen | None
    decomposition: Decomposition | None
    signal: Signal
    likeness: TwinAgreement | None
    shifts: LabelShifts
    saturation: Saturation
    ties: Ties
    takeover: Takeover | None
    overlap: Overlap | None
    drift: Drift
    shown: dict[str, Reliability]
    missing: tuple[Missing, ...]
    protocol: Protocol
    k: int
    kind: Kind
    dtype: str
    n_rows: int
    n_calibration_rows: int
    label_names: tuple[str, ...]
    weights: Floats | None
    prior: Floats
    prior_source: str
    calibration_counts: Ints
    evaluation_counts: Ints
    seed: int

    @property
    def metric(self) -> str:
        """What rungs are compared by, and the repair is chosen by."""
        return self.ladder.metric

    @property
    def metric_name(self) -> str:
        """What that is called: ``MAP@7``."""
        return self.ladder.metric_name

    @property
    def n_labels(self) -> int:
        """Labels of the panel."""
        return len(self.label_names)

    @property
    def optimistic(self) -> bool:
        """Whether calibration rows and evaluated rows are of one panel, hence of one period."""
        return self.protocol == "cross-fitted"

    @property
    def weighting(self) -> Weighting:
        """What is known of the weights."""
        if self.weights is None:
            return "unknown"
        if self.weights.max() > self.weights.min() * COMMON_WEIGHT:
            return "label-specific"
        return "none" if np.allclose(self.weights, 1.0, rtol=1e-9, atol=0) else "common"

    @property
    def weight_fit(self) -> WeightFit | None:
        """Whether the label-specific weights can have made the shifts; None where not known."""
        if self.weighting != "label-specific":
            return None
        return self.shifts.hold_against_weights(self._prior_counts)

    @property
    def shift_size(self) -> float | None:
        """How far labels are from their prevalence, in nat; None where too few labels tell."""
        return self.shifts.size(self._prior_counts)

    @property
    def _prior_counts(self) -> Ints:
        """Positives of each label that the prior rests on."""
        if self.prior_source == "given":
            return np.maximum(self.calibration_counts, self.evaluation_counts)
        return self.calibration_counts

    @property
    def twin_follows(self) -> bool:
        """Whether there is a twin whose rows seem to be those of the scores."""
        return self.likeness is not None and self.likeness.follows

    def rung_name(self, rung: str) -> str:
        """A rung as it is shown: "chosen" with the calibrator that `Repair` would deploy."""
        return f"chosen: {self.chosen.name}" if rung == "chosen" and self.chosen else rung

    def label_columns(self) -> dict[str, Any]:
        """One value per label in each column; columns that are not known are left out."""
        shifts = self.shifts
        columns = {
            "label": list(self.label_names),
            "calibration_positives": self.calibration_counts,
            "evaluation_positives": self.evaluation_counts,
            "prior": self.prior,
            "weight": self.weights,
            "intended_shift": shifts.intended,
            "realized_shift": shifts.realized,
            "identified": shifts.identified,
            "ratio": None if shifts.intended is None else shifts.ratio,
            "direct_shift": shifts.direct,
            "residual": None if shifts.residual is None else shifts.residual.mean,
            "unrealizable": shifts.unrealizable,
            "over_correction": shifts.over_correction,
            "auc": self.signal.areas,
            "saturated_cells": self.saturation.n_saturated,
            "dead": self.calibration_counts == 0,
            "takeover_slots": None if self.takeover is None else self.takeover.slots,
            "drifted": self.drift.drifted,
        }
        return {name: column for name, column in columns.items() if column is not None}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Diagnosis(Measurements):
    """What `diagnose` found. Start with ``verdict.sentence``, ``findings`` and ``ladder``.

    Attributes
    ----------
    verdict : Verdict
    findings : tuple of Finding
        The gravest first.
    ladder : Ladder
        Every rung with its metrics, intervals and paired differences to raw. ``ladder.metric`` is
        the one that verdict, findings and loss are of.
    chosen : Chosen or None
        What `Repair` would deploy with the same inputs: its name, and why. The rung "chosen" is
        what such a choice is worth on rows that had no say in it. None where nothing can be
        fitted.
    decomposition : Decomposition or None
        Parts of the loss in that metric; needs the twin.
    signal : Signal
        Within-label AUC of the raw scores: what per-label maps have to work with.
    likeness : TwinAgreement or None
        Rank correlation with the twin within labels.
    shifts : LabelShifts
        Realized, intended and direct shift.
    saturation : Saturation
    ties : Ties
    takeover : Takeover or None
        Dead labels under the identity policy; needs a calibration positive.
    overlap : Overlap or None
        Of the top K with that of the twin.
    drift : Drift
        Calibration rows against evaluated rows.
    shown : dict
        Whether the probabilities of the labels shown are right: a `Reliability` of "raw", and of
        "chosen" where something can be fitted, over all evaluated rows.
    missing : tuple of Missing
        What could not be computed, and why.
    protocol : {"deployment", "cross-fitted"}
        "cross-fitted" calibrates on folds of the same rows, hence of the same period.
    arguments : dict
        What was passed to `diagnose`, as the suggested line of Python repeats it: settings by
        value, data as variables.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    arguments: dict[str, Any]

    def finding(self, code: str) -> Finding | None:
        """The finding of this code, if it was made."""
        return next((finding for finding in self.findings if finding.code == code), None)

    def to_frame(self, what: Literal["ladder", "labels"] = "ladder") -> Any:
        """A pandas frame of the ladder, or with one line per label."""
        return self.ladder.to_frame() if what == "ladder" else as_frame(self.label_columns())

    def to_dict(self) -> JsonObject:
        """Built-in types only: what ``--json`` prints."""
        from oddslip.diagnosis.summary import summarize  # which imports this module

        stored = self.saturation
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.diagnosis/1",
                "verdict": self.verdict._asdict(),
                "summary": summarize(self)._asdict(),
                "findings": [finding.to_dict() for finding in self.findings],
                "missing": [missing._asdict() for missing in self.missing],
                "protocol": {
                    "name": self.protocol,
                    "optimistic": self.optimistic,
                    "n_rows": self.n_rows,
                    "n_calibration_rows": self.n_calibration_rows,
                    "seed": self.seed,
                },
                "k": self.k,
                "metric": self.metric,
                "n_labels": self.n_labels,
                "kind": self.kind,
                "dtype": self.dtype,
                "weighting": self.weighting,
                "prior_source": self.prior_source,
                "chosen": self.chosen and self.chosen._asdict(),
                "ladder": self.ladder.to_dict(),
                "decomposition": self.decomposition and self.decomposition.to_dict(),
                "signal": self.signal.to_dict(),
                "likeness": self.likeness and self.likeness.to_dict(),
                "weight_fit": self.weight_fit and self.weight_fit._asdict(),
                "shifts": self.shifts.to_dict(),
                "saturation": {
                    "n_cells": stored.n_cells,
                    "share": stored.share,
                    "n_full_rows": stored.full_rows,
                    "n_labels": stored.n_labels_hit,
                },
                "ties": self.ties._asdict(),
                "takeover": self.takeover and self.takeover.to_dict(),
                "overlap": self.overlap and self.overlap._asdict(),
                "drift": self.drift.to_dict(),
                "shown": {name: each.to_dict() for name, each in self.shown.items()},
                "labels": self.label_columns(),
            }
        )

    def plot(
        self, what: Literal["overview", "waterfall", "ladder", "shifts", "regime"] = "overview"
    ) -> Any:
        """A matplotlib figure, made without pyplot: show it in a notebook or ``savefig`` it.

        Parameters
        ----------
        what : {"overview", "waterfall", "ladder", "shifts", "regime"}
            "overview" holds all that this diagnosis allows. The waterfall needs the twin and the
            weights, shifts need the weights, and the regime needs both and a loss.

        Examples
        --------
        >>> from oddslip import diagnose
        >>> from oddslip.datasets import synthetic_pair
        >>> pair = synthetic_pair(300, 9)
        >>> diagnosis = diagnose(pair.weighted, pair.labels, k=3, n_replicates=0)
        >>> diagnosis.plot("ladder").axes[0].get_xlabel()
        'MAP@3'
        """
        # Reports read results and so import this file. Here alone it goes the other way, when a
        # picture is asked for: matplotlib stays out until then.
        from oddslip.reports.figures.overview import draw_diagnosis

        return draw_diagnosis(self, what)

    def __repr__(self) -> str:
        """One short line: the verdict, the metric, and how much was looked at."""
        value = f"{self.metric_name} {score(self.ladder.value('raw'))}"
        rows = f"{self.n_rows:,} rows x {self.n_labels:,} labels"
        return f"Diagnosis({self.verdict.code}: {value}, {rows}, {len(self.findings)} findings)"

    def __str__(self) -> str:
        """What `oddslip diagnose` prints."""
        from oddslip.reports.text import PYTHON, as_text, show_diagnosis

        return as_text(show_diagnosis(self, reader=PYTHON))

    def _repr_html_(self) -> str:
        """Verdict, five rungs and three findings, without colours of its own."""
        ladder = self.ladder
        first = (
            "raw",
            "unweighted",
            "chosen",
            "isotonic",
            "inversion",
            "ceiling",
            "popularity",
            *ladder,
        )
        names = list(dict.fromkeys(name for name in first if name in ladder))[:5]
        rows = [
            [self.rung_name(name), score(ladder.value(name)), signed(ladder.gain(name).value)]
            for name in ladder
            if name in names
        ]
        caption = f"{len(rows)} of {len(ladder.rungs)} rungs, {ladder.n_evaluated:,} rows evaluated"
        table = html_table(["rung", self.metric_name, "minus raw"], rows, caption)
        findings = html_findings(self.findings[:3])
        return f"<div><p><b>{html_text(self.verdict.sentence)}</b></p>{table}{findings}</div>"
