"""Saved models of every learner, changed: bytes of the file, or contents under right checksums."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from attacks.child import Attempt, refused, try_in_child
from attacks.model_files import (
    HEAD,
    QUICK,
    retell_sizes,
    saved,
    score_rows,
    seal,
    seal_older,
    split_group,
)
from attacks.mutation import draw, mutate_bytes, mutate_json, nest
from attacks.outcome import Outcome

TITLE = "Saved models of LightGBM, XGBoost, logistic and MLP, changed and resealed"
SLICE = 300
FULL = 20_000
_WORDS = (
    "-1",
    "0",
    "1",
    "2",
    "5",
    "6",
    "7",
    "63",
    "64",
    "65",
    "1000",
    "2147483647",
    "-2147483648",
    "4294967296",
    "nan",
    "inf",
    "1e308",
    "1e-320",
    "1e999",
    "-1e-999",
    "",
    " ",
    "-",
    "x",
)
Parts = tuple[Any, dict[str, bytes]]


def attack(count: int, seed: int) -> Outcome:
    """Load what was changed; it is refused in one line, or scores rows by finite numbers."""
    return try_in_child("attacks.models", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Every third try leaves the checksums as they were."""
    from oddslip.learners import OneVsRest

    path = folder / "changed.oddmodel"
    margins = {}
    for name in QUICK:
        seal(path, *_parts(name))
        margins[name] = score_rows(OneVsRest.load(path))
    names = list(QUICK)

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        name = names[number // 3 % len(names)]
        older = dice.random() < 0.25
        write = seal_older if older else seal
        if number % 3 == 0:
            write(path, *_parts(name))
            path.write_bytes(mutate_bytes(path.read_bytes(), dice))
            scores: list[Any] = []
            if refused(lambda: scores.append(score_rows(OneVsRest.load(path)))):
                return "refused unsealed"
            # Dates, attributes and comments of an older archive are in no checksum.
            if older and np.array_equal(scores[0], margins[name]):
                return "unsealed, same scores"
            raise AssertionError("a file whose checksum is wrong was loaded")
        write(path, *change_model(name, dice))
        if refused(lambda: score_rows(OneVsRest.load(path))):
            return "refused"
        return "valid"

    return attempt


def _parts(name: str) -> Parts:
    """Head and groups of a good model."""
    parts = dict(saved(name))
    return json.loads(parts.pop(HEAD)), parts


def change_model(name: str, dice: random.Random) -> Parts:
    """Head and groups of a good model after a change of either."""
    head, parts = _parts(name)
    if dice.random() < 0.15:
        return _change_head(head, dice), parts
    group = dice.choice(sorted(parts))
    parts[group] = change_group(name, parts[group], dice)
    return head, parts


def change_group(name: str, raw: bytes, dice: random.Random) -> bytes:
    """A group of labels after a change, in the form of its learner."""
    if name in ("lightgbm", "linear"):
        return _change_text(raw, dice)
    return mutate_bytes(raw, dice) if name in ("xgboost", "dart") else _change_arrays(raw, dice)


def _change_head(head: dict[str, Any], dice: random.Random) -> Any:
    if dice.random() < 0.1:
        text = json.dumps(head).encode()
        return nest(text, dice) if dice.random() < 0.1 else mutate_bytes(text, dice)
    return mutate_json(head, dice)


# --- Arrays of logistic models and MLPs -----------------------------------------------------------


def _change_arrays(raw: bytes, dice: random.Random) -> bytes:
    """Cells or headers of the arrays in an .npz, whose own sums are right again; or its bytes."""
    if dice.random() < 0.2:
        return mutate_bytes(raw, dice)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = dice.choice(sorted(members))
    if dice.random() < 0.1:
        del members[name]
    elif dice.random() < 0.1:
        members[name] = members[dice.choice(sorted(members))]
    else:
        members[name] = mutate_bytes(members[name], dice)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for each, body in members.items():
            archive.writestr(each, body)
    return file.getvalue()


# --- LightGBM's text ------------------------------------------------------------------------------


def _change_text(group: bytes, dice: random.Random) -> bytes:
    """Trees changed by structure or by bytes; lengths and tree sizes are mostly put right."""
    line, text = split_group(group)
    lengths = list(line["lengths"])
    which = dice.randrange(len(lengths))
    at = sum(lengths[:which])
    before, model, after = text[:at], text[at : at + lengths[which]], text[at + lengths[which] :]
    for _ in range(dice.randrange(1, 4)):
        model = (_change_line if dice.random() < 0.7 else _change_letters)(model, dice)
    if dice.random() < 0.8:
        model = retell_sizes(model)
    raw = model.encode("latin-1", "replace")
    if dice.random() < 0.95:
        lengths[which] = len(raw)
    line = {**line, "lengths": lengths}
    if dice.random() < 0.05:
        line = mutate_json(line, dice)
    return json.dumps(line).encode() + b"\n" + before.encode() + raw + after.encode()


def _change_line(text: str, dice: random.Random) -> str:
    end = text.find("end of trees")
    lines = text[: end if end > 0 and dice.random() < 0.95 else len(text)].split("\n")
    rest = text[len("\n".join(lines)) :]
    at = dice.randrange(len(lines))
    key, equals, value = lines[at].partition("=")
    words, drawn = value.split(" "), dice.random()
    if drawn < 0.6 and equals:
        word = dice.choice(_WORDS) if dice.random() < 0.5 else str(dice.randrange(-8, 8))
        words[dice.randrange(len(words))] = word
        lines[at] = f"{key}={' '.join(words)}"
    elif drawn < 0.7 and equals:
        words = words[: dice.randrange(len(words) + 1)] if dice.random() < 0.5 else words + words
        lines[at] = f"{key}={' '.join(words)}"
    elif drawn < 0.8:
        del lines[at]
    elif drawn < 0.9:
        lines.insert(dice.randrange(len(lines)), lines[at])
    else:
        other = dice.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines) + rest


def _change_letters(text: str, dice: random.Random) -> str:
    return mutate_bytes(text.encode("latin-1", "replace"), dice).decode("latin-1")
