"""How numbers are written, in sentences, tables and pictures alike.

A fact that a page, a figure, a terminal and a finding show is written here, so that it reads the
same in each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Interval(Protocol):
    """A number and the ends of its interval, which are NaN where none was asked for."""

    @property
    def value(self) -> float:
        """The number."""
        ...

    @property
    def low(self) -> float:
        """The lower end."""
        ...

    @property
    def high(self) -> float:
        """The upper end."""
        ...


# ----------------------------------------------------------------------- metrics and their changes


def score(value: float) -> str:
    """A metric, or a part of it."""
    return f"{value:z.4f}"


def signed(change: float, digits: int = 4) -> str:
    """A change of a metric with its sign.

    Examples
    --------
    >>> signed(0.01234), signed(-0.5, 2), signed(-0.0)
    ('+0.0123', '-0.50', '+0.0000')
    """
    return f"{change:+z.{digits}f}"


def has_interval(estimate: Interval) -> bool:
    """Whether an interval was asked for."""
    return math.isfinite(estimate.low) and math.isfinite(estimate.high)


def interval(estimate: Interval) -> str:
    """The interval of an estimate, or a dash where none was asked for."""
    if not has_interval(estimate):
        return "-"
    return f"{score(estimate.low)} to {score(estimate.high)}"


def signed_interval(difference: Interval) -> str:
    """The interval of a difference, or a dash where none was asked for."""
    if not has_interval(difference):
        return "-"
    return f"{signed(difference.low)} to {signed(difference.high)}"


def estimated(estimate: Interval) -> str:
    """An estimate in one piece; the value alone where no interval was asked for."""
    if not has_interval(estimate):
        return score(estimate.value)
    return f"{score(estimate.value)} [{score(estimate.low)}, {score(estimate.high)}]"


def signed_estimate(difference: Interval) -> str:
    """A difference in one piece; the value alone where no interval was asked for."""
    if not has_interval(difference):
        return signed(difference.value)
    ends = f"{signed(difference.low)}, {signed(difference.high)}"
    return f"{signed(difference.value)} [{ends}]"


def level_name(level: float) -> str:
    """The level of an interval, all its digits.

    Examples
    --------
    >>> level_name(0.95), level_name(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:g}%"


# ----------------------------------------------------------------------------- shares and counts


def percent(share: float, digits: int = 0) -> str:
    """A share of a loss or of a level in percent, with its minus where it has one.

    Examples
    --------
    >>> percent(0.166), percent(-3.65), percent(-0.001)
    ('17%', '-365%', '0%')
    """
    return f"{share:z.{digits}%}"


def small_percent(share: float) -> str:
    """A share of rows or cells: what is not none does not look like it, nor what is not all.

    Examples
    --------
    >>> [small_percent(share) for share in (0, 0.0007, 0.166, 0.9999, 1)]
    ['0%', '<0.1%', '16.6%', '>99.9%', '100%']
    """
    if share in (0, 1):
        return percent(share)
    if 0 < share < 0.001:
        return "<0.1%"
    return ">99.9%" if 0.999 < share < 1 else percent(share, 1)


def share_of(n: int, n_all: int) -> str:
    """So many of all rows, as a share of them."""
    return small_percent(n / max(1, n_all))


def count_of(n: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> count_of(1, "label"), count_of(1200, "label")
    ('1 label', '1,200 labels')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


# ----------------------------------------------------------------------------- weights and shifts


def times(ratio: float | None) -> str:
    """How much of the intended shift was realized."""
    return "not known" if ratio is None else f"{ratio:z.2f}"


def nat(shift: float) -> str:
    """A shift, a step budget or a cap, without its unit.

    Examples
    --------
    >>> nat(3.0), nat(0.1 * 3), nat(0.04567)
    ('3', '0.3', '0.0457')
    """
    return f"{shift:.3g}" if abs(shift) < 999.5 else f"{shift:,.0f}"


def weight_text(weight: float) -> str:
    """A positive weight, without an exponent.

    Examples
    --------
    >>> weight_text(1.0), weight_text(4.2587), weight_text(12345.6)
    ('1', '4.259', '12,346')
    """
    return f"{weight:.4g}" if abs(weight) < 9999.5 else f"{weight:,.0f}"


# ----------------------------------------------------------------------------------- any value


def value_text(value: Any) -> str:
    """A value of evidence, of a label or of provenance; a dash for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {value_text(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(value_text(item) for item in value)
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return value_text(value.tolist())
    return str(value)
