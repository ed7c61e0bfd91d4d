"""Calibrate and rank in one pass, against calibrating first and ranking then. One thread."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import line, measure, title
from oddslip.calibrators.maps import LabelMaps
from oddslip.kernels.maps import AFFINE, KNOTS
from oddslip.metrics.rankings import rank_panel
from oddslip.panels import Panel
from oddslip.sources import open_source

N_ROWS, N_LABELS, K = 20_000, 2_000, 7
SLICE = 1_000  # rows given to the slow peers; their cost per row does not depend on it


def make_scores(rng, n_rows=N_ROWS, n_labels=N_LABELS):
    """Weighted scores: most cells low, every label with its own level and spread."""
    level = rng.normal(-3.0, 1.5, n_labels).astype(np.float32)
    margins = rng.standard_normal((n_rows, n_labels), np.float32)
    margins *= 2.0
    margins += level
    np.negative(margins, out=margins)
    np.exp(margins, out=margins)
    margins += 1.0
    return np.divide(1.0, margins, out=margins)


def isotonic_maps(rng, scores):
    """5 to 60 knots per label, in plateaus, up to values between 0.001 and 0.5."""
    n_labels = scores.shape[1]
    xs, ys, stops = [], [], []
    tops = np.geomspace(1e-3, 0.5, n_labels)
    rng.shuffle(tops)
    for label in range(n_labels):
        n_plateaus = int(rng.integers(3, 31))
        # Rare labels have their positives, and so their knots, among the high scores.
        shares = 1.0 - rng.random(2 * n_plateaus) ** 3
        x = np.unique(np.quantile(scores[:2000, label].astype(np.float64), shares))
        y = np.repeat(np.sort(rng.random(n_plateaus)) ** 2, 2)[: x.size]
        xs.append(x)
        ys.append(y / y[-1] * tops[label])
        stops.append(x.size)
    stop = np.cumsum(stops)
    zeros = np.zeros(n_labels)
    return LabelMaps(
        "probability", "probability", code=np.full(n_labels, KNOTS), a=zeros, b=zeros, c=zeros,
        start=stop - stops, stop=stop, x=np.concatenate(xs), y=np.concatenate(ys),
    )  # fmt: skip


def affine_maps(rng, n_labels):
    """Platt-like maps: slopes around 1, shifts of minus several nat."""
    zeros = np.zeros(n_labels)
    return LabelMaps(
        "probability", "log_odds", code=np.full(n_labels, AFFINE),
        a=rng.uniform(0.6, 1.4, n_labels), b=rng.normal(-3.0, 1.5, n_labels), c=zeros,
        start=zeros, stop=zeros, x=[], y=[],
    )  # fmt: skip


def interpolate_labels(maps, scores):
    """Each label by numpy.interp."""
    out = np.empty(scores.shape, np.float64)
    for label, (start, stop) in enumerate(zip(maps.start, maps.stop, strict=True)):
        out[:, label] = np.interp(scores[:, label], maps.x[start:stop], maps.y[start:stop])
    return out


def argsort_rows(values):
    """Top K by a stable sort."""
    return np.argsort(-values, axis=1, kind="stable")[:, :K]


def compare(name, maps, source, scores):
    """Print one table."""
    few = Panel(scores[:SLICE])
    scale = N_ROWS / SLICE

    def fused():
        fresh = maps.take(np.arange(N_LABELS))  # nothing remembered: levels are chosen in here
        return np.concatenate([fresh.rank_panel(block, K) for block in source.blocks()])

    def transform_and_rank():
        blocks = (maps.transform_panel(block) for block in source.blocks())
        return np.concatenate([rank_panel(Panel(block), K) for block in blocks])

    def transform_and_sort():
        return argsort_rows(maps.transform_panel(few, np.float64))

    title(f"calibrate and rank {N_ROWS:,} x {N_LABELS:,} float32, {name} maps, one thread")
    ours = measure(fused, 3)
    line("fused rank", ours)
    line("transform, then our rank", measure(transform_and_rank, 2), ours)
    sort = measure(transform_and_sort, 2, scale)
    line("transform, then stable argsort (scaled up)", sort, ours, "target: 10x")
    if (maps.code == KNOTS).all():
        by_label = measure(lambda: argsort_rows(interpolate_labels(maps, scores[:SLICE])), 2, scale)
        line("numpy.interp by label, argsort (scaled up)", by_label, ours)
        # Log-odds may round to one probability, so only knots must agree to the place.
        assert (transform_and_sort() == fused()[:SLICE]).all()
    cells = N_ROWS * N_LABELS
    alone = measure(lambda: maps.transform_panel(few), 3, scale)
    print(f"  CPU per cell: fused {ours.cpu / cells * 1e9:.2f} ns, transform alone "
          f"{alone.cpu / cells * 1e9:.1f} ns")  # fmt: skip


def run():
    """Print both tables."""
    rng = np.random.default_rng(0)
    scores = make_scores(rng)
    source = open_source(scores)
    compare("isotonic", isotonic_maps(rng, scores), source, scores)
    compare("affine", affine_maps(rng, N_LABELS), source, scores)
