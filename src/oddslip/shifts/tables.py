"""Results as plain values and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def as_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as lists, NumPy scalars as Python numbers."""
    return {name: _plain(value) for name, value in values.items()}


def as_frame(columns: Mapping[str, Any], label_names: Sequence[str] | None) -> Any:
    """A pandas frame with one row per label, or a dict of arrays where pandas is missing."""
    n_labels = len(next(iter(columns.values())))
    names = np.array(label_names) if label_names is not None else np.arange(n_labels)
    table = {"label": names, **columns}
    try:
        import pandas as pd
    except ImportError:
        return table
    return pd.DataFrame(table)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
