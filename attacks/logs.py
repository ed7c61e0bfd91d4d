"""Files that are given as the log of checks: logs, torn logs, and everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attacks.child import Attempt, refused, try_in_child
from attacks.mutation import draw, mutate_bytes
from attacks.outcome import Outcome

TITLE = "Logs of checks: torn, changed, or files of another kind"
SLICE = 200
FULL = 10_000
BEGINNING = b'{"when": "'  # of a record


def attack(count: int, seed: int) -> Outcome:
    """Append to what is there; it is refused as it is, or no record of it is lost."""
    return try_in_child("attacks.logs", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """One try in three tears a log, one changes it, one is of another kind."""
    import oddslip
    from oddslip.serving.check_log import append_check, read_checks

    result = oddslip.check(None, np.random.default_rng(0).random((20, 3)), k=1, threads=1)
    path = folder / "log.jsonl"
    for day in range(1, 4):
        append_check(path, result, when=f"2026-05-0{day}")
    log = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(log) if byte == 10]

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        kind = number % 3
        if kind == 0:
            raw = log[: dice.randrange(len(log) + 1)]
        elif kind == 1:
            raw = mutate_bytes(log, dice)
        else:
            raw = dice.randbytes(dice.randrange(1, 400))
            raw = dice.choice((raw, log[: ends[0]] + raw, b"{" + raw, b'{"when": 1}', b"[]\n"))
        path.write_bytes(raw)
        if refused(lambda: append_check(path, result, when="2026-06-01")):
            assert path.read_bytes() == raw, "a file that was refused was changed"
            assert kind, "a torn log was refused"
            return "refused"
        now = path.read_bytes()
        before = now[: now.rindex(b"\n", 0, -1) + 1] if now.count(b"\n") > 1 else b""
        torn = b"" if before == raw + b"\n" else raw[len(before) :]
        assert (raw + b"\n").startswith(before), "records were changed"
        is_beginning = torn.startswith(BEGINNING) or BEGINNING.startswith(torn)
        assert is_beginning, f"cut off: {torn!r:.100}"
        assert b"\n" not in torn, f"cut off: {torn!r:.100}"
        assert read_checks(path)[-1]["when"] == "2026-06-01"
        return "appended"

    return attempt
