"""Synthetic bank customers: demographics, months present, and products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.generators.writing import stream
from experiments.datasets.santander.columns import PRODUCTS

_PROVINCES_TEXT = (
    "ALAVA; ALBACETE; ALICANTE; ALMERIA; AVILA; BADAJOZ; BALEARS, ILLES; BARCELONA; BURGOS; "
    "CACERES; CADIZ; CASTELLON; CIUDAD REAL; CORDOBA; CORUÑA, A; CUENCA; GIRONA; GRANADA; "
    "GUADALAJARA; GIPUZKOA; HUELVA; HUESCA; JAEN; LEON; LERIDA; RIOJA, LA; LUGO; MADRID; "
    "MALAGA; MURCIA; NAVARRA; OURENSE; ASTURIAS; PALENCIA; PALMAS, LAS; PONTEVEDRA; "
    "SALAMANCA; SANTA CRUZ DE TENERIFE; CANTABRIA; SEGOVIA; SEVILLA; SORIA; TARRAGONA; "
    "TERUEL; TOLEDO; VALENCIA; VALLADOLID; BIZKAIA; ZAMORA; ZARAGOZA; CEUTA; MELILLA"
)
PROVINCES = tuple(_PROVINCES_TEXT.split("; "))
MADRID = PROVINCES.index("MADRID")


N_MONTHS = 17  # January 2015 to May 2016
ROWS_PER_CUSTOMER = 14.2  # of the real file: 13,647,309 rows of 956,645 customers

COUNTRIES = ("ES", "FR", "AR", "DE", "GB", "US", "CO", "IT", "RO", "MX", "BR", "CN")
_CHANNELS_TEXT = (
    "KHE KAT KFC KHQ KFA KHK KHM KHN KHD RED KAS KAG KAY KAA KAB KAE KCC KBZ KFD KHL KAI KEY "
    "KAW KAR 013 007"
)
CHANNELS = tuple(_CHANNELS_TEXT.split(" "))
EMPLOYEES = ("N", "A", "B", "F", "S")
SEGMENTS = ("01 - TOP", "02 - PARTICULARES", "03 - UNIVERSITARIO")
_FEW = np.array([0.30, 0.24, 0.225, 0.05, 0.03, 0.02])  # shares of the first six channels


class Customers(NamedTuple):
    """One entry per customer. Codes are places in the tuples above; -1 is not known."""

    number: NDArray[np.int64]
    present: NDArray[np.bool_]  # (customers, months)
    age: NDArray[np.int64]  # in January 2015
    seniority: NDArray[np.int64]  # months, in January 2015; below 0 for who comes later
    log_income: NDArray[np.float64]
    income_known: NDArray[np.bool_]
    sex: NDArray[np.int64]
    province: NDArray[np.int64]
    country: NDArray[np.int64]
    channel: NDArray[np.int64]
    employee: NDArray[np.int64]
    segment: NDArray[np.int64]
    foreigner: NDArray[np.bool_]
    deceased: NDArray[np.bool_]
    blank: NDArray[np.bool_]  # whose demographics are missing in their first half year
    tilt: NDArray[np.float64]  # (customers, 4): age, activity, income, segment, about -1 to 1

    @property
    def entry(self) -> NDArray[np.int64]:
        """First month of each."""
        first: NDArray[np.int64] = np.argmax(self.present, axis=1)
        return first

    def part(self, first: int, stop: int) -> Customers:
        """Some of them."""
        columns: dict[str, Any] = self._asdict()
        return Customers(**{name: each[first:stop] for name, each in columns.items()})


def draw_customers(n_customers: int, seed: int) -> Customers:
    """Draw who they are."""
    random = stream(seed, 0)
    n = n_customers
    number = 15_889 + np.cumsum(random.integers(1, 4, n))
    present = _draw_months(n, random)

    student = random.random(n) < 0.36
    adult = np.clip(random.normal(47, 15, n), 2, 112)
    age = np.where(student, 20 + random.gamma(2.0, 1.6, n), adult).astype(np.int64)
    top = ~student & (random.random(n) < 0.06)
    entry = np.argmax(present, axis=1)
    known_for = np.minimum(random.gamma(1.6, 55, n), 240).astype(np.int64)
    known_for = np.where(student, known_for // 3, known_for)
    seniority = np.where(entry > 0, -entry, known_for)

    province = random.integers(0, len(PROVINCES), n)
    province[random.random(n) < 0.3] = MADRID
    wealth = stream(0, 0).normal(0, 0.18, len(PROVINCES))  # the same provinces in every file
    log_income = 11.5 + wealth[province] + 0.5 * top + random.normal(0, 0.5, n)
    foreign = random.random(n) < 0.047
    country = np.where(foreign & (random.random(n) < 0.1), random.integers(1, 12, n), 0)
    province[(country > 0) | (random.random(n) < 0.002)] = -1

    shares = np.append(_FEW, np.full(len(CHANNELS) - 6, (1 - _FEW.sum()) / (len(CHANNELS) - 6)))
    channel = np.searchsorted(np.cumsum(shares), random.random(n)).clip(max=len(CHANNELS) - 1)
    channel[student & (random.random(n) < 0.7)] = 0
    late = entry > 0
    channel[late & (random.random(n) < 0.5)] = 3
    employee = np.where(random.random(n) < 0.0007, random.integers(1, 5, n), 0)
    active = np.clip(random.normal(np.where(student, -0.35, 0.15), 0.6, n), -1.2, 1.2)
    segment = np.where(student, 2, np.where(top, 0, 1))
    tilt = np.column_stack(
        [
            np.clip((age - 40) / 20, -1.5, 1.5),
            active,
            np.clip(2 * (log_income - 11.5), -1.5, 1.5),
            np.where(top, 1.0, np.where(student, -0.6, 0.1)),
        ]
    )
    channel[random.random(n) < 0.014] = -1
    segment[random.random(n) < 0.014] = -1
    return Customers(
        # Numbers in no order, as in the real file: whoever reads it has to sort.
        number=random.permutation(number),
        present=present,
        age=age,
        seniority=seniority,
        log_income=log_income,
        income_known=random.random(n) > 0.205,
        sex=np.where(random.random(n) < 0.0001, -1, (random.random(n) < 0.455).astype(np.int64)),
        province=province,
        country=country,
        channel=channel,
        employee=employee,
        segment=segment,
        foreigner=foreign,
        deceased=random.random(n) < 0.0025,
        blank=random.random(n) < 0.004,
        tilt=tilt,
    )


def trim_rows(customers: Customers, n_rows: int) -> Customers:
    """The first customers, with exactly that many rows among them."""
    counts = customers.present.sum(axis=1)
    total = np.cumsum(counts)
    n = int(np.searchsorted(total, n_rows)) + 1
    present = customers.present[:n].copy()
    surplus = int(total[n - 1]) - n_rows
    if surplus:
        present[-1, np.flatnonzero(present[-1])[-surplus:]] = False
    return customers.part(0, n)._replace(present=present)


def _draw_months(n: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """Two thirds are there from the start; others come, most of them in the second half of 2015."""
    later = np.array([2, 2, 2, 3, 4, 8, 9, 14, 17, 11, 7, 5, 4, 4, 4, 4], dtype=float)
    entry = 1 + np.searchsorted(np.cumsum(later / later.sum()), random.random(n))
    entry = np.where(random.random(n) < 0.655, 0, np.minimum(entry, N_MONTHS - 1))
    stay = random.geometric(0.003, n)
    month = np.arange(N_MONTHS)
    present: NDArray[np.bool_] = (month >= entry[:, None]) & (month < (entry + stay)[:, None])
    gaps = random.random((n, N_MONTHS)) < 0.002
    gaps[np.arange(n), entry] = False
    return present & ~gaps


class Habit(NamedTuple):
    """How common a product is, and who takes it."""

    share: float  # share of rows
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

_HELD = np.array([habit.share for habit in HABITS.values()])
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
    owned: NDArray[np.bool_] = random.random(chance.shape) < np.minimum(chance, 0.95)
    return owned


def draw_next(
    market: Market,
    tilt: NDArray[np.float64],
    owned: NDArray[np.bool_],
    ever: NDArray[np.bool_],
    month: int,
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """What they hold a month later: most of it the same."""
    pull = np.exp(tilt @ _TILT) / market.mean_pull
    chance = _SEASON[month % 12] * _ADDED / (1 - _HELD) * pull
    chance *= np.where(ever, _RETURN, 0.68)
    draw = random.random(owned.shape)
    # Payroll and pension are mostly added on one day.
    together = random.random(len(owned)) < 0.85
    draw[together, _PENSION] = draw[together, _NOMINA]
    stay = random.random(owned.shape) >= np.minimum(_ADDED / _HELD, 0.2)
    after: NDArray[np.bool_] = np.where(owned, stay, draw < np.minimum(chance, 0.5))
    return after
