"""Thresholds and guarantees of `Decision` beside those of scikit-learn and MAPIE.

All get the same rows: one part to fit on, and one of the same size to judge on, over several draws.
scikit-learn tunes a threshold per label for F1, MAPIE one threshold for the share of missed labels.
MAPIE is no dependency: without it its lines are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import TunedThresholdClassifierCV

import oddslip
from benchmarks.timing import Times, agree, line, scaled, take_time, title

ALPHA = 0.1
K = 5
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Size(NamedTuple):
    n_rows: int  # of each part
    n_labels: int
    n_draws: int  # of the guarantee
    n_tuned: int  # of these, draws for the thresholds, which take scikit-learn long


class Draw(NamedTuple):
    """Rows to fit on and rows to judge on, raw and repaired."""

    scores: Floats
    cells: Floats
    labels: Bools
    new_scores: Floats
    new_cells: Floats
    new_labels: Bools


class Outcome(NamedTuple):
    """What a method shows of the new rows, and the time of its fit."""

    shown: Bools
    times: Times


Method = Callable[[Draw], Outcome]
REAL = Size(4_000, 30, n_draws=20, n_tuned=3)
TOY = Size(300, 5, n_draws=2, n_tuned=1)


class World:
    """Draws of rows from labels of fixed weights, and a repair of rows of its own."""

    def __init__(self, size: Size) -> None:
        rng = np.random.default_rng(0)
        self.rng, self.size = rng, size
        floor = max(np.log10(10 / size.n_rows), -2.3)
        self.base = logit(10 ** rng.uniform(floor, -0.5, size.n_labels))
        self.weights = rng.uniform(0, 3, size.n_labels)
        self.repair = oddslip.Repair(k=K).fit(*self.rows(), threads=1).fitted_

    def rows(self) -> tuple[Floats, Bools]:
        """Scores of weighted models and true labels, of rows with a true label."""
        shape = 3 * self.size.n_rows, self.size.n_labels
        margins = self.base + 1.5 * self.rng.standard_normal(shape)
        labels = self.rng.random(shape) < expit(margins)
        some = np.flatnonzero(labels.any(axis=1))[: self.size.n_rows]
        noise = 0.3 * self.rng.standard_normal(shape)
        return expit(margins + self.weights + noise)[some], labels[some]

    def draw(self) -> Draw:
        """New rows of both parts."""
        (scores, labels), (new, new_labels) = self.rows(), self.rows()
        cells, new_cells = (self.repair.transform(each, threads=1) for each in (scores, new))
        return Draw(scores, cells, labels, new, new_cells, new_labels)


class ScoreColumn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose only feature is its probability."""

    classes_ = np.array([0, 1])

    def fit(self, cells: Any, labels: Any) -> ScoreColumn:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, cells: Any) -> Any:
        return np.column_stack([1 - cells[:, 0], cells[:, 0]])


def decide(repair: Any, **arguments: Any) -> Method:
    """Ours; it is given raw scores, and maps them in its fit."""

    def run(draw: Draw) -> Outcome:
        decision = oddslip.Decision(repair, **arguments)
        fit, times = take_time(lambda: decision.fit(draw.scores, draw.labels, threads=1))
        lists = fit.lists(draw.new_scores, threads=1)
        shown = np.zeros(draw.new_labels.shape, np.bool_)
        rows, slots = np.nonzero(lists >= 0)
        shown[rows, lists[rows, slots]] = True
        return Outcome(shown, times)

    return run


def tune(raw: bool) -> Method:
    """scikit-learn's, label by label."""

    def run(draw: Draw) -> Outcome:
        cells, new = pick_cells(draw, raw)

        def fit(label: int) -> Any:
            tuner = TunedThresholdClassifierCV(
                ScoreColumn(), scoring="f1", cv="prefit", refit=False
            )
            return tuner.fit(cells[:, [label]], draw.labels[:, label].astype(np.int64))

        fits, times = take_time(lambda: [fit(label) for label in range(cells.shape[1])])
        columns = [each.predict(new[:, [label]]) for label, each in enumerate(fits)]
        return Outcome(np.column_stack(columns).astype(np.bool_), times)

    return run


def control_by_mapie(raw: bool) -> Method:
    """MAPIE's conformal risk control of the recall of rows."""
    from mapie.risk_control import MultiLabelClassificationController

    def run(draw: Draw) -> Outcome:
        cells, new = pick_cells(draw, raw)
        controller = MultiLabelClassificationController(
            predict_function=np.asarray, risk="recall", method="crc", target_level=1 - ALPHA
        )
        _, times = take_time(lambda: controller.calibrate(cells, draw.labels.astype(np.int64)))
        return Outcome(controller.predict(new)[:, :, 0].astype(np.bool_), times)

    return run


def pick_cells(draw: Draw, raw: bool) -> tuple[Floats, Floats]:
    """Cells of the rows to fit on and of the new ones."""
    return (draw.scores, draw.new_scores) if raw else (draw.cells, draw.new_cells)


def best_f1(cells: Floats, labels: Bools) -> Floats:
    """The best F1 of every label over all thresholds, by scikit-learn's curve."""
    best = []
    for column, truth in zip(cells.T, labels.T, strict=True):
        precision, recall, _ = precision_recall_curve(truth, column)
        best.append((2 * precision * recall / np.maximum(precision + recall, 1e-300)).max())
    return np.array(best)


def f1_at(cells: Floats, labels: Bools, thresholds: Floats) -> Floats:
    """F1 of every label."""
    return f1_of(cells >= thresholds, labels, axis=0)


def f1_of(shown: Bools, labels: Bools, axis: int | None) -> Any:
    hits, whole = (shown & labels).sum(axis=axis), shown.sum(axis=axis) + labels.sum(axis=axis)
    return 2 * hits / np.maximum(whole, 1)


def find_level(cells: Floats, labels: Bools) -> float:
    """The highest threshold of conformal risk control: NumPy, by trying all true cells."""
    rows, columns = np.nonzero(labels)
    levels = cells[rows, columns]
    order = np.argsort(levels, kind="stable")
    missed = np.cumsum(1 / labels.sum(axis=1)[rows[order]])
    n = len(labels)
    fits = missed <= ALPHA * (n + 1) - 1
    return float(levels[order][fits.sum()])


def missed_share(shown: Bools, labels: Bools) -> float:
    """Mean share of a row's true labels that is not shown."""
    return float((1 - (shown & labels).sum(axis=1) / labels.sum(axis=1)).mean())


def compare(methods: dict[str, Method], draws: list[Draw], describe: Callable[..., str]) -> None:
    """One line per method, of which the first is ours; means over all draws."""
    ours = None
    for name, method in methods.items():
        outcomes = [method(draw) for draw in draws]
        whole = Times(*map(sum, zip(*(each.times for each in outcomes), strict=True)))
        times = scaled(whole, 1 / len(draws))
        pairs = [(each.shown, draw.new_labels) for each, draw in zip(outcomes, draws, strict=True)]
        line(name, times, None if name.startswith("Decision") else ours, describe(pairs))
        ours = ours or times


def describe_f1(pairs: list[tuple[Bools, Bools]]) -> str:
    macro = np.mean([f1_of(*pair, axis=0).mean() for pair in pairs])
    micro = np.mean([f1_of(*pair, axis=None) for pair in pairs])
    return f"macro F1 {macro:.4f}, micro F1 {micro:.4f}"


def describe_risk(pairs: list[tuple[Bools, Bools]]) -> str:
    risks = np.array([missed_share(*pair) for pair in pairs])
    error = risks.std(ddof=1) / np.sqrt(risks.size)
    size = np.mean([shown.sum(axis=1).mean() for shown, _ in pairs])
    return f"missed {risks.mean():.4f} ± {error:.4f}, {size:.2f} labels per row"


def check_answers(repair: Any, draw: Draw) -> Callable[[], None]:
    """Compare our exact thresholds with those that a search over all of them finds."""
    decision = oddslip.Decision(repair, goal="f1", shrinkage=0)
    used = decision.fit(draw.scores, draw.labels, threads=1).fitted_.thresholds
    assert used is not None
    mine = f1_at(draw.cells, draw.labels, used.fitted)
    agree("F1 of fitted thresholds", mine, best_f1(draw.cells, draw.labels), 1e-12)

    def check_level() -> None:
        control = oddslip.Decision(repair, "common_threshold", goal="missed", target=ALPHA)
        rule = control.fit(draw.scores, draw.labels, threads=1).fitted_.rule
        agree("level of the guarantee", rule.levels, find_level(draw.cells, draw.labels), 1e-12)

    return check_level


def run(size: Size) -> None:
    world = World(size)
    draws = [world.draw() for _ in range(size.n_draws)]
    shape = f"{size.n_rows:,} x {size.n_labels:,}"
    title(f"thresholds of labels for F1, {shape}, means of {size.n_tuned} draws")
    methods = {
        'Decision(goal="f1")': decide(world.repair, goal="f1"),
        'Decision(goal="micro_f1")': decide(world.repair, goal="micro_f1"),
        "TunedThresholdClassifierCV, repaired": tune(raw=False),
        "TunedThresholdClassifierCV, raw": tune(raw=True),
    }
    methods['Decision(goal="f1")'](draws[0])  # loads all modules
    compare(methods, draws[: size.n_tuned], describe_f1)
    check_level = check_answers(world.repair, draws[0])

    title(f"missed labels at most {ALPHA:g}, {shape}, means of {size.n_draws} draws")
    control = {"rule": "common_threshold", "goal": "missed", "target": ALPHA}
    methods = {
        "Decision, common threshold": decide(world.repair, **control),
        "Decision, row": decide(world.repair, **control | {"rule": "row"}),
        "NumPy, all levels": control_by_numpy,
    }
    try:
        methods["MAPIE, repaired"] = control_by_mapie(raw=False)
        methods["MAPIE, raw"] = control_by_mapie(raw=True)
    except ImportError:
        print("  MAPIE is not installed: left out.")
    compare(methods, draws, describe_risk)
    check_level()


def control_by_numpy(draw: Draw) -> Outcome:
    """The same by NumPy, on repaired cells."""
    level, times = take_time(lambda: find_level(draw.cells, draw.labels))
    return Outcome(draw.new_cells >= level, times)
