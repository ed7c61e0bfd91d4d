"""Months of a served ranker whose truth is known: twelve with one fault each, twelve quiet ones.

Thresholds of the watch were set on draws with seeds below `FIRST_SEED`; the table shows draws from
it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.synthetic import SyntheticPair, synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.selection import Repair
from oddslip.serving.check import CheckResult, check
from oddslip.serving.monitor import FAMILY

FIRST_SEED = 1000
N_DRAWS = 10
N_LABELS, K = 40, 7
CALIBRATION_ROWS, MONTH_ROWS = 4000, 3000
N_QUIET = 12
WORLD: dict[str, Any] = {"realized": 0.6}  # more than half of ln w, as boosting leaves it


class Month(NamedTuple):
    """Scores that are served, and what turns out to be true."""

    scores: NDArray[np.float32]
    labels: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A repair, and months of the rows it was made for. One rare label is dead throughout."""

    pair: SyntheticPair
    repair: FittedRepair
    rng: np.random.Generator
    dead: int

    def month(self, number: int) -> Month:
        """Rows that nothing happened to."""
        start = CALIBRATION_ROWS + number * MONTH_ROWS
        rows = slice(start, start + MONTH_ROWS)
        labels = self.pair.labels[rows].copy()
        labels[:, self.dead] = False
        return Month(self.pair.weighted[rows].copy(), labels)

    def margins(self, number: int) -> NDArray[np.float64]:
        """The log-odds of a month's scores."""
        start = CALIBRATION_ROWS + number * MONTH_ROWS
        return self.pair.weighted_margin[start : start + MONTH_ROWS].copy()


def draw_world(seed: int, n_months: int) -> World:
    """Draw a world and fit its repair on the calibration rows."""
    n_rows = CALIBRATION_ROWS + n_months * MONTH_ROWS
    pair = synthetic_pair(n_rows, N_LABELS, seed=seed, **WORLD)
    labels = pair.labels[:CALIBRATION_ROWS].copy()
    dead = int(np.argsort(pair.prior, kind="stable")[N_LABELS // 4])
    labels[:, dead] = False
    repair = Repair(k=K, rule="hierarchical", prior=np.clip(pair.prior, 1e-4, 1))
    repair.fit(pair.weighted[:CALIBRATION_ROWS], labels, label_names=pair.label_names)
    return World(pair, repair.fitted_, np.random.default_rng(seed), dead)


# --------------------------------------------------------------------------------------- the faults


def _as_scores(margins: NDArray[np.float64]) -> NDArray[np.float32]:
    return (1 / (1 + np.exp(-margins))).astype(np.float32)


def _common(world: World, n: int, share: float = 0.05) -> NDArray[np.int64]:
    """So many labels, from one of about this prevalence on to the more frequent ones."""
    order = np.argsort(world.pair.prior, kind="stable")
    first = int(np.searchsorted(world.pair.prior[order], share))
    return order[min(first, order.size - n) :][:n]


def saturate(world: World, number: int) -> Month:
    """The highest cells of every third label are driven to exactly 1.0."""
    margins = world.margins(number)
    some = margins[:, ::3]
    some[some >= np.quantile(some, 0.95, axis=0)] = 20.0
    return Month(_as_scores(margins), world.month(number).labels)


def swap(world: World, number: int) -> Month:
    """Two columns of scores change places."""
    month = world.month(number)
    order = np.argsort(world.pair.prior, kind="stable")
    one, two = order[-1], order[N_LABELS // 2]
    month.scores[:, [one, two]] = month.scores[:, [two, one]]
    return month


def retrain(world: World, number: int) -> Month:
    """The model was trained again without weights; the repair is the old one."""
    start = CALIBRATION_ROWS + number * MONTH_ROWS
    rows = slice(start, start + MONTH_ROWS)
    return Month(world.pair.unweighted[rows].copy(), world.month(number).labels)


def move_priors(world: World, number: int) -> Month:
    """Five labels become three times as frequent; scores given the truth stay as they are."""
    month = world.month(number)
    for label in _common(world, 5):
        truth, column = month.labels[:, label], month.scores[:, label].copy()
        now = world.rng.random(MONTH_ROWS) < 3 * truth.mean()
        for value in (False, True):
            rows = world.rng.choice(np.flatnonzero(truth == value), int((now == value).sum()))
            month.scores[now == value, label] = column[rows]
        month.labels[:, label] = now
    return month


def kill(world: World, number: int) -> Month:
    """A label is no longer sold: its model says the same of every row."""
    month = world.month(number)
    label = int(_common(world, 1)[0])
    month.scores[:, label] = np.median(month.scores[:, label])
    month.labels[:, label] = False
    return month


def change_unit(world: World, number: int) -> Month:
    """Scores arrive divided by a hundred."""
    month = world.month(number)
    return month._replace(scores=month.scores / np.float32(100))


def round_scores(world: World, number: int) -> Month:
    """Scores are rounded to one decimal on the way."""
    month = world.month(number)
    return month._replace(scores=np.round(month.scores, 1))


def shuffle_rows(world: World, number: int) -> Month:
    """Scores are joined to other rows: all of them are real, none is in its place."""
    month = world.month(number)
    return month._replace(scores=month.scores[world.rng.permutation(MONTH_ROWS)])


def lose_feature(world: World, number: int) -> Month:
    """A feature is missing: half of what scores knew of a row is noise."""
    margins = world.margins(number)
    middle = margins.mean(axis=0)
    noise = world.rng.standard_normal(margins.shape) * margins.std(axis=0)
    return Month(
        _as_scores(middle + 0.7 * (margins - middle) + 0.3 * noise), world.month(number).labels
    )


def serve_others(world: World, number: int) -> Month:
    """Other rows are served: those of whom more is true are half of them drawn again."""
    month = world.month(number)
    busy = world.margins(number).mean(axis=1)
    rows = np.argsort(-busy)[: MONTH_ROWS // 2]
    return Month(np.repeat(month.scores[rows], 2, axis=0), np.repeat(month.labels[rows], 2, axis=0))


def change_taste(world: World, number: int) -> Month:
    """Ten labels are liked by other rows than before; scores, and how often, stay as they are."""
    month = world.month(number)
    for label in np.argsort(-world.pair.prior)[:10]:
        month.labels[:, label] = world.rng.permutation(month.labels[:, label])
    return month


def come_alive(world: World, number: int) -> Month:
    """The label that was dead when the repair was fitted is true in one row of thirty."""
    month = world.month(number)
    margins = world.margins(number)[:, world.dead]
    chance = margins >= np.quantile(margins, 0.9)
    month.labels[:, world.dead] = chance & (world.rng.random(MONTH_ROWS) < 1 / 3)
    return month


class Fault(NamedTuple):
    """What happens in a month, and the codes of which one at least has to be found.

    Where no score changes, nothing can be found without labels: then ``unlabelled`` is empty.
    """

    make: Callable[[World, int], Month]
    unlabelled: tuple[str, ...]
    labelled: tuple[str, ...]


SCORES = ("OS501", "OS503")
FAULTS = {
    "saturation after a retrain": Fault(saturate, ("OS504",), ("OS504",)),
    "swapped label columns": Fault(swap, SCORES, (*SCORES, "OS508")),
    "stale calibration": Fault(retrain, SCORES, (*SCORES, "OS508")),
    "prior drift in 5 labels": Fault(move_priors, SCORES, ("OS406",)),
    "a label that died": Fault(kill, ("OS505",), ("OS505",)),
    "unit change": Fault(change_unit, SCORES, (*SCORES, "OS508")),
    "rounded scores": Fault(round_scores, ("OS505",), ("OS505",)),
    "shuffled rows": Fault(shuffle_rows, (), ("OS508",)),
    "lost feature": Fault(lose_feature, SCORES, (*SCORES, "OS508")),
    "other rows served": Fault(serve_others, SCORES, SCORES),
    "changed taste": Fault(change_taste, (), ("OS508",)),
    "a dead label alive": Fault(come_alive, (), ("OS404",)),
}
QUIET = "quiet"


# ---------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What was found in all draws of a month, without labels and with them."""

    name: str
    n_months: int
    n_right: tuple[int, int]
    unlabelled: Counter[str]
    labelled: Counter[str]

    @property
    def is_quiet(self) -> bool:
        """Whether nothing had happened: right is then to find nothing."""
        return self.name == QUIET


def try_months(
    names: tuple[str, ...] = (*FAULTS, QUIET),
    *,
    n_draws: int = N_DRAWS,
    first_seed: int = FIRST_SEED,
    n_quiet: int = N_QUIET,
    n_replicates: int = 500,
) -> list[Outcome]:
    """Check every month of these names, in every draw, twice: without labels and with them."""
    names = check_months(names)
    checks: dict[str, list[tuple[CheckResult, CheckResult]]] = {name: [] for name in names}
    for seed in range(first_seed, first_seed + n_draws):
        plan = [name for name in names for _ in range(n_quiet if name == QUIET else 1)]
        world = draw_world(seed, len(plan))
        for number, name in enumerate(plan):
            make = World.month if name == QUIET else FAULTS[name].make
            month = make(world, number)
            checks[name].append(_check_twice(world, month, n_replicates))
    return [_count(name, results) for name, results in checks.items()]


def _check_twice(world: World, month: Month, n_replicates: int) -> tuple[CheckResult, CheckResult]:
    options: dict[str, Any] = {"label_names": world.pair.label_names, "n_replicates": n_replicates}
    return (
        check(world.repair, month.scores, **options),
        check(world.repair, month.scores, month.labels, **options),
    )


def _count(name: str, results: list[tuple[CheckResult, CheckResult]]) -> Outcome:
    fired = Counter[str](), Counter[str]()
    right = [0, 0]
    for pair in results:
        for at, result in enumerate(pair):
            codes = {each.code for each in result.findings if each.severity != "info"}
            fired[at].update(codes)
            if name == QUIET:
                right[at] += not codes
            else:
                right[at] += bool(codes & set(_wanted(name)[at]))
    return Outcome(name, len(results), (right[0], right[1]), *fired)


def _wanted(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return FAULTS[name].unlabelled, FAULTS[name].labelled


def tabulate(outcomes: list[Outcome]) -> Iterator[str]:
    """The table in Markdown."""
    yield "| month | found without labels | what fired | found with labels | what fired |"
    yield "|---|---|---|---|---|"
    for each in outcomes:
        cells = [each.name]
        for at, fired in enumerate((each.unlabelled, each.labelled)):
            codes = ", ".join(f"{code} {n}" for code, n in sorted(fired.items())) or "nothing"
            if each.is_quiet:
                right = f"{each.n_months - each.n_right[at]} of {each.n_months} false alarms"
            elif not _wanted(each.name)[at]:
                right = "cannot be"
            else:
                right = f"{each.n_right[at]} of {each.n_months}"
            cells += [right, codes]
        yield f"| {' | '.join(cells)} |"


def format_page(lines: list[str], *, n_draws: int, first_seed: int) -> str:
    """The page of the table."""
    last = first_seed + n_draws - 1
    about = (
        "Made by `python -m experiments monitor-simulation --page "
        "docs/paper/monitor-simulation.md`. A repair is fitted on "
        f"{CALIBRATION_ROWS:,} rows of {N_LABELS} labels (K = {K}, balanced weights, realized to "
        "60%) and saved with its fingerprint. "
        f"Months of {MONTH_ROWS:,} new rows are then checked, without "
        f"labels and with them: {len(FAULTS)} with one fault each and {N_QUIET} quiet ones, in "
        f"{n_draws} worlds with the seeds {first_seed} to {last}. The thresholds of the watch were "
        f"set on other draws, with seeds below {FIRST_SEED}. A fault is found if one of the codes "
        "that `experiments/monitor_simulation.py` names for it is; a quiet month is a false alarm "
        f"if anything graver than info is, which the watch allows in {FAMILY:.0%} of quiet "
        "months. Numbers behind codes count months."
    )
    fault_lines = (f"- **{name}**: {_description(fault.make)}" for name, fault in FAULTS.items())
    return "\n".join(
        (
            "# Monitoring simulation",
            "",
            fill(about, 100),
            "",
            *lines,
            "",
            "What happened:",
            "",
            *fault_lines,
            "",
        )
    )


def _description(make: Callable[..., Any]) -> str:
    return (make.__doc__ or "").strip()


def check_months(names: tuple[str, ...]) -> tuple[str, ...]:
    """These names, or an error that says which there are."""
    for name in names:
        if name not in FAULTS and name != QUIET:
            allowed = "; ".join((*FAULTS, QUIET))
            raise InvalidInput(f"month must be one of {allowed}, got {name!r:.60}.")
    return names
