"""Made-up customers: who they are, and in which months they are there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.generated.checks import stream
from oddslip.datasets.generated.provinces import MADRID, PROVINCES

N_MONTHS = 17  # January 2015 to May 2016
ROWS_PER_CUSTOMER = 14.2  # of the real file: 13,647,309 rows of 956,645 customers

COUNTRIES = ("ES", "FR", "AR", "DE", "GB", "US", "CO", "IT", "RO", "MX", "BR", "CN")
CHANNELS = (
    "KHE", "KAT", "KFC", "KHQ", "KFA", "KHK", "KHM", "KHN", "KHD", "RED", "KAS", "KAG", "KAY",
    "KAA", "KAB", "KAE", "KCC", "KBZ", "KFD", "KHL", "KAI", "KEY", "KAW", "KAR", "013", "007",
)  # fmt: skip
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
        number=random.permutation(number), present=present, age=age, seniority=seniority,
        log_income=log_income, income_known=random.random(n) > 0.205,
        sex=np.where(random.random(n) < 0.0001, -1, (random.random(n) < 0.455).astype(np.int64)),
        province=province, country=country, channel=channel, employee=employee, segment=segment,
        foreigner=foreign, deceased=random.random(n) < 0.0025, blank=random.random(n) < 0.004,
        tilt=tilt,
    )  # fmt: skip


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
