"""Realized against intended shift, label by label, with what the step budget allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from oddslip.core.results import plain
from oddslip.core.types import Array, Bools, Floats, Ints, JsonObject
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.thresholds import (
    LOGARITHMS,
    MIN_LABELS,
    OVERSHOOTING,
    OVERSHOT,
    RELATED,
    UNTRACED,
)
from oddslip.shifts import (
    InversionBounds,
    RealizedShift,
    Residual,
    direct_shift,
    inversion_bounds,
    over_correction,
    residual,
    unrealizable,
)
from oddslip.sources import open_source

PRECISION = 0.05  # nat squared: shifts are not compared more finely than about a fifth of a nat
NO_SHIFT = 1e-6  # nat: below this a weight intends nothing, and its ratio says nothing


Fit = Literal["fits", "no trace", "reversed", "unrelated", "logarithms"]


class WeightFit(NamedTuple):
    """The line of realized shifts over ln w, and whether the weights can have made them.

    ``size`` is that of the realized shifts over that of ln w, each as a root mean square.
    """

    fit: Fit
    slope: float
    correlation: float
    size: float
    n_labels: int


@dataclass(frozen=True, slots=True, eq=False)
class LabelShifts:
    """Shifts in nat, one per label.

    ``intended`` is ln w_j and needs weights; ``direct`` needs the twin and is the median over
    ``n_direct_rows`` rows, all of them unless there are very many; ``residual`` is what the
    inversion leaves on the same rows, and needs weights too; ``over_correction`` and ``inversion``,
    the bounds on what it can do, need weights and the budget.
    """

    realized: Floats
    identified: Bools
    intended: Floats | None = None
    direct: Floats | None = None
    n_direct_rows: int = 0
    budget: float | None = None
    unrealizable: Bools | None = None
    over_correction: Floats | None = None
    residual: Residual | None = None
    inversion: InversionBounds | None = None

    @property
    def weighted(self) -> Bools:
        """Labels whose weight intends a shift."""
        if self.intended is None:
            return np.zeros_like(self.identified)
        return np.asarray(np.abs(self.intended) > NO_SHIFT)

    @property
    def ratio(self) -> Floats:
        """Realized over intended shift; NaN where it is not identified or nothing is intended."""
        valid = self.identified & self.weighted
        ratio = np.full(self.realized.size, np.nan)
        if self.intended is not None:
            np.divide(self.realized, self.intended, out=ratio, where=valid)
        return ratio

    @property
    def n_known(self) -> int:
        """Labels with a ratio."""
        return int((self.identified & self.weighted).sum())

    @property
    def median_ratio(self) -> float | None:
        """Median of realized over intended shift; None where no label has one."""
        ratio = self.ratio
        values = ratio[~np.isnan(ratio)]
        return float(np.median(values)) if values.size else None

    @property
    def median_direct_ratio(self) -> float | None:
        """The same for the direct shift."""
        if self.direct is None or self.intended is None:
            return None
        valid = self.weighted & ~np.isnan(self.direct)
        return float(np.median(self.direct[valid] / self.intended[valid])) if valid.any() else None

    @property
    def reachable(self) -> Floats | None:
        """The intended shift as far as the step budget admits it."""
        if self.intended is None or self.budget is None:
            return self.intended
        return np.clip(self.intended, -self.budget, self.budget)

    def size(self, n_positives: Ints) -> float | None:
        """Root mean square of the realized shifts beyond the error of a prior of n positives.

        Saturated labels count too: where their mean fits the prior, they carry no shift. None
        where too few labels tell.
        """
        valid = np.isfinite(self.realized) & (n_positives > 0)
        if valid.sum() < MIN_LABELS:
            return None
        share, noise = _precision(n_positives[valid])
        return float(np.sqrt(max(0.0, float(share @ self.realized[valid] ** 2) - noise)))

    def hold_against_weights(self, n_positives: Ints) -> WeightFit | None:
        """Whether these weights can have made these shifts; None where too few labels tell.

        A prior that rests on n positives is off by about 1 / sqrt(n) nat. Labels count by that,
        and it is taken off the spread of the shifts.
        """
        if self.intended is None:
            return None
        valid = self.identified & np.isfinite(self.realized) & (n_positives > 0)
        if self.budget is not None:  # beyond it, no shift tells what was intended
            valid &= np.abs(self.intended) <= self.budget
        if valid.sum() < MIN_LABELS:
            return None
        shift, ln_w = self.realized[valid], self.intended[valid]
        error = 1.0 / n_positives[valid]
        share, noise = _precision(n_positives[valid])
        deviation, weight_deviation = shift - share @ shift, ln_w - share @ ln_w
        spread, reach = float(share @ deviation**2), float(share @ weight_deviation**2)
        if reach <= NO_SHIFT:
            return None
        slope = float(share @ (deviation * weight_deviation)) / reach
        related = slope * np.sqrt(reach / spread) if spread > 0 else 0.0
        traced = max(0.0, float(share @ shift**2) - noise)
        size = np.sqrt(traced / float(share @ ln_w**2))
        weights = np.exp(ln_w)
        misfit = max(0.0, float(share @ (shift - weights) ** 2) - noise)
        # A learner falls short of ln w, or meets a cap. Far beyond it, the weight was another one.
        beyond = shift * np.sign(ln_w) - np.abs(ln_w)
        overshoots = beyond > OVERSHOT + 2.0 * np.sqrt(error)
        fit: Fit = "fits"
        if misfit < LOGARITHMS**2 * float(share @ weights**2):
            fit = "logarithms"
        elif size < UNTRACED:
            fit = "no trace"
        elif related < -RELATED and np.median(shift * np.sign(ln_w)) < 0:
            fit = "reversed"
        elif abs(related) < RELATED and share @ overshoots > OVERSHOOTING:
            fit = "unrelated"
        return WeightFit(fit, slope, float(related), float(size), int(valid.sum()))

    def to_dict(self) -> JsonObject:
        """The summary, in built-in types; the columns are in the table of labels."""
        sizes = np.abs(self.realized[self.identified])
        return plain(  # type: ignore[no-any-return]
            {
                "n_identified": int(self.identified.sum()),
                "n_weighted": int(self.weighted.sum()),
                "n_known": self.n_known,
                "median_ratio": self.median_ratio,
                "median_direct_ratio": self.median_direct_ratio,
                "n_direct_rows": self.n_direct_rows,
                "largest_realized": float(sizes.max()) if sizes.size else None,
                "largest_intended": (
                    None if self.intended is None else float(np.abs(self.intended).max())
                ),
                "budget": self.budget,
                "unbounded": self.budget is not None and not np.isfinite(self.budget),
                "n_unrealizable": (
                    None if self.unrealizable is None else int(self.unrealizable.sum())
                ),
                "residual": self.residual and self.residual.to_dict(),
                "inversion": self.inversion and self.inversion.to_dict(),
            }
        )


def _precision(n_positives: Ints) -> tuple[Floats, float]:
    """By how much labels count, and the squared error that their priors have on average."""
    error = 1.0 / n_positives
    share = 1.0 / (error + PRECISION)
    share /= share.sum()
    return share, float(share @ error)


def find_shifts(
    case: Case, realized: RealizedShift, samples: tuple[Array, Array] | None
) -> LabelShifts:
    """All shifts that the case allows.

    The direct shift is that of ``samples``, the same rows of model and twin: finding every median
    of very many rows to the last bit takes many passes, and thousands of rows tell it well.
    """
    direct, n_direct, rest = None, 0, None
    weights, budget = case.weights, case.budget
    if samples is not None and case.twin is not None:
        kinds = case.arm.kind, case.twin.kind
        arm, twin = (  # NaN where a cell is absent
            open_source(scores, kind=kind, nan="absent")
            for scores, kind in zip(samples, kinds, strict=True)
        )
        direct = direct_shift(arm, twin)
        n_direct = len(samples[0])
        if weights is not None:
            rest = residual(arm, twin, weights)
    bounded = weights is not None and budget is not None
    return LabelShifts(
        realized=realized.shift,
        identified=realized.identified,
        intended=None if weights is None else np.log(weights),
        direct=direct,
        n_direct_rows=n_direct,
        budget=budget,
        unrealizable=unrealizable(weights, budget) if bounded else None,  # type: ignore[arg-type]
        over_correction=over_correction(weights, budget) if bounded else None,  # type: ignore[arg-type]
        residual=rest,
        inversion=inversion_bounds(weights, budget) if bounded else None,  # type: ignore[arg-type]
    )
