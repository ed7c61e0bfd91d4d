"""A long fuzz of the saved-repair loader, of files with a right checksum and without."""

from __future__ import annotations

from pathlib import Path

from attacks.child import Attempt, refused, try_in_child
from attacks.mutation import draw, mutate_bytes
from attacks.outcome import Outcome
from attacks.repairs import make_repairs, reseal

TITLE = "Fuzz of the saved-repair loader"
SLICE = 1_000
FULL = 1_000_000


def attack(count: int, seed: int) -> Outcome:
    """Load what was changed: it is refused in one line, or it is a repair."""
    return try_in_child("attacks.fuzz_repairs", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """One try in ten leaves the checksum as it was: nothing behind it is reached."""
    from oddslip import load_repair

    saved = make_repairs(folder)
    path = folder / "changed.oddslip"

    def attempt(number: int) -> str:
        dice, raw = draw(seed, number), saved[number % len(saved)]
        sealed = number % 10 != 0
        path.write_bytes(reseal(raw, dice) if sealed else mutate_bytes(raw, dice))
        if refused(lambda: load_repair(path)):
            return "refused"
        if not sealed:
            raise AssertionError("a file whose checksum is wrong was loaded")
        return "valid"

    return attempt
