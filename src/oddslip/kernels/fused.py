"""Calibrate and rank in one pass: the calibrated matrix never exists.

Maps are non-decreasing, so "the value of this cell reaches tau" means "its key reaches some key of
its label". With such keys for a ladder of levels tau_0 > tau_1 > ..., a row is ranked thus:

1. one vectorised sweep compares the row with the keys of one low level and collects the cells that
   reach them;
2. these few cells are compared with all levels, and the highest level that k cells reach is taken;
3. only the cells that reach it are evaluated. If the k-th best of them reaches tau, no other cell
   of the row can beat or tie it.

A row with too few cells at one level tries a lower one, and in the end evaluates every cell. The
choice of levels decides the speed, never the result. Invalid cells have keys above every level, so
they are always among those collected: the check of the input is free.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel
from oddslip.kernels.maps import (
    AFFINE,
    BETA,
    IDENTITY,
    KNOTS,
    MAPS,
    interpolate,
    place_of,
    sigmoid,
    value_of,
)

LANES = 16
DEPTH = 8
SEGMENT = LANES * DEPTH
LEVELS = 16
FEW = 16  # up to this many places are kept sorted by insertion


@inlined
def _collect(row, sieve, lanes, hits, cells):  # type: ignore[no-untyped-def]
    """Columns of the cells that reach the sieve. A lane's bit tells which of its cells do."""
    n_segments = row.shape[0] // SEGMENT
    n_hits = 0
    for segment in range(n_segments):
        start = segment * SEGMENT
        for lane in range(LANES):
            bits = np.uint32(0)
            for step in range(DEPTH):
                at = start + step * LANES + lane
                bits |= np.uint32(1 << step) if row[at] >= sieve[at] else np.uint32(0)
            lanes[lane] = bits
        for lane in range(LANES):
            hits[n_hits] = (start + lane) << DEPTH | np.int64(lanes[lane])
            n_hits += lanes[lane] != 0
    n_cells = 0
    for hit in range(n_hits):
        first = hits[hit] >> DEPTH
        for step in range(DEPTH):
            cells[n_cells] = first + step * LANES
            n_cells += (hits[hit] >> step) & 1
    for column in range(n_segments * SEGMENT, row.shape[0]):
        cells[n_cells] = column
        n_cells += row[column] >= sieve[column]
    return n_cells


@inlined
def _evaluate(score, label, code, a, b, c, start, stop, x, knots, margin, odds):  # type: ignore[no-untyped-def]
    """Value of one cell."""
    if code[label] == KNOTS:
        return interpolate(score, knots[place_of(score, start[label], stop[label], x)])
    return value_of(code[label], score, a[label], b[label], c[label], margin, odds)


@inlined
def _ahead(value, column, other_value, other_column):  # type: ignore[no-untyped-def]
    """Whether a cell ranks before another: higher value first, then lower column."""
    return value > other_value or (value == other_value and column < other_column)


@inlined
def _insert(value, column, values, columns, filled, k):  # type: ignore[no-untyped-def]
    """Offer a cell to the k best so far; returns how many there are now."""
    if filled == k:
        if not _ahead(value, column, values[k - 1], columns[k - 1]):
            return filled
        filled -= 1
    place = filled
    while place > 0 and _ahead(value, column, values[place - 1], columns[place - 1]):
        values[place] = values[place - 1]
        columns[place] = columns[place - 1]
        place -= 1
    values[place] = value
    columns[place] = column
    return filled + 1


@inlined
def _sort(values, columns, n, spare_values, spare_columns):  # type: ignore[no-untyped-def]
    """Sort cells, best first, by merging runs of doubling length."""
    run = 1
    while run < n:
        for left in range(0, n, 2 * run):
            middle = min(left + run, n)
            right = min(left + 2 * run, n)
            i = left
            j = middle
            for place in range(left, right):
                if i < middle and (
                    j == right or not _ahead(values[j], columns[j], values[i], columns[i])
                ):
                    spare_values[place] = values[i]
                    spare_columns[place] = columns[i]
                    i += 1
                else:
                    spare_values[place] = values[j]
                    spare_columns[place] = columns[j]
                    j += 1
        for place in range(n):
            values[place] = spare_values[place]
            columns[place] = spare_columns[place]
        run *= 2


@inlined
def _count_levels(row, cells, n_cells, ladder, counts):  # type: ignore[no-untyped-def]
    """How many of the cells reach each level."""
    for level in range(LEVELS):
        counts[level] = 0
    for cell in range(n_cells):
        key = row[cells[cell]]
        rungs = ladder[cells[cell]]
        for level in range(LEVELS):
            counts[level] += np.uint32(1) if key >= rungs[level] else np.uint32(0)


@inlined
def _narrow(row, cells, n_cells, ladder, level, kept):  # type: ignore[no-untyped-def]
    """The cells that reach a level."""
    n_kept = 0
    for cell in range(n_cells):
        kept[n_kept] = cells[cell]
        n_kept += row[cells[cell]] >= ladder[cells[cell], level]
    return n_kept


@inlined
def _any_above(row, cells, n_cells, limit):  # type: ignore[no-untyped-def]
    """Whether one of the cells is invalid."""
    largest = row.dtype.type(0)
    for cell in range(n_cells):
        largest = max(largest, row[cells[cell]])
    return largest > limit


@inlined
def _rank(  # type: ignore[no-untyped-def]
    scores, cells, n_cells, k, ceiling, code, a, b, c, start, stop, x, knots,
    margin, odds, values, ranked, spare_values, spare_ranked,
):  # fmt: skip
    """Evaluate some cells of a row and put the k best first; returns how many were evaluated.

    Cells come segment by segment. Once k cells have the largest value there is, those of the
    segments to the right are not looked at: saturated rows end early.
    """
    filled = 0
    for cell in range(n_cells):
        label = cells[cell]
        if (
            k <= FEW
            and filled == k
            and values[k - 1] >= ceiling
            and (label // SEGMENT * SEGMENT > ranked[k - 1])
        ):
            return cell
        score = np.float64(scores[label])
        value = _evaluate(score, label, code, a, b, c, start, stop, x, knots, margin, odds)
        if k <= FEW:
            filled = _insert(value, label, values, ranked, filled, k)
        else:
            values[cell] = value
            ranked[cell] = label
    if k > FEW:
        _sort(values, ranked, n_cells, spare_values, spare_ranked)
    return n_cells


_RANKING = (
    "int64(const {score}[:,::1], const {key}[:,::1], {key}, int64, " + MAPS + ", "
    "const float64[::1], const {key}[:,::1], const int64[::1], const {key}[:,::1], int32[:,::1])"
)


@kernel(
    _RANKING.format(score="float32", key="uint32"),
    _RANKING.format(score="float64", key="uint64"),
    error_model="numpy",
)
def rank_cells(
    scores: Any,
    keys: Any,
    limit: Any,
    k: Any,
    code: Any,
    a: Any,
    b: Any,
    c: Any,
    start: Any,
    stop: Any,
    x: Any,
    knots: Any,
    margin: Any,
    odds: Any,
    taus: Any,
    ladder: Any,
    sweeps: Any,
    sieves: Any,
    columns: Any,
) -> Any:
    """Labels of each row's k highest values, best first; equal values rank the lower label first.

    ``taus`` descend and begin with the largest value any label can have. Cells of label j whose
    key is below ``ladder[j, l]`` have values below ``taus[l]``. ``sweeps`` are the levels swept
    at, one after the other, and ``sieves`` their keys. Returns how many cells were evaluated, or
    -1 if a key is above ``limit``.
    """
    n_rows, n_labels = keys.shape
    lanes = np.empty(LANES, np.uint32)
    hits = np.empty(n_labels // DEPTH + 1, np.int64)
    cells = np.empty(n_labels + 1, np.int32)
    kept = np.empty(n_labels + 1, np.int32)
    counts = np.empty(LEVELS, np.uint32)
    values = np.empty(n_labels, np.float64)
    ranked = np.empty(n_labels, np.int32)
    spare_values = np.empty(n_labels, np.float64)
    spare_ranked = np.empty(n_labels, np.int32)
    ceiling = taus[0]
    evaluated = 0
    for i in range(n_rows):
        row = keys[i]
        done = False
        for sweep in range(sweeps.shape[0]):
            n_cells = _collect(row, sieves[sweep], lanes, hits, cells)
            if sweep == 0 and _any_above(row, cells, n_cells, limit):
                return -1
            _count_levels(row, cells, n_cells, ladder, counts)
            for level in range(sweeps[sweep] + 1):
                if counts[level] < k:
                    continue
                n_kept = _narrow(row, cells, n_cells, ladder, level, kept)
                evaluated += _rank(
                    scores[i], kept, n_kept, k, ceiling, code, a, b, c, start, stop, x, knots,
                    margin, odds, values, ranked, spare_values, spare_ranked,
                )  # fmt: skip
                done = values[k - 1] >= taus[level]
                if done:
                    break
            if done:
                break
        if not done:
            for column in range(n_labels):
                kept[column] = column
            if _any_above(row, kept, n_labels, limit):
                return -1
            evaluated += _rank(
                scores[i], kept, n_labels, k, ceiling, code, a, b, c, start, stop, x, knots,
                margin, odds, values, ranked, spare_values, spare_ranked,
            )  # fmt: skip
        for place in range(k):
            columns[i, place] = ranked[place]
    return evaluated


@inlined
def _invert_knots(target, start, stop, knots):  # type: ignore[no-untyped-def]
    """Where a label with knots reaches a value between its least and its most."""
    at = start
    upper = stop - 1
    while upper - at > 1:
        middle = (at + upper) >> 1
        if knots[middle, 1] < target:
            at = middle
        else:
            upper = middle
    slope = knots[at, 2]
    if not (0.0 < slope < np.inf):
        return knots[upper, 0]
    return min(knots[at, 0] + (target - knots[at, 1]) / slope, knots[upper, 0])


@inlined
def _invert_beta(target, a, b, c):  # type: ignore[no-untyped-def]
    """Log-odds at which a beta map reaches a value, by Newton's method."""
    z = 0.0
    for _ in range(12):
        tail = math.log1p(math.exp(-abs(z)))
        value = b * (max(z, 0.0) + tail) - a * (max(-z, 0.0) + tail) + c
        chance = sigmoid(z)
        slope = max(a * (1.0 - chance) + b * chance, 1e-12)
        # A flat end may throw the step far out; what is far out is mended by whoever checks.
        z = min(max(z - (value - target) / slope, z - 40.0), z + 40.0)
    return z


_INVERTING = "void(const float64[:,::1], " + MAPS + ", float64, float64, float64[:,::1])"


@kernel(_INVERTING, error_model="numpy")
def invert_maps(
    targets: Any,
    code: Any,
    a: Any,
    b: Any,
    c: Any,
    start: Any,
    stop: Any,
    x: Any,
    knots: Any,
    margin: Any,
    odds: Any,
    low: Any,
    high: Any,
    guesses: Any,
) -> None:
    """About the lowest score at which label j reaches ``targets[l, j]``; -inf: all, inf: none."""
    for j in range(code.shape[0]):
        least = _evaluate(low, j, code, a, b, c, start, stop, x, knots, margin, odds)
        most = _evaluate(high, j, code, a, b, c, start, stop, x, knots, margin, odds)
        for level in range(targets.shape[0]):
            target = targets[level, j]
            if target > most:
                guesses[level, j] = np.inf
            elif target <= least:
                guesses[level, j] = -np.inf
            elif code[j] == KNOTS:
                guesses[level, j] = _invert_knots(target, start[j], stop[j], knots)
            else:
                z = target
                if code[j] == AFFINE:
                    z = (target - b[j]) / a[j]
                elif code[j] == BETA:
                    z = _invert_beta(target, a[j], b[j], c[j])
                elif margin and not odds:
                    z = math.log(target / (1.0 - target))
                is_score = margin or (code[j] == IDENTITY and not odds)
                guesses[level, j] = z if is_score else sigmoid(z)
