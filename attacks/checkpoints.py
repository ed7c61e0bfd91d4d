"""Checkpoints of a training, changed: plan and finished groups, bytes or sealed anew."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from attacks.cells import seal
from attacks.child import Attempt, refused, try_in_child
from attacks.containers import put_together, take_apart
from attacks.model_files import make_rows
from attacks.models import change_group
from attacks.mutation import draw, mutate_bytes, mutate_json, nest
from attacks.outcome import Outcome

TITLE = "Checkpoints of trainings, changed and resealed"
SLICE = 150
FULL = 20_000
LEARNERS = {"logistic": {}, "lightgbm": {"num_iterations": 2, "num_leaves": 4}}


def attack(count: int, seed: int) -> Outcome:
    """Continue from what was changed; it is refused, or the model is that of the whole training."""
    return try_in_child("attacks.checkpoints", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Every second try leaves the checksums as they were."""
    from oddslip.learners import OneVsRest

    X, Y = make_rows()
    place = folder / "checkpoint"

    def train(learner: str) -> Any:
        model = OneVsRest(
            learner, parameters=LEARNERS[learner], threads=1, checkpoint=place, memory_bytes=1
        )
        return model.fit(X, Y).predict_margin(X[:20])

    kept, margins = {}, {}
    for learner in LEARNERS:
        shutil.rmtree(place, ignore_errors=True)
        margins[learner] = train(learner)
        kept[learner] = {path.name: path.read_bytes() for path in place.iterdir()}

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        learner = "lightgbm" if number % 10 < 2 else "logistic"
        files = dict(kept[learner])
        name = dice.choice(sorted(files))
        sealed = number % 2 == 1
        change = _reseal if sealed else mutate_bytes_of
        files[name] = change(learner, name, files[name], dice)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for each, raw in files.items():
            (place / each).write_bytes(raw)
        found: list[Any] = []
        if refused(lambda: found.append(train(learner))):
            return "refused" if sealed else "refused unsealed"
        if not np.isfinite(found[0]).all():
            raise AssertionError(f"{name}: margins must be finite")
        if not sealed and not np.array_equal(found[0], margins[learner]):
            raise AssertionError(f"{name}: a checkpoint whose checksum is wrong gave other margins")
        return "valid" if sealed else "unsealed, same margins"

    return attempt


def mutate_bytes_of(learner: str, name: str, raw: bytes, dice: random.Random) -> bytes:
    """The file with other bytes and the old checksum."""
    return mutate_bytes(raw, dice)


def _reseal(learner: str, name: str, raw: bytes, dice: random.Random) -> bytes:
    if name.endswith(".json"):
        text = json.dumps(seal(mutate_json(json.loads(raw), dice))).encode()
        return nest(text, dice) if dice.random() < 0.005 else text
    header, bodies = take_apart(raw)
    body = change_group(learner, bodies["model"], dice)
    if dice.random() < 0.25:  # as versions 0.1 and 0.2 wrote it
        return hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    return put_together(header, {"model": body})
