"""XGBoost one-vs-rest: groups on one matrix against its own multi-label mode and a loop."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.timing import Times, line, title

N_LABELS, ROUNDS = 12, 12


class Clock:
    """CPU and wall time by stage."""

    def __init__(self) -> None:
        self.stages: dict[str, Times] = {}

    def __call__(self, stage, call):
        started = time.process_time(), time.perf_counter()
        told = call()
        spent = time.process_time() - started[0], time.perf_counter() - started[1]
        before = self.stages.get(stage, Times(0, 0))
        self.stages[stage] = Times(before.cpu + spent[0], before.wall + spent[1])
        return told

    @property
    def total(self) -> Times:
        return Times(*(sum(part) for part in zip(*self.stages.values(), strict=True)))

    def tell(self) -> None:
        for stage, times in self.stages.items():
            line(f"    of which {stage}", times)


def make_rows(n_rows: int, n_features: int, density: float):
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(n_features, N_LABELS))
    if density < 1:
        X = sp.random(n_rows, n_features, density, "csr", np.float32, random_state=0)
    else:
        X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    margins = np.asarray(X @ slopes)
    margins = margins / margins.std(axis=0) * 2 + rng.logistic(size=margins.shape)
    return X, (margins > np.quantile(margins, 0.95, axis=0)).astype(np.uint8)


def ours(X, Y, weights, clock):
    from oddslip.learners.xgboosts import BACKEND

    told = {**BACKEND.defaults(), "n_estimators": ROUNDS}
    prepared = clock("binning", lambda: BACKEND.prepare(X, told))
    size = BACKEND.group_size(N_LABELS, *X.shape, 2**30)
    parts = [slice(at, at + size) for at in range(0, N_LABELS, size)]

    def grow():
        return [BACKEND.train(prepared, Y[:, part], weights[part], told, 0) for part in parts]

    models = clock("growing", grow)
    return clock(
        "predicting", lambda: np.hstack([BACKEND.predict_margin(model, X) for model in models])
    )


def settings(weight=1.0, mean=None):
    told = {"n_estimators": ROUNDS, "learning_rate": 0.05, "max_depth": 6, "n_jobs": 1}
    return {**told, "scale_pos_weight": float(np.float32(weight)), "base_score": mean}


def own_mode(X, Y, weights, clock):
    """XGBoost's multi-label mode. It has no weight per label: this is the unweighted arm."""
    import xgboost as xgb

    model = clock("binning and growing", lambda: xgb.XGBClassifier(**settings()).fit(X, Y))
    return clock("predicting", lambda: model.predict(X, output_margin=True))


def loop(X, Y, weights, clock):
    import xgboost as xgb

    columns = []
    for label in range(N_LABELS):
        model = xgb.XGBClassifier(**settings(weights[label], float(Y[:, label].mean())))
        clock("binning and growing", lambda m=model, j=label: m.fit(X, Y[:, j]))
        columns.append(clock("predicting", lambda m=model: m.predict(X, output_margin=True)))
    return np.stack(columns, axis=1)


def run() -> None:
    for name, shape in (("dense", (8_000, 100, 1.0)), ("sparse", (8_000, 2_000, 0.01))):
        X, Y = make_rows(*shape)
        weights = (1 - Y.mean(axis=0)) / Y.mean(axis=0)
        size = f"{shape[0]:,} x {shape[1]:,} {name}"
        title(f"XGBoost, {size}, {N_LABELS} labels, {ROUNDS} trees each, one thread")
        best, found = {}, {}
        arms = {"weighted": weights, "unweighted": np.ones(N_LABELS)}
        runs = [(ours, "weighted"), (loop, "weighted"), (ours, "unweighted")]
        for peer, arm in [*runs, (own_mode, "unweighted")] * 2:
            clock = Clock()
            found[peer, arm] = peer(X, Y, arms[arm], clock)
            if (peer, arm) not in best or clock.total.cpu < best[peer, arm].total.cpu:
                best[peer, arm] = clock
        for arm, peer, text in (
            ("weighted", loop, "a loop of XGBClassifier, weighted"),
            ("unweighted", own_mode, "its own multi-label mode, unweighted"),
        ):
            line(f"oddslip, {arm}", best[ours, arm].total)
            best[ours, arm].tell()
            line(text, best[peer, arm].total, best[ours, arm].total)
            gap = np.abs(found[ours, arm] - found[peer, arm]).max()
            print(f"  largest difference of a margin between the two: {gap:.1e}")
            assert gap <= 1e-5
