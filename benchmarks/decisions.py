"""Thresholds and guarantees beside scikit-learn's and MAPIE's, on the same calibrated rows.

A threshold of each label for its F1, by `TunedThresholdClassifierCV`, and lists that miss at most a
tenth of a row's labels, by MAPIE's conformal risk control. Both get the probabilities of our
repair. What is reached is measured on new rows. MAPIE is left out where it is not installed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import f1_score
from sklearn.model_selection import TunedThresholdClassifierCV

import oddslip
from benchmarks.timing import Times, line, take_time, title
from benchmarks.wide import make_panel

ALPHA = 0.1

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Size(NamedTuple):
    n_rows: int  # of the repair, of a decision, and to judge it: each as many
    n_labels: int
    n_draws: int


REAL = Size(3_000, 100, n_draws=20)
TOY = Size(300, 8, n_draws=2)


class World(NamedTuple):
    """A repair, and rows that it was not fitted on, as scores and as probabilities."""

    repair: oddslip.Repair
    scores: NDArray[np.float32]
    probabilities: Floats
    labels: Bools

    @classmethod
    def draw(cls, size: Size) -> World:
        scores, labels = make_panel(3 * size.n_rows, size.n_labels)
        repair = oddslip.Repair(k=3).fit(scores[: size.n_rows], labels[: size.n_rows])
        rest = scores[size.n_rows :]
        probabilities = np.asarray(repair.transform(rest), np.float64)
        return cls(repair, rest, probabilities, labels[size.n_rows :])

    def split(self, draw: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows to fit a decision on, all with a true label, and as many new ones."""
        order = np.random.default_rng(draw).permutation(np.flatnonzero(self.labels.any(axis=1)))
        first, second = np.array_split(order, 2)
        return first, second


class Column(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose only feature is the probability."""

    def fit(self, x: Any, y: Any) -> Column:
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, x: Floats) -> Floats:
        return np.column_stack([1 - x[:, 0], x[:, 0]])

    def predict(self, x: Floats) -> NDArray[np.int64]:
        return (x[:, 0] >= 0.5).astype(np.int64)


def show_by_peer(world: World, rows: Any, new: Any) -> Bools:
    """Labels of new rows above the thresholds of scikit-learn, label by label."""
    shown = np.zeros((len(new), world.labels.shape[1]), np.bool_)
    for label in range(shown.shape[1]):
        x, y = world.probabilities[rows, label, None], world.labels[rows, label].astype(int)
        if y.min() < y.max():  # else it has no F1
            fitted = Column().fit(x, y)
            tuned = TunedThresholdClassifierCV(fitted, scoring="f1", cv="prefit", refit=False)
            shown[:, label] = tuned.fit(x, y).predict(world.probabilities[new, label, None])
    return shown


def show(world: World, rows: Any, new: Any, *rule: str, **goal: Any) -> Bools:
    """Labels of new rows that are shown by a decision fitted on some rows."""
    decision = oddslip.Decision(world.repair, *rule, **goal)
    decision.fit(world.scores[rows], world.labels[rows])
    lists = decision.lists(world.scores[new])
    shown = np.zeros((len(new), world.labels.shape[1]), np.bool_)
    place = np.nonzero(lists >= 0)
    shown[place[0], lists[place]] = True
    return shown


def show_by_mapie(world: World, rows: Any, new: Any) -> Bools:
    """Labels of new rows that MAPIE's risk control shows."""
    from mapie.risk_control import MultiLabelClassificationController

    control = MultiLabelClassificationController(lambda x: x, target_level=1 - ALPHA)
    control.calibrate(world.probabilities[rows], world.labels[rows].astype(int))
    return np.asarray(control.predict(world.probabilities[new]))[:, :, 0].astype(np.bool_)


def run(size: Size) -> None:
    world = World.draw(size)
    title(f"a threshold per label for F1, {size.n_rows:,} x {size.n_labels}")
    rows, new = world.split(0)
    ours, times = take_time(lambda: show(world, rows, new, goal="f1"))
    line("Decision, F1 of each label", times, note=_f1(world, new, ours))
    theirs, others = take_time(lambda: show_by_peer(world, rows, new))
    line("scikit-learn, label by label", others, times, note=_f1(world, new, theirs))

    title(f"at most {ALPHA:g} of a row's labels missed, {size.n_draws} draws of the rows")
    missed = ("common_threshold",), {"goal": "missed", "target": ALPHA}
    times = compare(
        "Decision, missed",
        world,
        size.n_draws,
        lambda rows, new: show(world, rows, new, *missed[0], **missed[1]),
    )
    try:
        import mapie  # noqa: F401
    except ImportError:
        print("  MAPIE is not installed, and left out: pip install mapie")
        return
    compare(
        "MAPIE, conformal risk control",
        world,
        size.n_draws,
        lambda rows, new: show_by_mapie(world, rows, new),
        times,
    )


def compare(name: str, world: World, n_draws: int, call: Any, ours: Times | None = None) -> Times:
    """Time of all draws; the risk of new rows and what they are shown, on average."""
    cpu = wall = 0.0
    risks, lengths = [], []
    for draw in range(n_draws):
        rows, new = world.split(draw)
        shown, times = take_time(lambda rows=rows, new=new: call(rows, new))
        cpu, wall = cpu + times.cpu, wall + times.wall
        labels = world.labels[new]
        risks.append(np.mean((labels & ~shown).sum(axis=1) / labels.sum(axis=1)))
        lengths.append(shown.sum(axis=1).mean())
    note = f"risk {np.mean(risks):.4f}, {np.mean(lengths):.1f} labels shown"
    line(name, Times(cpu, wall), ours, note=note)
    return Times(cpu, wall)


def _f1(world: World, new: Any, shown: Bools) -> str:
    micro, macro = (
        f1_score(world.labels[new], shown, average=each, zero_division=0.0)
        for each in ("micro", "macro")
    )
    return f"micro F1 {micro:.4f}, macro {macro:.4f}"
