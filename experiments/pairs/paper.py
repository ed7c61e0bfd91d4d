"""What the paper prints in Table 1, and by which its own files are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = ("lightgbm w=r", "lightgbm w=1", "mlp w=r", "mlp w=1")
# Rows of Table 1, and how each is printed.
ROWS = {
    "raw score": ".3f",
    "analytic inversion": ".3f",
    "per-label isotonic, prior": ".3f",
    "pooled isotonic": ".3f",
    "popularity": ".3f",
    "ceiling": ".3f",
    "mean within-label AUC": ".3f",
    "cells at 1.0 (%)": ".1f",
    "labels without calibration positives": ".0f",
}

_TABLE_1 = {
    "santander": """
        0.117 0.808 0.112 0.766
        0.151 -- 0.247 --
        0.784 0.819 0.549 0.787
        0.261 0.808 0.178 0.766
        0.535 0.535 0.535 0.535
        0.786 0.822 0.548 0.791
        0.793 0.824 0.789 0.847
        16.6 0.0 23.3 0.0
        3 3 3 3
    """,
    "instacart": """
        0.001 0.131 0.008 0.056
        0.017 -- 0.070 --
        0.225 0.250 0.081 0.056
        0.004 0.149 0.008 0.055
        0.056 0.056 0.056 0.056
        0.230 0.269 0.085 0.056
        0.636 0.670 0.836 0.424
        19.4 0.0 0.0 0.0
        0 0 0 0
    """,
}
# Study -> row -> column -> as printed.
TABLE_1: dict[str, dict[str, dict[str, str]]] = {
    study: {
        row: dict(zip(COLUMNS, line.split(), strict=True))
        for row, line in zip(ROWS, text.strip().splitlines(), strict=True)
    }
    for study, text in _TABLE_1.items()
}

# By which the paper's own files are known: sizes, and the range of the weights (section 3;
# Instacart's test rows from its 39,362 calibration rows, 30% of them).
_SIZES: dict[str, dict[str, Any]] = {
    "santander": {
        "n_labels": 24,
        "rows": {"train": 8_248_933, "validation": 1_903_599, "test": 2_538_132},
        "weights": (78, 8_248_932),
    },
    "instacart": {"n_labels": 4_000, "rows": {"test": 131_209}, "weights": (6, 2_301)},
}
_NEAR = 0.1  # weights are printed as whole numbers


def is_papers_data(study: str, about: Mapping[str, Any]) -> bool:
    """Whether these are the paper's own rows: its sizes and its weights, not generated.

    Examples
    --------
    >>> is_papers_data("tafeng", {"n_labels": 1000, "rows": {}})
    False
    """
    sizes = _SIZES.get(study)
    if sizes is None or about["settings"].get("generated") or about.get("generated"):
        return False
    rows = {period: about["rows"].get(period) for period in sizes["rows"]}
    weights = (about["smallest_weight"], about["largest_weight"])
    near = (
        abs(ours / printed - 1) <= _NEAR
        for ours, printed in zip(weights, sizes["weights"], strict=True)
    )
    return rows == sizes["rows"] and about["n_labels"] == sizes["n_labels"] and all(near)
