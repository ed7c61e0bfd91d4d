"""A made-up supermarket: products, aisles, departments, and how often each product sells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.generated.checks import stream

N_AISLES, N_DEPARTMENTS, N_TASTES = 134, 21, 16
DEPARTMENTS = (
    "frozen", "other", "bakery", "produce", "alcohol", "international", "beverages", "pets",
    "dry goods pasta", "bulk", "personal care", "meat seafood", "pantry", "breakfast",
    "canned goods", "dairy eggs", "household", "babies", "snacks", "deli", "missing",
)  # fmt: skip
_FIRST = (
    "Organic", "Fresh", "Classic", "Light", "Whole", "Smoked", "Sweet", "Unsalted", "Crunchy",
    "Creamy", '"Natural"', "Gluten Free,", "Crème de", "100%", "Baby's",
)  # fmt: skip
_SECOND = (
    "Bananas", "Milk", "Bread", "Yogurt", "Apples", "Cheese", "Pasta", "Rice", "Coffee", "Tea",
    "Soup", "Beans", "Juice", "Butter", "Cookies", "Chips", "Salsa", "Spinach", "Eggs", "Jalapeños",
)  # fmt: skip


class Catalogue(NamedTuple):
    """Products by number, from 0; numbers in the files start at 1."""

    aisle: NDArray[np.int64]  # of each product
    department: NDArray[np.int64]  # of each aisle
    tastes: NDArray[np.float64]  # (tastes, products): cumulated shares of what such people buy

    @property
    def n_products(self) -> int:
        """How many products there are."""
        return len(self.aisle)


def draw_catalogue(n_products: int, seed: int) -> Catalogue:
    """Popularity falls with the rank; tastes differ by aisle."""
    random = stream(seed, 2)
    sizes = 1 / (3 + np.arange(N_AISLES))
    aisle = random.choice(N_AISLES, n_products, p=random.permutation(sizes / sizes.sum()))
    # Every aisle has a product and every department an aisle, if there are enough of them.
    few = min(N_AISLES, n_products)
    aisle[random.permutation(n_products)[:few]] = np.arange(few)
    department = random.integers(0, N_DEPARTMENTS, N_AISLES)
    department[random.permutation(N_AISLES)[:N_DEPARTMENTS]] = np.arange(N_DEPARTMENTS)
    # So the best seller has some 1.5% of all lines, as bananas have.
    popularity = random.permutation(1 / (6.0 + np.arange(n_products)))
    liking = np.exp(random.normal(0, 0.9, (N_TASTES, N_AISLES)))
    shares = np.cumsum(popularity * liking[:, aisle], axis=1)
    return Catalogue(aisle, department, shares / shares[:, -1:])


def name_products(n_products: int) -> list[str]:
    """Names, some with commas, quotes and accents."""
    first, second = len(_FIRST), len(_SECOND)
    return [
        f"{_FIRST[i % first]} {_SECOND[i // first % second]}"
        + (f", {i // (first * second)} oz" if i >= first * second else "")
        for i in range(n_products)
    ]


def name_aisles(catalogue: Catalogue) -> list[str]:
    """Names that tell the department."""
    return [
        f"{DEPARTMENTS[department]} {number + 1}"
        for number, department in enumerate(catalogue.department)
    ]
