"""From baskets to the three periods of a `Recommendation`."""

from __future__ import annotations

from typing import Any

from oddslip.datasets.basket_features import (
    build_features,
    build_labels,
    name_features,
    sort_purchases,
)
from oddslip.datasets.basket_splits import choose_labels, split_orders
from oddslip.datasets.baskets import Baskets
from oddslip.datasets.recommendations import Period, Recommendation
from oddslip.progress import progress_bar

FEATURES_VERSION = 1  # part of the name of kept rows: raise it when any feature changes


def build_recommendation(
    baskets: Baskets,
    n_labels: int | None,
    *,
    name: str,
    settings: dict[str, Any] | None = None,
    sha256: dict[str, str] | None = None,
) -> Recommendation:
    """One row per user and period, features from the orders before the reference order only.

    Parameters
    ----------
    baskets : Baskets
        All orders of all users.
    n_labels : int, optional
        How many items are labels, the most frequent in training baskets. None takes all.
    name : str
        Of the data set.
    settings, sha256 : dict, optional
        What else the rows depend on. Counts of what was read and left out are added.
    """
    split = split_orders(baskets)
    labels = choose_labels(baskets, split, n_labels)
    label_names = baskets.name_items(labels)
    purchases = sort_purchases(baskets, split)
    periods = {}
    with progress_bar(f"{name}: features", len(split.places)) as advance:
        for period, places in split.places.items():
            X = build_features(baskets, split, places, labels, purchases)
            Y = build_labels(baskets, split, places, labels)
            periods[period] = Period(X, Y, baskets.users[split.users])
            advance(1)
    counts = {
        **baskets.describe(),
        "n_users_left_out": baskets.n_users - split.users.size,
    }
    return Recommendation(
        name=name,
        train=periods["train"],
        validation=periods["validation"],
        test=periods["test"],
        label_names=label_names,
        feature_names=name_features(baskets, label_names),
        settings={**(settings or {}), "n_labels": n_labels, **counts},
        sha256=dict(sha256 or {}),
    )
