"""One-vs-rest training at one tenth of Instacart, from raw files: what 4,000 labels would take.

``python -m benchmarks scaling`` generates the files, reads them, and trains and scores a few labels
of both arms, spread over the popularity of products. Only if named: it takes minutes.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np

FOLDER = Path(".bench/instacart")
N_USERS, N_LABELS, TRAINED = 19_681, 4_000, 16


class Stages:
    """Wall and CPU seconds of named stages, and the peak memory so far."""

    def __init__(self) -> None:
        print(f"  {'stage':34} {'CPU s':>8} {'wall s':>8} {'peak MB':>8}")
        self.cpu: dict[str, float] = {}

    def run(self, name, call):
        started = time.process_time(), time.perf_counter()
        made = call()
        self.cpu[name] = time.process_time() - started[0]
        wall = time.perf_counter() - started[1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {name:34} {self.cpu[name]:8.1f} {wall:8.1f} {peak:8.0f}", flush=True)
        return made


def run() -> None:
    from oddslip.datasets import generate_instacart, read_instacart
    from oddslip.learners import OneVsRest

    print(f"\n{N_USERS:,} generated users, {N_LABELS:,} labels, {TRAINED} of them trained")
    stages = Stages()
    if not (FOLDER / "orders.csv").exists():
        stages.run("generate", lambda: generate_instacart(FOLDER, n_users=N_USERS, seed=0))
    data = stages.run(
        "read, features", lambda: read_instacart(FOLDER, n_labels=N_LABELS, cache=FOLDER / "cache")
    )
    by_popularity = np.argsort(-data.positives, kind="stable")
    chosen = by_popularity[np.linspace(0, N_LABELS - 1, TRAINED).astype(int)]
    truth = data.train.Y.tocsc()[:, chosen].tocsr()
    model = OneVsRest("lightgbm", preset="paper-booster")
    prepared = stages.run("bin", lambda: model.prepare(data.train.X))
    for weights in ("none", "balanced"):
        arm = OneVsRest("lightgbm", preset="paper-booster", weights=weights)
        stages.run(f"train, weights {weights}", lambda arm=arm: arm.fit(prepared, truth))
        stages.run(f"score, weights {weights}", lambda arm=arm: arm.predict_proba(data.test.X))
    arms = [seconds for name, seconds in stages.cpu.items() if name.startswith(("train", "score"))]
    hours = sum(arms) * N_LABELS / TRAINED / 3600
    print(f"  both arms of {N_LABELS:,} labels, extrapolated: {hours:.1f} CPU hours")
