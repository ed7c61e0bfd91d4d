"""Verbs used in forked and spawned processes and on eight threads at once, after use here.

Everywhere they give the answers they give alone, or are refused in one line, and none hangs. Each
try is a process of its own with a time limit.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np

from attacks.children import ROOT, environment
from attacks.outcome import Outcome

TITLE = "fork, spawn and eight threads: the same answers, no hang"
SLICE = 3
FULL = 36
HANG_S = 300.0
WORKERS = {"fork": 2, "spawn": 2, "threads": 8}
REFUSED = "refused"


def attack(count: int, seed: int) -> Outcome:
    """Go through verbs and ways to use them side by side, on other rows each time round."""
    failures: list[str] = []
    refused = 0
    grid = list(product(VERBS, WORKERS))
    for number in range(count):
        # Steps of seven reach every pair, and few tries reach several verbs and ways.
        verb, way = grid[(seed + 7 * number) % len(grid)]
        told = _try(verb, way, seed + number // len(grid))
        refused += told == REFUSED
        if told not in ("", REFUSED):
            failures.append(f"try {number}, {verb} with {way}: {told}")
    pairs = min(count, len(grid))
    notes = f"{len(VERBS)} verbs, {len(WORKERS)} ways, {pairs} of {len(grid)} pairs"
    return Outcome(count, tuple(failures), f"{notes}, {refused} refused" if refused else notes)


def _try(verb: str, way: str, seed: int) -> str:
    """What went wrong; nothing if all answers were the same."""
    child = subprocess.Popen(
        [sys.executable, "-m", "attacks.forks", verb, way, str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
    )
    try:
        shown, told = child.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # of its own session: its workers go with it
        child.communicate()
        return f"hung for {HANG_S:.0f} s"
    if child.returncode:
        return f"ended with {child.returncode}: {told[-300:]!r}"
    return shown.strip()


# --- In the process of a try ----------------------------------------------------------------------


def _make(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 5))
    margins = X @ rng.normal(size=(5, 12)) - 1
    true = (margins + rng.logistic(size=margins.shape) > 0).astype(np.int8)
    return X, (1 / (1 + np.exp(-margins))).astype(np.float32), true


def _evaluate(seed: int) -> Any:
    import oddslip

    _, scores, true = _make(seed)
    return oddslip.evaluate(scores, true, k=3, auc=True, n_replicates=50).to_dict()


def _rank(seed: int) -> Any:
    import oddslip

    return oddslip.rank(_make(seed)[1], k=3).tolist()


def _fit(seed: int) -> Any:
    import oddslip

    _, scores, true = _make(seed)
    return oddslip.Repair(k=3).fit(scores, true).transform(scores).tolist()


def _diagnose(seed: int) -> Any:
    import oddslip

    _, scores, true = _make(seed)
    found = oddslip.diagnose(scores, true, k=3, weights="balanced", n_replicates=50)
    return found.to_dict()


def _train_with(learner: str, parameters: dict[str, Any]) -> Callable[[int], Any]:
    def train(seed: int) -> Any:
        from oddslip import OneVsRest

        X, _, true = _make(seed)
        model = OneVsRest(learner, weights="balanced", parameters=parameters).fit(X, true)
        return model.predict_margin(X).tolist()

    return train


VERBS: dict[str, Callable[[int], Any]] = {
    "evaluate": _evaluate,
    "rank": _rank,
    "fit": _fit,
    "diagnose": _diagnose,
    "train LightGBM": _train_with("lightgbm", {"num_iterations": 5}),
    "train XGBoost": _train_with("xgboost", {"n_estimators": 5}),
    "train logistic": _train_with("logistic", {}),
    "train MLP": _train_with("mlp", {"epochs": 1}),
}


def answer(verb: str, seed: int) -> str:
    """A digest of what a verb gives, or that it was refused in one line."""
    from oddslip.errors import OddslipError

    try:
        return hashlib.sha256(repr(VERBS[verb](seed)).encode()).hexdigest()
    except OddslipError as error:
        return REFUSED if "\n" not in str(error) else f"refused in lines: {error}"


def _compare(verb: str, way: str, seed: int) -> str:
    warnings.simplefilter("ignore")  # that a process with threads is forked is what is tried
    alone = answer(verb, seed)
    n_workers = WORKERS[way]
    pool: Any
    if way == "threads":
        pool = ThreadPoolExecutor(n_workers)
    else:
        pool = ProcessPoolExecutor(n_workers, multiprocessing.get_context(way))
    with pool:
        answers = list(pool.map(answer, [verb] * n_workers, [seed] * n_workers))
    if alone == REFUSED:
        return "refused where it is alone"
    if REFUSED in answers and set(answers) <= {alone, REFUSED}:
        return REFUSED
    return "" if set(answers) == {alone} else f"{len(set(answers) - {alone})} other answers"


if __name__ == "__main__":
    print(_compare(sys.argv[1], sys.argv[2], int(sys.argv[3])))
