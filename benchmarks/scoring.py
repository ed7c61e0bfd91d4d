"""Scoring boosted trees of many labels against LightGBM's own ``predict`` of the same trees."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import line, measure, title
from benchmarks.training import TOLD, make_counts, make_labels

N_ROWS, N_LABELS = 20_000, 32


def run() -> None:
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(N_ROWS, 30)).astype(np.float32)
    counts, labels = make_counts(N_ROWS, 1_000, 0.02, N_LABELS)
    compare("Sparse counts", counts, labels)
    compare("Dense", dense, make_labels(dense, N_LABELS, rng))


def compare(name, X, Y):
    from oddslip.learners import OneVsRest

    model = OneVsRest(parameters=TOLD).fit(X, Y)
    boosters = [booster for group in model._models for booster in group.boosters]
    shape = f"{X.shape[0]:,} x {X.shape[1]:,}"
    title(f"{name}: {shape}, {N_LABELS} labels of {TOLD['num_iterations']} trees")
    ours = measure(lambda: model.predict_margin(X), repeats=3)
    line("OneVsRest.predict_margin", ours)
    theirs = measure(lambda: [b.predict(X, raw_score=True) for b in boosters], repeats=3)
    line("LightGBM's predict, the same trees", theirs, ours)

    def loaded():
        model._models = [type(g)(g.boosters, g.starts) for g in model._models]
        model.predict_margin(X)

    line("OneVsRest.predict_margin, just loaded", measure(loaded, repeats=3))
