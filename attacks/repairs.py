"""Saved repairs, changed: bytes (the checksum must say so), or contents under a right checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attacks.child import Attempt, refused, try_in_child
from attacks.containers import put_together, put_together_version_2, take_apart
from attacks.mutation import draw, mutate_bytes, mutate_json, nest
from attacks.outcome import Outcome

TITLE = "Saved repairs, changed and resealed"
SLICE = 600
FULL = 20_000


def attack(count: int, seed: int) -> Outcome:
    """Load what was changed; it is refused in one line, or ranks and gives probabilities."""
    return try_in_child("attacks.repairs", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Every third try leaves the checksum as it was."""
    import numpy as np

    from oddslip import load_repair

    saved = make_repairs(folder)
    path = folder / "changed.oddslip"
    scores = np.linspace(0.01, 0.99, 24).reshape(6, 4)

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        raw = saved[number % len(saved)]
        if number % 3 == 0:
            path.write_bytes(mutate_bytes(raw, dice))
            if refused(lambda: load_repair(path)):
                return "refused by checksum"
            raise AssertionError("a file whose checksum is wrong was loaded")
        path.write_bytes(reseal(raw, dice))
        if refused(lambda: _use(load_repair(path), scores, folder)):
            return "refused"
        return "valid"

    return attempt


def make_repairs(folder: Path) -> list[bytes]:
    """Repairs of several calibrators, as they are saved."""
    import numpy as np

    from oddslip import calibrators

    rng = np.random.default_rng(0)
    scores = rng.random((80, 4))
    labels = rng.random((80, 4)) < scores
    labels[:, 3] = False  # a dead one
    prior = [0.5, 0.4, 0.3, 0.1]
    fitted = [
        calibrators.Isotonic(prior=prior),
        calibrators.Isotonic(interpolation="step", dead="exclude", prior=prior),
        calibrators.Platt(prior=prior),
        calibrators.Beta(prior=prior),
        calibrators.PooledIsotonic(),
        calibrators.Offset(prior=prior),
        calibrators.Inversion(weights=[2.0, 3.0, 4.0, 5.0]),
    ]
    saved = []
    for named, calibrator in enumerate(fitted):
        names = [f"label {j}" for j in range(4)] if named % 2 else None
        calibrator.fit(scores, labels, label_names=names)
        calibrator.save(folder / "good.oddslip")
        saved.append((folder / "good.oddslip").read_bytes())
    return saved


def reseal(raw: bytes, dice: Any) -> bytes:
    """The file with its header, its arrays or a length changed, under right checksums.

    Every fourth is written as versions 0.1 and 0.2 did.
    """
    header, bodies = take_apart(raw)
    older = dice.random() < 0.25
    members, what = header["members"], dice.randrange(10)
    meta: Any = header["meta"]
    if what <= 4:
        meta = mutate_json(meta, dice)
    elif what == 5:
        text = json.dumps(header).encode()
        meta = nest(text, dice) if dice.random() < 0.02 else mutate_bytes(text, dice)
    elif what == 6:
        members = mutate_json(members, dice)
    else:
        name = dice.choice(sorted(bodies))
        bodies[name] = mutate_bytes(bodies[name], dice) if bodies[name] else b"\0"
    if older and (what != 6 or _is_listed(members)):
        return put_together_version_2(meta, members, bodies)
    if isinstance(meta, bytes):
        return put_together(meta, bodies)
    header = {"kind": "repair", "meta": meta, "members": members}
    return put_together(header, bodies, adjust=what not in (6, 9))


def _is_listed(members: Any) -> bool:
    """Whether these can be listed as older versions did."""
    keys = {"name", "dtype", "shape"}
    return isinstance(members, list) and all(
        isinstance(each, dict) and keys <= each.keys() for each in members
    )


def _use(repair: Any, scores: Any, folder: Path) -> None:
    """A repair that is let through must work: probabilities, rankings, and saved again."""
    import numpy as np

    from oddslip import load_repair

    if repair.maps.n_labels != scores.shape[1]:
        raise AssertionError(f"a repair of {repair.maps.n_labels} labels was let through")
    cells = repair.transform(scores, threads=1)
    # A label may be set to rank below all others, and margins are mapped from probabilities.
    if np.isnan(cells).any() or (np.isfinite(cells) & ((cells < 0) | (cells > 1))).any():
        raise AssertionError(f"probabilities must be in [0, 1], got {cells.min()}, {cells.max()}")
    ranking = np.sort(repair.rank(scores, k=4, threads=1), axis=1)
    if not (ranking == np.arange(4)).all():
        raise AssertionError("a ranking must hold every label once")
    record, n_rows = repair.record, repair.n_rows
    if n_rows < 0 or not ((record.n_positives >= 0) & (record.n_positives <= n_rows)).all():
        raise AssertionError(f"positives must be among n_rows={n_rows}, got {record.n_positives}")
    if ((record.prior < 0) | (record.prior > 1)).any() or record.n_dead > 4:
        raise AssertionError(f"a record must add up, got {record}")
    json.dumps(repair.to_dict(), allow_nan=False)
    repair.save(folder / "again.oddslip")
    if not np.array_equal(load_repair(folder / "again.oddslip").transform(scores), cells):
        raise AssertionError("a repair saved again must give the same probabilities")
