"""Printed numbers that hang on product counts alone: dead labels in a split, and popularity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.stats import hypergeom

from experiments.datasets.baskets.instacart import find_files
from experiments.datasets.cache import hash_roles, name_inputs
from experiments.datasets.extras import import_polars
from experiments.pairs.supplement.measures import FREQUENCIES, FREQUENCY_SEEDS, SPLITS, count_dead
from experiments.pairs.supplement.printed import read_printed
from experiments.store import score_ranking
from experiments.text import paragraph
from oddslip.core.labels import Positives
from oddslip.errors import UnreadableFile

FILES = {"carts": "order_products__train.parquet", "products": "products.csv"}
N_FREQUENT = 4000  # labels of the paper's Instacart pairs
K = 7
MEASURES = 2  # raised when what a cell measures changes
# The supplement's positives of each label among Santander's test rows, in its order of labels.
SANTANDER_ROWS = 2_538_132
SANTANDER_POSITIVES = np.array(
    [
        [1, 0, 10058, 14, 6155, 94, 1238, 691, 422, 0, 339, 0],
        [6104, 223, 10, 13531, 12870, 60, 17, 1211, 26636, 12460, 428, 14],
    ]
).ravel()
N_SPLIT_SEEDS = 5  # splits behind a mean of Table S5

Cells = Mapping[str, Mapping[str, Any]]


def find_carts(data: Any) -> dict[str, Path] | None:
    """Instacart's last baskets and its products, or None where they are not at hand."""
    try:
        return find_files(FILES, data, "")
    except UnreadableFile:
        return None


def describe_carts(paths: dict[str, Path]) -> dict[str, Any]:
    """All that the counts depend on."""
    return {
        "data": "instacart",
        "inputs": name_inputs(paths, hash_roles(paths)),
        "shares": list(FREQUENCIES),
        "seeds": list(FREQUENCY_SEEDS),
        "n_frequent": N_FREQUENT,
        "measures": MEASURES,
    }


def read_carts(paths: Mapping[str, Path]) -> csr_matrix:
    """Carts by products, true where a cart has a product; the columns are all products."""
    pl = import_polars("reading baskets")
    products = np.sort(pl.read_csv(paths["products"])["product_id"].to_numpy())
    lines = pl.read_parquet(paths["carts"], columns=["order_id", "product_id"])
    carts, rows = np.unique(lines["order_id"].to_numpy(), return_inverse=True)
    columns = np.searchsorted(products, lines["product_id"].to_numpy())
    shape = (carts.size, products.size)
    return csr_matrix((np.ones(rows.size, np.int32), (rows, columns)), shape)


def measure_carts(paths: Mapping[str, Path]) -> dict[str, Any]:
    """Dead products in random shares of the carts, and popularity: of all, of the most frequent."""
    Y = read_carts(paths)
    order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")
    labels = {"all": Y[:, order], "frequent": Y[:, order[:N_FREQUENT]]}
    return {
        "n_rows": Y.shape[0],
        "n_products": Y.shape[1],
        "popularity": {kind: score_popularity(each) for kind, each in labels.items()},
        **{kind: count_dead(each) for kind, each in labels.items()},
    }


def score_popularity(Y: csr_matrix) -> float:
    """MAP@K of the same list for every row: the first columns, which are the most frequent."""
    Y.sort_indices()
    ranking = np.tile(np.arange(min(K, Y.shape[1]), dtype=np.int32), (Y.shape[0], 1))
    return score_ranking(ranking, Positives(Y.indptr.astype(np.int64), Y.indices), Y.shape[1])


def expect_dead(positives: NDArray[np.int64], n_rows: int, share: float) -> tuple[float, float]:
    """Expected number of labels without a positive in a random share of rows, and its deviation.

    A label with m positive rows of n is dead in s rows with probability C(n - m, s) / C(n, s). The
    deviation is that of one split, labels taken as independent.

    Examples
    --------
    >>> mean, deviation = expect_dead(np.array([0, 1, 3]), 4, 0.5)
    >>> print(f"{mean:.3f} {deviation:.3f}")
    1.500 0.500
    """
    dead = hypergeom.pmf(0, n_rows, positives, int(share * n_rows))
    return float(dead.sum()), float(np.sqrt((dead * (1 - dead)).sum()))


def dead_product_lines(cells: Cells) -> Iterator[str]:
    """The section of the page; Instacart's rows only if they were counted."""
    printed = {
        study: {name: float(number["printed"]) for name, number in numbers.items()}
        for study, numbers in read_printed().items()
    }
    rows, texts = [], []
    carts = cells.get("instacart-dead")
    if carts is not None:
        counted, text = _instacart_lines(carts, printed["instacart"])
        rows += counted
        texts.append(text)
    expected, text = _santander_lines(printed["santander"])
    yield from ("", "## How often products are dead", "")
    yield from paragraph(
        "Mean number of labels without a positive in a random share of the test rows; printed mean "
        "behind the stroke. Nothing is trained."
    )
    for each in (*texts, text):
        yield ""
        yield from paragraph(each)
    yield ""
    yield f"| labels | {' | '.join(f'{100 * share:g}%' for share in FREQUENCIES)} |"
    yield f"|---|{'---|' * len(FREQUENCIES)}"
    yield from (f"| {' | '.join(row)} |" for row in (*rows, *expected))


def _instacart_lines(
    cell: Mapping[str, Any], printed: Mapping[str, float]
) -> tuple[list[list[str]], str]:
    kinds = {
        "all": ("dead, all products at", f"Instacart, all {cell['n_products']:,}"),
        "frequent": ("dead at", f"Instacart, the {N_FREQUENT:,} most frequent here"),
    }
    rows, inside = [], {}
    for kind, (start, name) in kinds.items():
        means = [printed[f"{start} {100 * share:g}%: mean"] for share in FREQUENCIES]
        counts = cell[kind]
        inside[kind] = sum(
            each["min"] <= mean <= each["max"] for each, mean in zip(counts, means, strict=True)
        )
        rows.append(
            [
                name,
                *(
                    f"{each['mean']:,.1f} ({each['min']:,} to {each['max']:,}) / {mean:,.1f}"
                    for each, mean in zip(counts, means, strict=True)
                ),
            ]
        )
    total = len(FREQUENCIES)
    popularity, names = cell["popularity"], ("lightgbm w=r", "all products mlp w=r")
    papers = [printed[f"{name}: popularity"] for name in names]
    return rows, (
        f"The paper's test rows on Instacart are its {cell['n_rows']:,} last baskets, which are at "
        "hand. Of all products nothing differs but the draws: "
        f"{inside['all']} of {total} printed means lie within the range of our "
        f"{len(FREQUENCY_SEEDS)} splits (in brackets). The paper's {N_FREQUENT:,} labels are the "
        "products most frequent in earlier baskets, which are not at hand; here they are those of "
        f"the last baskets, and {inside['frequent']} of {total} lie within the range. One list for "
        f"all rows, the most frequent products first, has a MAP@{K} of "
        f"{popularity['frequent']:.4f} among these and of {popularity['all']:.4f} among all "
        f"products; the paper's, in the order of earlier baskets, {papers[0]:.3f} and "
        f"{papers[1]:.3f}."
    )


def _santander_lines(printed: Mapping[str, float]) -> tuple[list[list[str]], str]:
    sweeps = {
        "Santander, expected": ("dead at {}: mean", FREQUENCIES, len(FREQUENCY_SEEDS)),
        "Santander, Table S5, expected": ("split {}: dead labels", SPLITS, N_SPLIT_SEEDS),
    }
    rows, largest = [], 0.0
    for name, (form, shares, n_splits) in sweeps.items():
        row = [name]
        for share in FREQUENCIES:
            if share not in shares:
                row.append("")
                continue
            mean = printed[form.format(f"{100 * share:g}%")]
            expected, deviation = expect_dead(SANTANDER_POSITIVES, SANTANDER_ROWS, share)
            largest = max(largest, abs(mean - expected) / (deviation / n_splits**0.5))
            row.append(f"{expected:.1f} / {mean:.1f}")
        rows.append(row)
    return rows, (
        f"Santander's {SANTANDER_ROWS:,} test rows are not at hand, but how many positives each of "
        f"its {SANTANDER_POSITIVES.size} labels has among them is printed. A label with m positive "
        "rows of n is dead in s of them with probability C(n-m, s) / C(n, s). The sum over "
        "labels is the expected mean, which needs no row. The printed means, of "
        f"{len(FREQUENCY_SEEDS)} splits and of {N_SPLIT_SEEDS}, are at most {largest:.1f} standard "
        "errors away from it, labels taken as independent."
    )
