"""Synthetic data whose truth is known."""

from __future__ import annotations

from typing import Any

from oddslip.datasets.synthetic import SyntheticPair, synthetic_pair, synthetic_rows

__all__ = ["SyntheticPair", "synthetic_pair", "synthetic_rows"]

_MOVED = {
    "Arff": "mulan.arff",
    "MulanData": "mulan.reader",
    "MulanFiles": "mulan.files",
    "Period": "recommendation",
    "Recommendation": "recommendation",
    "fetch_mulan": "mulan.files",
    "find_data": "mulan.files",
    "generate_baskets": "generators",
    "generate_instacart": "generators",
    "generate_santander": "generators",
    "read_arff": "mulan.arff",
    "read_baskets": "baskets.table",
    "read_instacart": "baskets.instacart",
    "read_mulan": "mulan.reader",
    "read_santander": "santander.reader",
    "read_santander_sample": "santander.sample",
    "read_tafeng": "baskets.tafeng",
}


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        raise AttributeError(
            f"oddslip.datasets.{name} has moved to experiments.datasets.{_MOVED[name]}, in a clone "
            "of the repository."
        )
    raise AttributeError(f"module 'oddslip.datasets' has no attribute {name!r}")
