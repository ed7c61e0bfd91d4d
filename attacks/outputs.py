"""Outputs that are inputs under another name, and files whose modes say who may read them."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import stat
from pathlib import Path

import numpy as np

from attacks.child import Attempt, try_in_child
from attacks.mutation import draw
from attacks.outcome import Outcome

TITLE = "Outputs that are inputs under another name, private and read-only files"
SLICE = 60
FULL = 800

# An output, and what it may be taken for; {scores} and {labels} are inputs.
COMMANDS = {
    "out.npy": "rank {scores} -k 2 -o {output}",
    "out.csv": "rank {scores} -k 2 -o {output}",
    "out.parquet": "rank {scores} -k 2 -o {output}",
    "out.oddslip": "fit {scores} {labels} --calibrator offset -o {output}",
    "out.json": "plan {labels} --rounds 3 --learning-rate 1 --json-file {output}",
    "log.jsonl": "check raw {scores} -k 2 --log {output}",
}
MODES = (0o600, 0o640, 0o644, 0o666, 0o660)


def attack(count: int, seed: int) -> Outcome:
    """Run commands; inputs stay as they are, outputs are whole and keep their modes."""
    return try_in_child("attacks.outputs", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Each try has a folder of its own."""
    from oddslip.cli.app import main

    scores = np.random.default_rng(0).random((40, 3))
    home = Path.cwd()

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        place = folder / "try"
        shutil.rmtree(place, ignore_errors=True)
        (place / "below").mkdir(parents=True)
        os.chdir(place)
        try:
            np.save("s.npy", scores)
            np.save("y.npy", (scores > 0.6).astype(np.int8))
            name = dice.choice(sorted(COMMANDS))
            return dice.choice((_overlap, _overlap, _modes, _read_only))(name, dice, main)
        finally:
            os.chdir(home)

    return attempt


def _run_quietly(run: object, line: str) -> tuple[int, str]:
    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        code = run(line.split())  # type: ignore[operator]
    return int(code), told.getvalue()


def _overlap(name: str, dice: random.Random, run: object) -> str:
    """The output is an input, by one of its names."""
    inputs = {"scores": "s.npy", "labels": "y.npy"}
    used = [each for each in inputs if f"{{{each}}}" in COMMANDS[name]]
    victim = inputs[dice.choice(used)]
    os.symlink(victim, "link")
    os.symlink("link", "link-to-link")
    os.link(victim, "hard")
    os.symlink(".", "here")
    aliases = (victim, f"./{victim}", f"below/../{victim}", f"here/{victim}", "link")
    aliases += ("link-to-link", "hard", str(Path(victim).absolute()))
    given = {each: f"here/{path}" if dice.random() < 0.3 else path for each, path in inputs.items()}
    before = {path: path.read_bytes() for path in Path().glob("?.npy")}
    names = sorted(os.listdir())
    code, told = _run_quietly(run, COMMANDS[name].format(output=dice.choice(aliases), **given))
    assert code == 2, f"{name} over {victim} ended with {code}"
    assert told.count("\n") == 1, told
    assert "must be another file than" in told, told
    assert before == {path: path.read_bytes() for path in before}, "an input was changed"
    assert sorted(os.listdir()) == names, "something was left behind"
    return "refused"


def _modes(name: str, dice: random.Random, run: object) -> str:
    """A file that is replaced keeps its mode, a new one follows the umask."""
    output, mask = Path("below") / name, dice.choice((0o022, 0o077, 0o002))
    mode = dice.choice((*MODES, None))
    if mode is not None:
        output.touch()
        output.chmod(mode)
    if dice.random() < 0.3:
        os.symlink(f"below/{name}", name)
        output = Path(name)
    before = os.umask(mask)
    try:
        line = COMMANDS[name].format(output=output, scores="s.npy", labels="y.npy")
        code, told = _run_quietly(run, line)
    finally:
        os.umask(before)
    assert code in (0, 3), told
    wanted = 0o666 & ~mask if mode is None else mode
    now = stat.S_IMODE((Path("below") / name).stat().st_mode)
    assert now == wanted, f"{name} had mode {wanted:o} and has {now:o}"
    assert os.listdir("below") == [name], "something was left behind"
    return "mode kept" if mode is not None else "umask followed"


def _read_only(name: str, dice: random.Random, run: object) -> str:
    """A read-only file stays as it is."""
    output = Path("below") / name
    output.write_text("dear")
    output.chmod(dice.choice((0o444, 0o400, 0o440)))
    line = COMMANDS[name].format(output=output, scores="s.npy", labels="y.npy")
    code, told = _run_quietly(run, line)
    assert (code, told.count("\n")) == (2, 1), told
    assert output.read_text() == "dear"
    return "read-only left alone"
