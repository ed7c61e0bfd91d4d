"""Ranking metrics of one row from its top K, its positives, and its ties.

``columns`` are the top K with ties by column; ``joined[p]`` says whether place p ties with place
p - 1; ``at_kth`` is how many cells of the whole row tie with the last place. Cells that tie form a
group; only the last group can reach beyond K. The policies differ in the order inside groups:
as ranked (STABLE), averaged over all orders (EXPECTED), positives first (BEST), last (WORST).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel

STABLE, EXPECTED, BEST, WORST = 0, 1, 2, 3
BY_MIN, BY_RELEVANT, BY_HITS = 0, 1, 2
METRICS = ("map", "precision", "recall", "ndcg", "hit_rate", "psp_gain", "psp_best")


@inlined
def _is_in(column, indices, start, stop):  # type: ignore[no-untyped-def]
    while start < stop:
        middle = (start + stop) // 2
        if indices[middle] < column:
            start = middle + 1
        else:
            stop = middle
    return start


@inlined
def _group_gain(first, shown, size, true, before, policy, gains, discounted):  # type: ignore[no-untyped-def]
    """Sum over a group's shown places of hit x (hits so far) / rank, or of hit x discount.

    The group starts at place ``first``, shows ``shown`` of its ``size`` cells, ``true`` of which
    are positive, after ``before`` hits.
    """
    gain = 0.0
    for i in range(shown):
        if policy == EXPECTED:
            hit = true / size
            hits = before + 1.0 + (i * (true - 1.0) / (size - 1.0) if size > 1 else 0.0)
        elif policy == BEST:
            hit = 1.0 if i < true else 0.0
            hits = before + i + 1.0
        else:
            hit = 1.0 if i >= size - true else 0.0
            hits = before + (i - (size - true)) + 1.0
        gain += hit * (gains[first + i] if discounted else hits / (first + i + 1.0))
    return gain


@inlined
def _over_hits(first, shown, size, true, before, gained, policy):  # type: ignore[no-untyped-def]
    """Average precision over the hits shown, whose number depends on the order of the last group.

    Given how many of the shown cells are positive, the denominator is fixed and the places are a
    group of their own; so run over that number, with its hypergeometric weight.
    """
    low = max(0, shown - (size - true))
    high = min(true, shown)
    weight = 1.0  # of the smallest number, from products that cannot overflow
    if low == 0:
        for i in range(shown):
            weight *= (size - true - i) / (size - i)
    else:
        for i in range(size - shown):
            weight *= (true - i) / (size - i)
    total = 0.0
    for number in range(low, high + 1):
        inside = _group_gain(first, shown, shown, number, before, policy, np.empty(0), False)
        value = (gained + inside) / (before + number) if before + number > 0 else 0.0
        if policy == EXPECTED:
            total += weight * value
            weight *= (true - number) * (shown - number)
            weight /= (number + 1.0) * (size - true - shown + number + 1.0)
        elif number == low:
            total = value
        elif policy == BEST:
            total = max(total, value)
        else:
            total = min(total, value)
    return total


@inlined
def _largest(indices, sides, start, stop, gain_of, number, sign, side, top):  # type: ignore[no-untyped-def]
    """Sum of the ``number`` largest ``sign x gain`` of a row's positives (of one side, or all)."""
    filled = 0
    for at in range(start, stop):
        if number == 0 or (side == 0 and sides[at] != 0):
            continue
        gain = sign * gain_of[indices[at]]
        if filled < number:
            place = filled
            filled += 1
        elif gain > top[number - 1]:
            place = number - 1
        else:
            continue
        while place > 0 and top[place - 1] < gain:
            top[place] = top[place - 1]
            place -= 1
        top[place] = gain
    total = 0.0
    for place in range(filled):
        total += top[place]
    return total


_ROW_INPUTS = (
    "const int32[:,::1], const uint8[:,::1], const int64[::1], "
    "const int64[::1], const int32[::1], const int8[::1], const float64[::1], "
)


@kernel("void(" + _ROW_INPUTS + "int64, int64, float64[:,::1])")
def score_rows(
    columns: Any,
    joined: Any,
    at_kth: Any,
    indptr: Any,
    indices: Any,
    sides: Any,
    gain_of: Any,
    policy: Any,
    denominator: Any,
    values: Any,
) -> None:
    """Fill ``values`` (rows x METRICS). ``gain_of`` is each label's inverse propensity."""
    n, k = columns.shape
    discounts = 1.0 / np.log2(np.arange(2.0, k + 2.0))
    hit_at = np.empty(k, np.uint8)
    top = np.empty(k, np.float64)
    for i in range(n):
        start, stop = indptr[i], indptr[i + 1]
        m = stop - start
        n_hits = 0
        for p in range(k):
            place = _is_in(columns[i, p], indices, start, stop)
            hit_at[p] = place < stop and indices[place] == columns[i, p]
            n_hits += hit_at[p]
        last = k - 1  # first place of the last group
        while last > 0 and joined[i, last]:
            last -= 1
        shown, size = k - last, at_kth[i]
        true, above = 0, 0
        for at in range(start, stop):
            true += sides[at] == 0
            above += sides[at] == 1

        # Average precision and discounted gain, group by group.
        gained, discounted = 0.0, 0.0
        if policy == STABLE:
            hits = 0
            for p in range(k):
                if hit_at[p]:
                    hits += 1
                    gained += hits / (p + 1.0)
                    discounted += discounts[p]
            expected_hits = float(n_hits)
            hit_rate = 1.0 if n_hits else 0.0
            inner = gained
        else:
            hits = 0
            p = 0
            while p < last:
                end = p + 1
                while end < last and joined[i, end]:
                    end += 1
                inside = 0
                for q in range(p, end):
                    inside += hit_at[q]
                gained += _group_gain(p, end - p, end - p, inside, hits, policy, discounts, False)
                discounted += _group_gain(
                    p, end - p, end - p, inside, hits, policy, discounts, True
                )
                hits += inside
                p = end
            inner = gained
            gained += _group_gain(last, shown, size, true, hits, policy, discounts, False)
            discounted += _group_gain(last, shown, size, true, hits, policy, discounts, True)
            if policy == EXPECTED:
                expected_hits = above + shown * true / size
                miss = 1.0
                for q in range(shown):
                    miss *= max(0.0, (size - true - q) / (size - q))
                hit_rate = 1.0 if above else 1.0 - miss
            else:
                kept = min(true, shown) if policy == BEST else max(0, shown - (size - true))
                expected_hits = float(above + kept)
                hit_rate = 1.0 if expected_hits > 0 else 0.0

        if denominator == BY_MIN:
            values[i, 0] = gained / min(k, m)
        elif denominator == BY_RELEVANT:
            values[i, 0] = gained / m
        elif policy == STABLE:
            values[i, 0] = gained / n_hits if n_hits else 0.0
        else:
            values[i, 0] = _over_hits(last, shown, size, true, above, inner, policy)
        values[i, 1] = expected_hits / k
        values[i, 2] = expected_hits / m
        ideal = 0.0
        for p in range(min(k, m)):
            ideal += discounts[p]
        values[i, 3] = discounted / ideal
        values[i, 4] = hit_rate

        # Propensity-scored gain, and the best the row allows.
        gain = 0.0
        if policy == STABLE:
            for p in range(k):
                if hit_at[p]:
                    gain += gain_of[columns[i, p]]
        else:
            for at in range(start, stop):
                if sides[at] == 1:
                    gain += gain_of[indices[at]]
                elif sides[at] == 0 and policy == EXPECTED:
                    gain += gain_of[indices[at]] * shown / size
            if policy != EXPECTED:
                kept = min(true, shown) if policy == BEST else max(0, shown - (size - true))
                sign = 1.0 if policy == BEST else -1.0
                gain += sign * _largest(indices, sides, start, stop, gain_of, kept, sign, 0, top)
        values[i, 5] = gain
        values[i, 6] = _largest(indices, sides, start, stop, gain_of, min(k, m), 1.0, -1, top)
