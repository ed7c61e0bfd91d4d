"""Slow answers, by trying every set that a threshold or a length can give."""

import itertools

import numpy as np


def f1(shown, truth):
    whole = shown.sum() + truth.sum()
    return 2 * (truth * shown).sum() / whole if whole else 0.0


def precision(shown, truth):
    return (truth * shown).sum() / shown.sum() if shown.sum() else np.nan


def recall(shown, truth):
    return (truth * shown).sum() / truth.sum() if truth.sum() else np.nan


def cost(shown, truth, costs):
    return costs[0] * ((1 - truth) * shown).sum() + costs[1] * (truth * (1 - shown)).sum()


def levels_of(probabilities):
    return [*np.unique(probabilities[~np.isnan(probabilities)]), np.inf]


def best_value(probabilities, truth, goal, target=None, costs=(1, 1)):
    """(Value of the goal, cells shown) of the best threshold; None if none reaches the target."""
    probabilities, truth = probabilities.ravel(), np.nan_to_num(truth.ravel())
    sets = [(probabilities >= level).astype(float) for level in levels_of(probabilities)]
    if goal == "f1":
        return max(f1(shown, truth) for shown in sets)
    if goal == "cost":
        return min(cost(shown, truth, costs) for shown in sets)
    measure = precision if goal == "precision" else recall
    fine = [shown for shown in sets if measure(shown, truth) >= target]
    if not fine:
        return None
    if goal == "precision":  # as much as possible
        return max((truth * shown).sum() for shown in fine)
    return min(shown.sum() for shown in fine)


def best_joint_f1(probabilities, truth):
    """The best F1 of all cells over all combinations of thresholds of labels."""
    columns = range(probabilities.shape[1])
    sets = [
        [probabilities[:, j] >= level for level in levels_of(probabilities[:, j])] for j in columns
    ]
    return max(
        f1(np.column_stack(shown).astype(float), truth) for shown in itertools.product(*sets)
    )


def best_length(row, goal, level, costs, k_max):
    """Labels to show of one row of probabilities that are ranked."""
    row, total = row[~np.isnan(row)], np.nansum(row)
    sizes = range(min(len(row), k_max) + 1)
    sums = [row[:k].sum() for k in sizes]
    if goal == "precision":
        return max(k for k in sizes if k == 0 or sums[k] / k >= level)
    if goal == "recall":
        return min((k for k in sizes if sums[k] >= level * total), default=max(sizes))
    if goal == "f1":
        values = [2 * sums[k] / (k + total) if total else 0 for k in sizes]
        return values.index(max(values))
    costs_of = [costs[0] * (k - sums[k]) + costs[1] * (total - sums[k]) for k in sizes]
    fine = [k for k in sizes if costs_of[k] <= level]
    return fine[0] if fine else costs_of.index(min(costs_of))
