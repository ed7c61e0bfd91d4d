"""What made-up customers hold: drawn once, then added to and dropped month by month."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.santander_columns import PRODUCTS


class Habit(NamedTuple):
    """How common a product is, and who takes it."""

    held: float  # share of rows
    added: float  # share of rows
    tilt: tuple[float, float, float, float]  # age, activity, income, segment


# Shares are those of the real file, to a digit or two. Rare additions are rounded up a little:
# in a tenth of the file there should be some.
HABITS = {
    "ahor_fin": Habit(0.0001, 3e-7, (0.8, 0.2, 0.0, 0.0)),
    "aval_fin": Habit(0.00002, 2e-7, (0.3, 0.4, 0.3, 0.3)),
    "cco_fin": Habit(0.65, 0.0046, (-0.3, 0.3, 0.0, -0.2)),
    "cder_fin": Habit(0.0004, 2e-5, (0.5, 0.6, 0.6, 0.8)),
    "cno_fin": Habit(0.081, 0.0019, (-0.1, 1.2, 0.1, 0.2)),
    "ctju_fin": Habit(0.0095, 4e-5, (-2.5, -0.4, 0.0, 0.0)),
    "ctma_fin": Habit(0.0097, 0.0003, (-0.5, 0.9, 0.1, 0.2)),
    "ctop_fin": Habit(0.129, 0.0002, (0.8, 0.3, 0.1, 0.2)),
    "ctpp_fin": Habit(0.043, 0.0002, (0.6, 0.5, 0.2, 0.4)),
    "deco_fin": Habit(0.0018, 0.0001, (0.7, 0.4, 0.3, 0.4)),
    "deme_fin": Habit(0.0017, 1e-5, (0.9, 0.3, 0.3, 0.4)),
    "dela_fin": Habit(0.043, 0.0006, (1.0, 0.4, 0.4, 0.6)),
    "ecue_fin": Habit(0.083, 0.0013, (0.0, 1.0, 0.3, 0.3)),
    "fond_fin": Habit(0.0185, 0.0002, (0.8, 0.6, 0.6, 0.9)),
    "hip_fin": Habit(0.0059, 2e-6, (0.3, 0.8, 0.2, 0.3)),
    "plan_fin": Habit(0.0092, 3e-5, (0.7, 0.7, 0.6, 0.8)),
    "pres_fin": Habit(0.0026, 5e-6, (0.2, 0.8, -0.2, 0.1)),
    "reca_fin": Habit(0.0525, 0.0006, (0.4, 1.1, 0.4, 0.5)),
    "tjcr_fin": Habit(0.044, 0.0043, (0.3, 1.1, 0.3, 0.6)),
    "valo_fin": Habit(0.0256, 0.0003, (0.8, 0.5, 0.7, 0.9)),
    "viv_fin": Habit(0.0038, 2e-6, (0.5, 0.6, 0.1, 0.2)),
    "nomina": Habit(0.055, 0.0047, (-0.2, 1.4, 0.1, 0.2)),
    "nom_pens": Habit(0.06, 0.0051, (-0.1, 1.4, 0.1, 0.2)),
    "recibo": Habit(0.128, 0.0105, (0.2, 1.3, 0.1, 0.2)),
}
assert [f"ind_{name}_ult1" for name in HABITS] == list(PRODUCTS)

_HELD = np.array([habit.held for habit in HABITS.values()])
_ADDED = np.array([habit.added for habit in HABITS.values()])
_TILT = np.array([habit.tilt for habit in HABITS.values()]).T
_NOMINA, _PENSION = 21, 22
_RETURN = 4.0  # who once held a product takes it up again more often
_SEASON = np.array([1.0, 1.1, 1.0, 0.95, 0.95, 1.2, 1.1, 0.8, 1.0, 1.15, 1.0, 1.05])


class Market(NamedTuple):
    """How strongly customers' tilts pull, so that shares come out as told."""

    mean_pull: NDArray[np.float64]


def open_market(tilt: NDArray[np.float64]) -> Market:
    """Measure the pull of some thousand customers."""
    return Market(np.exp(tilt[:20_000] @ _TILT).mean(axis=0))


def draw_first(
    market: Market,
    tilt: NDArray[np.float64],
    is_new: NDArray[np.bool_],
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """What customers hold in their first month. New ones begin with less."""
    chance = _HELD * np.exp(tilt @ _TILT) / market.mean_pull
    chance *= np.where(is_new[:, None], 0.55, 1.12)
    held: NDArray[np.bool_] = random.random(chance.shape) < np.minimum(chance, 0.95)
    return held


def draw_next(
    market: Market,
    tilt: NDArray[np.float64],
    held: NDArray[np.bool_],
    ever: NDArray[np.bool_],
    month: int,
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """What they hold a month later: most of it the same."""
    pull = np.exp(tilt @ _TILT) / market.mean_pull
    chance = _SEASON[month % 12] * _ADDED / (1 - _HELD) * pull
    chance *= np.where(ever, _RETURN, 0.68)
    draw = random.random(held.shape)
    # Payroll and pension are mostly added on one day.
    together = random.random(len(held)) < 0.85
    draw[together, _PENSION] = draw[together, _NOMINA]
    stay = random.random(held.shape) >= np.minimum(_ADDED / _HELD, 0.2)
    after: NDArray[np.bool_] = np.where(held, stay, draw < np.minimum(chance, 0.5))
    return after
