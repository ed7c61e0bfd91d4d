"""Every kernel alone: those this processor takes, beside those that any processor can run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import Times, agree, alone, line, measure, title

Case = tuple[str, Callable[[], Any]]
BOTH = (np.float32, np.float64)


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    repeats: int


REAL = Size(2000, 1000, 7)
TOY = Size(60, 40, 1)


def _scores(dtype: Any, n_rows: int, n_labels: int) -> Any:
    """Probabilities of a one-vs-rest ranker: most are small."""
    rng = np.random.default_rng(7)
    z = rng.normal(-4, 2, (n_rows, n_labels)) + rng.normal(0, 1, n_labels)
    return (1 / (1 + np.exp(-z))).astype(dtype)


def _margins(dtype: Any, n_rows: int, n_labels: int) -> Any:
    return np.random.default_rng(8).normal(-4, 3, (n_rows, n_labels)).astype(dtype)


def _true_cells(n_rows: int, n_labels: int) -> Any:
    return (np.random.default_rng(9).random((n_rows, n_labels)) < 0.02).astype(np.uint8)


def _positives(cells: Any) -> tuple[Any, Any]:
    indptr = np.concatenate([[0], np.cumsum(cells.sum(axis=1, dtype=np.int64))])
    return indptr, np.nonzero(cells)[1].astype(np.int32)


def _keys_cases(size: Size) -> Iterator[Case]:
    from oddslip.kernels.keys import keys_of, largest_key

    shape = size.n_rows, size.n_labels
    for dtype in BOTH:
        margins, keys = _margins(dtype, *shape), keys_of(_scores(dtype, *shape), "probability")
        yield f"keys_of margins {dtype.__name__}", lambda m=margins: keys_of(m, "margin")
        yield f"largest_key {dtype.__name__}", lambda k=keys: largest_key(k)


def _topk_cases(size: Size) -> Iterator[Case]:
    from oddslip.kernels.keys import keys_of
    from oddslip.kernels.topk import rank_keys

    n_cells = size.n_rows * size.n_labels
    for dtype in BOTH:
        for n_labels, k in ((50, 7), (1000, 7), (1000, 30), (10_000, 7)):
            keys = keys_of(_scores(dtype, max(1, n_cells // n_labels), n_labels), "probability")
            name = f"rank_rows {dtype.__name__} {n_labels} labels, k={k}"
            yield name, lambda keys=keys, k=k: rank_keys(keys, k)


def _hits_cases(size: Size) -> Iterator[Case]:
    from oddslip.kernels.hits import count_positives, fill_positives, place_positives, score_rows
    from oddslip.kernels.keys import keys_of
    from oddslip.kernels.topk import rank_keys

    n_rows, n_labels = shape = size.n_rows, size.n_labels
    cells = _true_cells(*shape)
    indptr, indices = _positives(cells)
    counted, filled = np.zeros(n_rows + 1, np.int64), np.empty(indices.size, np.int32)
    yield "count_positives", lambda: count_positives(cells, counted)
    yield "fill_positives", lambda: fill_positives(cells, indptr, filled)
    rows, sides = np.arange(n_rows), np.empty(indices.size, np.int8)
    for dtype in BOTH:
        keys = keys_of(np.round(_scores(dtype, *shape), 2), "probability")
        columns, best, at_kth = rank_keys(keys, 20)
        kth = np.ascontiguousarray(best[:, -1])
        yield (
            f"place_positives {dtype.__name__}",
            lambda keys=keys, kth=kth: place_positives(keys, rows, indptr, indices, kth, sides),
        )
    joined = np.zeros(best.shape, np.uint8)
    joined[:, 1:] = best[:, 1:] == best[:, :-1]
    gains, values = np.linspace(1, 2, n_labels), np.empty((n_rows, 7))
    for name, policy in (("stable", 0), ("expected", 1), ("best", 2)):
        for by in (0, 2):
            yield (
                f"score_rows {name}, {'min' if by == 0 else 'hits'}",
                lambda policy=policy, by=by: score_rows(
                    columns, joined, at_kth, indptr, indices, sides, gains, policy, by, values
                ),
            )


def _isotonic_cases(size: Size) -> Iterator[Case]:
    from oddslip.core.panel import Panel
    from oddslip.core.passes import run
    from oddslip.kernels.isotonic import count_pairs, group_keys
    from oddslip.sources.open import open_rows
    from oddslip.tallies.cell_counts import IntervalCounts, PositiveKeys, _make_buckets, count_cells

    n_labels, shape = size.n_labels, (size.n_rows, size.n_labels)
    for dtype in BOTH:
        for kind, scores in (
            ("probability", _scores(dtype, *shape)),
            ("margin", _margins(dtype, *shape)),
        ):
            name = f"{dtype.__name__} {kind}"
            panel = Panel(scores, _true_cells(*shape), kind=kind)
            first = PositiveKeys(n_labels, dtype)
            first.add(panel)
            distinct = first.result()
            yield f"fill_buckets {name}", lambda d=distinct, k=kind: _make_buckets(d, k)
            second = IntervalCounts(distinct, kind)
            yield f"place_cells {name}", lambda s=second, p=panel: s.add(p)
        source = open_rows(_scores(dtype, *shape), _true_cells(*shape), threads=1)
        counts = run(source, count_cells(source))
        yield (
            f"pool_labels {dtype.__name__}",
            lambda c=counts: [c.isotonic_knots() for _ in "12345"],
        )
        labels = np.random.default_rng(1).integers(0, n_labels, 200_000).astype(np.int32)
        keys = np.arange(labels.size).astype(counts.keys.dtype)
        starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
        out = np.empty_like(keys)
        yield (
            f"group_keys {dtype.__name__}",
            lambda k=keys, s=starts, o=out, la=labels: group_keys(la, k, s.copy(), o),
        )
    high, low = np.zeros((2, n_labels), np.int64)
    given = counts.indptr, counts.positives, counts.negatives_at, counts.negatives_between
    yield "count_pairs", lambda: [count_pairs(*given, high, low) for _ in range(10)]


def _logits_cases(size: Size) -> Iterator[Case]:
    from oddslip.kernels import logits
    from oddslip.kernels.keys import keys_of

    n_rows, n_labels = shape = size.n_rows, size.n_labels
    factors, sums = np.linspace(0.5, 2, n_labels), np.zeros((5, n_labels))
    odds = np.empty((n_rows, n_labels))
    for dtype in BOTH:
        name, p, m = dtype.__name__, _scores(dtype, *shape), _margins(dtype, *shape)
        out = np.empty_like(p)
        counts = np.zeros((n_labels, max(logits.ODDS_BINS, logits.MARGIN_BINS)), np.uint32)
        keys = keys_of(p, "probability")
        yield f"weigh_odds {name}", lambda p=p: logits.weigh_odds(p, factors, odds)
        yield (
            f"shift_probabilities {name}",
            lambda p=p, o=out: logits.shift_probabilities(p, factors, factors, o),
        )
        yield f"sum_sigmoids {name}", lambda p=p: logits.sum_sigmoids(p, factors, sums)
        bins = counts[:, : logits.ODDS_BINS].copy(), counts[:, : logits.MARGIN_BINS].copy()
        yield f"bin_probabilities {name}", partial(logits.bin_probabilities, p, bins[0])
        yield f"bin_margins {name}", partial(logits.bin_margins, m, bins[1])
        reaching = np.zeros(n_labels, np.int64), np.zeros(n_rows, np.int64)
        yield f"count_reaching {name}", partial(logits.count_reaching, keys, keys[0, 0], *reaching)
    known = _scores(np.float64, *shape)
    yield "sum_odds_sigmoids", lambda: logits.sum_odds_sigmoids(known, sums)
    binned = np.random.default_rng(3).integers(0, 3, (n_labels, 640)).astype(np.uint32)
    centres, shifts = np.linspace(-32, 32, 640), np.linspace(-1, 1, n_labels)
    yield (
        "sum_binned_sigmoids",
        lambda: logits.sum_binned_sigmoids(binned, centres, shifts, sums),
    )


def _logistic_cases(size: Size) -> Iterator[Case]:
    from oddslip.kernels import logistic

    n_labels, shape = size.n_labels, (size.n_rows, size.n_labels)
    indptr, indices = _positives(_true_cells(*shape))
    columns, few = np.arange(n_labels), np.arange(0, n_labels, 3)
    ones = np.ones((4, n_labels))
    for dtype in BOTH:
        found = np.zeros((5, n_labels))
        scores = _scores(dtype, *shape)
        yield (
            f"range_rows {dtype.__name__}",
            lambda s=scores, f=found: logistic.range_rows(s, indptr, indices, f),
        )
        for probable in (True, False):
            cells = _scores(dtype, *shape) if probable else _margins(dtype, *shape)
            name = f"{dtype.__name__} {'probability' if probable else 'margin'}"
            moments, sums = np.zeros((n_labels, 64, 4)), np.zeros((4, n_labels))
            low, per_bin = np.full(n_labels, -20.0), np.full(n_labels, 2.0)
            affine, beta = np.zeros((6, n_labels)), np.zeros((10, n_labels))
            given = cells, probable
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
            third = few, ones[:2, few].copy(), ones[:2, few].copy(), affine[:, few].copy()
            yield (
                f"add_affine_sums of a third, {name}",
                partial(logistic.add_affine_sums, *given, *third),
            )
            yield (
                f"add_beta_sums {name}",
                lambda g=given, s=beta: logistic.add_beta_sums(*g, columns, ones, ones[:3], s),
            )


def _maps_of(form: str, n_labels: int) -> Any:
    from oddslip.repairs.maps import LabelMaps

    zeros, rng = np.zeros(n_labels), np.random.default_rng(5)
    if form == "knots":
        each = 40
        x = np.sort(rng.random((n_labels, each)) ** 3, axis=1).ravel()
        y = np.sort(rng.random((n_labels, each)) ** 2, axis=1).ravel()
        start = np.arange(n_labels) * each
        return LabelMaps(
            "probability", "probability", zeros, zeros, zeros, zeros, start, start + each, x, y
        )
    code = np.full(n_labels, {"affine": 1, "beta": 2}[form])
    a, b = rng.uniform(0.5, 1.5, (2, n_labels))
    none = np.zeros(n_labels, np.int64)
    return LabelMaps("probability", "log_odds", code, a, b, zeros, none, none, zeros[:0], zeros[:0])


def _maps_cases(size: Size) -> Iterator[Case]:
    from oddslip.core.panel import Panel

    n_labels, shape = size.n_labels, (size.n_rows, size.n_labels)
    for form in ("knots", "affine", "beta"):
        maps = _maps_of(form, n_labels)
        for dtype in BOTH:
            panel = Panel(_scores(dtype, *shape))
            yield (
                f"map_cells {form} {dtype.__name__}",
                lambda m=maps, p=panel: m.transform_panel(p),
            )


def _fused_cases(size: Size) -> Iterator[Case]:
    from oddslip.core.panel import Panel

    n_labels, shape = size.n_labels, (size.n_rows, size.n_labels)
    for form in ("knots", "affine", "beta"):
        maps = _maps_of(form, n_labels)
        for dtype in BOTH:
            panel = Panel(_scores(dtype, *shape))
            for k in (7, 30):
                yield (
                    f"rank_cells {form} {dtype.__name__}, k={k}",
                    lambda m=maps, p=panel, k=k: m.rank_panel(p, k),
                )
        targets = np.random.default_rng(2).random((16, n_labels))
        yield f"invert_maps {form}", lambda m=maps, t=targets: [m.invert(t, 0, 1) for _ in "12345"]


def _trees_cases(size: Size) -> Iterator[Case]:
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


def _resampling_cases(size: Size) -> Iterator[Case]:
    from oddslip.kernels.resampling import draw_poisson

    keys, counts = np.arange(20_000).astype(np.uint64), np.empty((32, 20_000))
    yield "draw_poisson", lambda: draw_poisson(keys, 42, 0, counts)


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


def time_kernels(size: Size, cpu: str) -> dict[str, dict[str, Times]]:
    """Times of all kernels of one build, by group; in a process of its own."""
    os.environ["ODDSLIP_CPU"] = cpu
    from oddslip import kernels

    assert cpu == kernels.CPU
    times: dict[str, dict[str, Times]] = {}
    for group, cases in GROUPS.items():
        for name, call in cases(size):
            call()
            times.setdefault(group, {})[name] = measure(call, size.repeats)
    return times


def answer(size: Size, cpu: str) -> dict[str, Any]:
    """What a build says of one panel, something of every group of kernels."""
    os.environ["ODDSLIP_CPU"] = cpu
    import oddslip
    from oddslip.calibrators import Isotonic, Platt
    from oddslip.kernels import trees
    from oddslip.kernels.resampling import draw_poisson
    from oddslip.metrics import auc_per_label, average_precision_at_k
    from oddslip.shifts import realized_shift

    scores = _scores(np.float32, size.n_rows, size.n_labels)
    labels = np.random.default_rng(1).random(scores.shape) < scores
    isotonic, platt = (kind().fit(scores, labels) for kind in (Isotonic, Platt))
    margins, ones = _margins(np.float64, 20, 100), np.ones(20)
    gradients, hessians = np.empty((2, *margins.shape), np.float32)
    trees.weigh_gradients(margins, _true_cells(20, 100), ones, ones, gradients, hessians)
    drawn = np.empty((3, 50))
    draw_poisson(np.arange(50).astype(np.uint64), 42, 0, drawn)
    return {
        "keys": oddslip.rank(_margins(np.float32, *scores.shape), k=7, kind="margin"),
        "topk": oddslip.rank(scores, k=7),
        "hits": average_precision_at_k(scores, labels, k=7, per_row=True),
        "isotonic": np.nan_to_num(auc_per_label(scores, labels)),
        "logits": realized_shift(scores, np.full(size.n_labels, 0.1)).shift,
        "logistic": platt.transform(scores),
        "maps": isotonic.transform(scores),
        "fused": isotonic.rank(scores, k=7),
        "trees": gradients,
        "resampling": drawn,
    }


def run(size: Size) -> None:
    from oddslip import kernels

    fast, plain = (alone(time_kernels, size, cpu) for cpu in (kernels.CPU, "baseline"))
    ours, theirs = (alone(answer, size, cpu) for cpu in (kernels.CPU, "baseline"))
    for group, cases in fast.items():
        title(f"kernels of {group}, {kernels.CPU} beside baseline")
        for name, times in cases.items():
            line(name, times)
            line("  for any processor", plain[group][name], times)
        # Logistic sums alone may differ in their last digits: see setup.py.
        agree(f"answers of {group}", ours[group], theirs[group], 1e-6 * (group == "logistic"))
