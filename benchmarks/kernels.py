"""Every kernel alone, on fixed sizes: ``python -m benchmarks kernels``.

``python -m benchmarks.kernels [word ...] [--json FILE]`` times those whose names hold a word, and
writes CPU milliseconds. ``ODDSLIP_CPU=baseline`` times the kernels that any processor can run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.timing import measure

Case = tuple[str, Callable[[], Any]]
ROWS, LABELS = 2000, 1000
BOTH = (np.float32, np.float64)


def _scores(dtype: Any, n_rows: int = ROWS, n_labels: int = LABELS) -> Any:
    """Probabilities of a one-vs-rest ranker: most are small."""
    rng = np.random.default_rng(7)
    z = rng.normal(-4, 2, (n_rows, n_labels)) + rng.normal(0, 1, n_labels)
    return (1 / (1 + np.exp(-z))).astype(dtype)


def _margins(dtype: Any, n_rows: int = ROWS, n_labels: int = LABELS) -> Any:
    return np.random.default_rng(8).normal(-4, 3, (n_rows, n_labels)).astype(dtype)


def _true_cells(n_rows: int = ROWS, n_labels: int = LABELS) -> Any:
    return (np.random.default_rng(9).random((n_rows, n_labels)) < 0.02).astype(np.uint8)


def _positives(cells: Any) -> tuple[Any, Any]:
    indptr = np.concatenate([[0], np.cumsum(cells.sum(axis=1, dtype=np.int64))])
    return indptr, np.nonzero(cells)[1].astype(np.int32)


def _keys_cases() -> Iterator[Case]:
    from oddslip.kernels.keys import keys_of, largest_key

    for dtype in BOTH:
        margins, keys = _margins(dtype), keys_of(_scores(dtype), "probability")
        yield f"keys_of margins {dtype.__name__}", lambda m=margins: keys_of(m, "margin")
        yield f"largest_key {dtype.__name__}", lambda k=keys: largest_key(k)


def _topk_cases() -> Iterator[Case]:
    from oddslip.kernels.keys import keys_of
    from oddslip.kernels.topk import rank_keys

    for dtype in BOTH:
        for n_labels, k in ((50, 7), (1000, 7), (1000, 30), (10_000, 7)):
            keys = keys_of(_scores(dtype, 2_000_000 // n_labels, n_labels), "probability")
            name = f"rank_rows {dtype.__name__} {n_labels} labels, k={k}"
            yield name, lambda keys=keys, k=k: rank_keys(keys, k)


def _hits_cases() -> Iterator[Case]:
    from oddslip.kernels.hits import count_positives, fill_positives, place_positives, score_rows
    from oddslip.kernels.keys import keys_of
    from oddslip.kernels.topk import rank_keys

    cells = _true_cells()
    indptr, indices = _positives(cells)
    counted, filled = np.zeros(ROWS + 1, np.int64), np.empty(indices.size, np.int32)
    yield "count_positives", lambda: count_positives(cells, counted)
    yield "fill_positives", lambda: fill_positives(cells, indptr, filled)
    rows, sides = np.arange(ROWS), np.empty(indices.size, np.int8)
    for dtype in BOTH:
        keys = keys_of(np.round(_scores(dtype), 2), "probability")
        columns, best, at_kth = rank_keys(keys, 20)
        kth = np.ascontiguousarray(best[:, -1])
        yield (
            f"place_positives {dtype.__name__}",
            lambda keys=keys, kth=kth: place_positives(keys, rows, indptr, indices, kth, sides),
        )
    joined = np.zeros(best.shape, np.uint8)
    joined[:, 1:] = best[:, 1:] == best[:, :-1]
    gains, values = np.linspace(1, 2, LABELS), np.empty((ROWS, 7))
    for name, policy in (("stable", 0), ("expected", 1), ("best", 2)):
        for by in (0, 2):
            yield (
                f"score_rows {name}, {'min' if by == 0 else 'hits'}",
                lambda policy=policy, by=by: score_rows(
                    columns, joined, at_kth, indptr, indices, sides, gains, policy, by, values
                ),
            )


def _isotonic_cases() -> Iterator[Case]:
    from oddslip.counting import count_cells
    from oddslip.counting.intervals import IntervalCounts, _make_buckets
    from oddslip.counting.positives import PositiveKeys
    from oddslip.kernels.isotonic import count_pairs, group_keys
    from oddslip.panels import Panel
    from oddslip.sources import open_source

    for dtype in BOTH:
        for kind, scores in (("probability", _scores(dtype)), ("margin", _margins(dtype))):
            name = f"{dtype.__name__} {kind}"
            panel = Panel(scores, _true_cells(), kind=kind)
            first = PositiveKeys(LABELS, dtype)
            first.add(panel)
            distinct = first.result()
            yield f"fill_buckets {name}", lambda d=distinct, k=kind: _make_buckets(d, k)
            second = IntervalCounts(distinct, kind)
            yield f"place_cells {name}", lambda s=second, p=panel: s.add(p)
        counts = count_cells(open_source(_scores(dtype), _true_cells()), threads=1)
        yield (
            f"pool_labels {dtype.__name__}",
            lambda c=counts: [c.isotonic_knots() for _ in "12345"],
        )
        labels = np.random.default_rng(1).integers(0, LABELS, 200_000).astype(np.int32)
        keys = np.arange(labels.size).astype(counts.keys.dtype)
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=LABELS))])
        out = np.empty_like(keys)
        yield (
            f"group_keys {dtype.__name__}",
            lambda k=keys, s=starts, o=out, la=labels: group_keys(la, k, s.copy(), o),
        )
    high, low = np.zeros((2, LABELS), np.int64)
    given = counts.indptr, counts.positives, counts.negatives_at, counts.negatives_between
    yield "count_pairs", lambda: [count_pairs(*given, high, low) for _ in range(10)]


def _logits_cases() -> Iterator[Case]:
    from oddslip.kernels import logits
    from oddslip.kernels.keys import keys_of

    factors, sums = np.linspace(0.5, 2, LABELS), np.zeros((5, LABELS))
    odds = np.empty((ROWS, LABELS))
    reaching = np.zeros(LABELS, np.int64), np.zeros(ROWS, np.int64)
    for dtype in BOTH:
        name, p, m = dtype.__name__, _scores(dtype), _margins(dtype)
        out = np.empty_like(p)
        odds_counts = np.zeros((LABELS, logits.ODDS_BINS), np.uint32)
        margin_counts = np.zeros((LABELS, logits.MARGIN_BINS), np.uint32)
        keys = keys_of(p, "probability")
        at = int(keys[0, 0])
        yield f"weigh_odds {name}", lambda p=p: logits.weigh_odds(p, factors, odds)
        yield (
            f"shift_probabilities {name}",
            lambda p=p, o=out: logits.shift_probabilities(p, factors, factors, o),
        )
        yield f"sum_sigmoids {name}", lambda p=p: logits.sum_sigmoids(p, factors, sums)
        yield (
            f"bin_probabilities {name}",
            lambda p=p, c=odds_counts: logits.bin_probabilities(p, c),
        )
        yield (
            f"bin_margins {name}",
            lambda m=m, c=margin_counts: logits.bin_margins(m, c),
        )
        yield (
            f"count_reaching {name}",
            lambda k=keys, a=at: logits.count_reaching(k, a, *reaching),
        )
    known = _scores(np.float64)
    yield "sum_odds_sigmoids", lambda: logits.sum_odds_sigmoids(known, sums)
    binned = np.random.default_rng(3).integers(0, 3, (LABELS, 640)).astype(np.uint32)
    centres, shifts = np.linspace(-32, 32, 640), np.linspace(-1, 1, LABELS)
    yield (
        "sum_binned_sigmoids",
        lambda: logits.sum_binned_sigmoids(binned, centres, shifts, sums),
    )


def _logistic_cases() -> Iterator[Case]:
    from oddslip.kernels import logistic

    indptr, indices = _positives(_true_cells())
    columns, few = np.arange(LABELS), np.arange(0, LABELS, 3)
    ones = np.ones((4, LABELS))
    for dtype in BOTH:
        found = np.zeros((5, LABELS))
        scores = _scores(dtype)
        yield (
            f"range_rows {dtype.__name__}",
            lambda s=scores, f=found: logistic.range_rows(s, indptr, indices, f),
        )
        for probable in (True, False):
            cells = _scores(dtype) if probable else _margins(dtype)
            name = f"{dtype.__name__} {'probability' if probable else 'margin'}"
            moments, sums = np.zeros((LABELS, 64, 4)), np.zeros((4, LABELS))
            low, per_bin = np.full(LABELS, -20.0), np.full(LABELS, 2.0)
            affine, beta = np.zeros((6, LABELS)), np.zeros((10, LABELS))
            given, third = (cells, probable), np.zeros((6, few.size))
            yield (
                f"add_moments {name}",
                lambda g=given, lo=low, p=per_bin, m=moments: logistic.add_moments(*g, lo, p, m),
            )
            yield (
                f"add_positives {name}",
                lambda g=given, s=sums: [
                    logistic.add_positives(*g, indptr, indices, ones[:3], s) for _ in "12345"
                ],
            )
            yield (
                f"add_affine_sums {name}",
                lambda g=given, s=affine: logistic.add_affine_sums(
                    *g, columns, ones[:2], ones[:2], s
                ),
            )
            yield (
                f"add_affine_sums of a third, {name}",
                lambda g=given, s=third: logistic.add_affine_sums(
                    *g, few, ones[:2, few].copy(), ones[:2, few].copy(), s
                ),
            )
            yield (
                f"add_beta_sums {name}",
                lambda g=given, s=beta: logistic.add_beta_sums(*g, columns, ones, ones[:3], s),
            )


def _maps_of(form: str) -> Any:
    from oddslip.calibrators.maps import LabelMaps

    zeros, rng = np.zeros(LABELS), np.random.default_rng(5)
    if form == "knots":
        each = 40
        x = np.sort(rng.random((LABELS, each)) ** 3, axis=1).ravel()
        y = np.sort(rng.random((LABELS, each)) ** 2, axis=1).ravel()
        start = np.arange(LABELS) * each
        return LabelMaps("probability", "probability", zeros, zeros, zeros, zeros, start,
                         start + each, x, y)  # fmt: skip
    code = np.full(LABELS, {"affine": 1, "beta": 2}[form])
    a, b = rng.uniform(0.5, 1.5, (2, LABELS))
    none = np.zeros(LABELS, np.int64)
    return LabelMaps("probability", "log_odds", code, a, b, zeros, none, none, zeros[:0], zeros[:0])


def _maps_cases() -> Iterator[Case]:
    from oddslip.panels import Panel

    for form in ("knots", "affine", "beta"):
        maps = _maps_of(form)
        for dtype in BOTH:
            panel = Panel(_scores(dtype))
            yield (
                f"map_cells {form} {dtype.__name__}",
                lambda m=maps, p=panel: m.transform_panel(p),
            )


def _fused_cases() -> Iterator[Case]:
    from oddslip.panels import Panel

    for form in ("knots", "affine", "beta"):
        maps = _maps_of(form)
        for dtype in BOTH:
            panel = Panel(_scores(dtype))
            for k in (7, 30):
                yield (
                    f"rank_cells {form} {dtype.__name__}, k={k}",
                    lambda m=maps, p=panel, k=k: m.rank_panel(p, k),
                )
        targets = np.random.default_rng(2).random((16, LABELS))
        yield f"invert_maps {form}", lambda m=maps, t=targets: [m.invert(t, 0, 1) for _ in "12345"]


def _trees_cases() -> Iterator[Case]:
    from oddslip.kernels import trees

    rng = np.random.default_rng(4)
    n_trees, n_features, n_labels, n_leaves = 2000, 100, 20, 31
    # Chains: node n has a leaf to the left and the next node to the right.
    starts = np.arange(n_trees + 1) * (n_leaves - 1)
    n_nodes = int(starts[-1])
    at = np.tile(np.arange(n_leaves - 1), n_trees)
    left = (~at).astype(np.int32)
    right = np.where(at == n_leaves - 2, ~(n_leaves - 1), at + 1).astype(np.int32)
    thresholds, values = rng.normal(size=n_nodes), rng.normal(size=n_trees * n_leaves)
    masks, rests = np.empty(n_nodes, np.uint64), np.empty(n_nodes, np.uint8)
    laid, leaf_starts = np.zeros((n_trees, n_leaves)), np.arange(n_trees + 1) * n_leaves
    lay = starts, thresholds, left, right, leaf_starts, values, masks, rests, laid
    yield "lay_trees", lambda: trees.lay_trees(*lay)
    trees.lay_trees(*lay)
    slots = 2 * rng.integers(0, n_features, n_nodes) + (rests == 0)
    order = np.lexsort((np.abs(thresholds), slots))
    edges = np.searchsorted(slots[order], np.arange(2 * n_features + 1)).astype(np.int32)
    of_tree = np.repeat(np.arange(n_trees), n_leaves - 1)[order].astype(np.int32)
    forest = edges, thresholds[order], of_tree, masks[order], laid
    sums = np.empty((300, n_labels))
    for dtype in BOTH:
        cells = rng.normal(size=(300, n_features)).astype(dtype)
        yield (
            f"sum_dense_rows {dtype.__name__}",
            lambda c=cells: trees.sum_dense_rows(c, *forest, sums),
        )
        row_starts = np.arange(301) * 10
        columns = np.tile(np.arange(0, n_features, 10), 300).astype(np.int32)
        few = rng.normal(size=3000).astype(dtype)
        yield (
            f"sum_sparse_rows {dtype.__name__}",
            lambda f=few, r=row_starts, c=columns: trees.sum_sparse_rows(r, c, f, *forest, sums),
        )
    shape = 20, 20_000
    margins, truths = rng.normal(size=shape), (rng.random(shape) < 0.05).astype(np.uint8)
    gradients, hessians = np.empty((2, *shape), np.float32)
    ones = np.ones(20)
    yield (
        "weigh_gradients",
        lambda: trees.weigh_gradients(margins, truths, ones, ones, gradients, hessians),
    )
    turned = np.ascontiguousarray(margins.T, np.float32), np.ascontiguousarray(truths.T)
    out = np.empty((2, *shape[::-1]), np.float32)
    single = np.ones(20, np.float32)
    yield "fill_gradients", lambda: trees.fill_gradients(*turned, single, *out)


def _resampling_cases() -> Iterator[Case]:
    from oddslip.kernels.resampling import count_draws

    seeds, draws = np.arange(32).astype(np.uint64), np.full(32, 20_000)
    counts = np.empty((32, 20_000))
    yield "count_draws", lambda: count_draws(seeds, draws, counts)


GROUPS = {
    "keys": _keys_cases,
    "topk": _topk_cases,
    "hits": _hits_cases,
    "isotonic": _isotonic_cases,
    "logits": _logits_cases,
    "logistic": _logistic_cases,
    "maps": _maps_cases,
    "fused": _fused_cases,
    "trees": _trees_cases,
    "resampling": _resampling_cases,
}


def run(words: list[str] | None = None, repeats: int = 7) -> dict[str, float]:
    from oddslip import kernels

    print(f"\nKernels ({getattr(kernels, 'CPU', 'numba')}), CPU milliseconds, best of {repeats}")
    found = {}
    for group, cases in GROUPS.items():
        for name, call in cases():
            label = f"{group}: {name}"
            if words and not any(word in label for word in words):
                continue
            call()
            found[label] = 1000 * measure(call, repeats).cpu
            print(f"  {label:60} {found[label]:9.3f}", flush=True)
    return found


if __name__ == "__main__":
    arguments = sys.argv[1:]
    target = None
    if "--json" in arguments:
        place = arguments.index("--json")
        target = arguments[place + 1]
        del arguments[place : place + 2]
    times = run(arguments)
    if target:
        with open(target, "w") as file:
            json.dump(times, file, indent=1)
