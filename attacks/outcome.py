"""What a campaign came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How often a campaign tried, what broke, and what else is worth a word in the table."""

    tried: int
    failures: tuple[str, ...]
    notes: str = ""
