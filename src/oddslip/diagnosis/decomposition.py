"""The loss of a matched pair, split by its cause and by what a per-label map returns."""

from __future__ import annotations

from dataclasses import dataclass

from oddslip.core.results import plain
from oddslip.core.types import JsonObject
from oddslip.diagnosis.ladder import REPAIRS, Ladder


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """Parts of the loss, in units of the metric. Each split adds up to the loss.

    Attributes
    ----------
    loss : float
        metric(unweighted) - metric(weighted).
    odds : float or None
        metric(unweighted) - metric(what-if): what the ideal weighted model loses. Needs weights.
    slippage : float or None
        The rest: loss - odds.
    recoverable_slippage : float or None
        Slippage without the tie residue: what per-label maps can reach of it.
    tie_residue : float
        metric(unweighted) - ceiling. Below zero where the ceiling is above the twin.
    isotonic : float or None
        What per-label isotonic returns. Needs calibration positives.
    estimation : float or None
        Ceiling less isotonic: what few calibration rows cost the map.
    returned : dict
        Share of the loss that each repair returns; empty where the loss is not positive.
    """

    metric: str
    loss: float
    odds: float | None
    slippage: float | None
    recoverable_slippage: float | None
    tie_residue: float
    isotonic: float | None
    estimation: float | None
    returned: dict[str, float]

    @property
    def by_cause(self) -> dict[str, float] | None:
        """Odds shift, slippage within reach of per-label maps, ties: they add up to the loss."""
        if self.odds is None or self.recoverable_slippage is None:
            return None
        return {
            "odds": self.odds,
            "recoverable_slippage": self.recoverable_slippage,
            "tie_residue": self.tie_residue,
        }

    @property
    def by_repair(self) -> dict[str, float] | None:
        """Returned by isotonic, lost to its estimation, ties: they add up to the loss."""
        if self.isotonic is None or self.estimation is None:
            return None
        return {
            "isotonic": self.isotonic,
            "estimation": self.estimation,
            "tie_residue": self.tie_residue,
        }

    def share(self, part: str) -> float | None:
        """A part as a share of the loss; None where there is no loss or no such part."""
        value: float | None = getattr(self, part)
        return None if value is None or self.loss <= 0 else value / self.loss

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        parts = (
            "odds",
            "slippage",
            "recoverable_slippage",
            "tie_residue",
            "isotonic",
            "estimation",
        )
        return plain(  # type: ignore[no-any-return]
            {
                "metric": self.metric,
                "loss": self.loss,
                "parts": {part: getattr(self, part) for part in parts},
                "shares": {part: self.share(part) for part in parts},
                "returned": self.returned,
            }
        )


def decompose(ladder: Ladder) -> Decomposition | None:
    """Split the loss of a ladder that holds the twin, in its metric; None without it."""
    if "unweighted" not in ladder:
        return None
    unweighted, weighted = ladder.value("unweighted"), ladder.value("raw")
    loss = unweighted - weighted
    ceiling = ladder.value("ceiling")
    residue = unweighted - ceiling
    odds = isotonic = None
    if "what-if" in ladder:
        odds = unweighted - ladder.value("what-if")
    if "isotonic" in ladder:
        isotonic = ladder.value("isotonic") - weighted
    returned = {}
    if loss > 0:
        names = [name for name in (*REPAIRS, "isotonic, identity", "ceiling") if name in ladder]
        returned = {name: (ladder.value(name) - weighted) / loss for name in names}
    return Decomposition(
        metric=ladder.metric,
        loss=loss,
        odds=odds,
        slippage=None if odds is None else loss - odds,
        recoverable_slippage=None if odds is None else loss - odds - residue,
        tie_residue=residue,
        isotonic=isotonic,
        estimation=None if isotonic is None else loss - isotonic - residue,
        returned=returned,
    )
