"""Slow and obvious versions of the metrics, one row at a time."""

from itertools import permutations

import numpy as np


def row_metrics(order, true, k, gains, denominator="min"):
    """Metrics of one row: ``order`` is the full ranking, ``true`` a set of labels."""
    hits = [label in true for label in order[:k]]
    total = sum(sum(hits[: t + 1]) / (t + 1) for t in range(k) if hits[t])
    over = {"min": min(k, len(true)), "relevant": len(true), "hits": max(1, sum(hits))}
    ideal = sum(1 / np.log2(t + 2) for t in range(min(k, len(true))))
    best = sum(sorted((gains[label] for label in true), reverse=True)[:k])
    return {
        "map": total / over[denominator],
        "precision": sum(hits) / k,
        "recall": sum(hits) / len(true),
        "ndcg": sum(hit / np.log2(t + 2) for t, hit in enumerate(hits)) / ideal,
        "hit_rate": float(any(hits)),
        "psp": sum(gains[label] for label in order[:k] if label in true) / best,
    }


def stable_order(row):
    return np.argsort(-np.asarray(row, float), kind="stable")


def all_orders(row):
    """Every ranking of a row that sorts its scores, as tied cells are permuted."""
    row = np.asarray(row, float)
    groups = [np.flatnonzero(row == value) for value in sorted(set(row), reverse=True)]
    orders = [()]
    for group in groups:
        orders = [head + tail for head in orders for tail in permutations(group.tolist())]
    return orders
