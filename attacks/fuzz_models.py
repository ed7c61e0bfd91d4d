"""A long fuzz of the LightGBM model loader: trees, lengths and heads under right checksums."""

from __future__ import annotations

from pathlib import Path

from attacks.child import Attempt, refused, try_in_child
from attacks.model_files import score_rows, seal
from attacks.models import change_model
from attacks.mutation import draw
from attacks.outcome import Outcome

TITLE = "Fuzz of the LightGBM model loader"
SLICE = 100
FULL = 100_000


def attack(count: int, seed: int) -> Outcome:
    """Load what was changed; it is refused in one line, or scores rows by finite numbers."""
    return try_in_child("attacks.fuzz_models", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """All tries are resealed; every fifth is of trees with linear leaves."""
    from oddslip.learners import OneVsRest

    path = folder / "changed.oddmodel"

    def attempt(number: int) -> str:
        name = "linear" if number % 5 == 0 else "lightgbm"
        seal(path, *change_model(name, draw(seed, number)))
        return "refused" if refused(lambda: score_rows(OneVsRest.load(path))) else "valid"

    return attempt
