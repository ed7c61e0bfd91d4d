"""One-vs-rest training with LightGBM against the loops of scikit-learn; and its peak memory.

``python -m benchmarks training`` compares times. ``python -m benchmarks.training memory`` trains
and scores 100 and then 500 labels, each in a process of its own, and prints their peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.timing import Times, line, title

ROUNDS = 60
TOLD = {"num_iterations": ROUNDS, "learning_rate": 0.05, "num_leaves": 31}
PEER = {"n_estimators": ROUNDS, "learning_rate": 0.05, "num_leaves": 31, "verbosity": -1}


def make_counts(n_rows, n_features, density, n_labels, seed=0):
    """Sparse counts, as of purchases: most cells 0, most others 1 or 2; labels of 1 to 5 %."""
    rng = np.random.default_rng(seed)
    # Drawn row by row: scipy.sparse.random shuffles all cells and would be the peak of memory.
    indptr = np.concatenate([[0], np.cumsum(rng.binomial(n_features, density, n_rows))])
    columns = rng.integers(0, n_features, indptr[-1], dtype=np.int32)
    counts = rng.geometric(0.6, indptr[-1]).astype(np.float64)
    X = sparse.csr_matrix((counts, columns, indptr), (n_rows, n_features))
    X.sum_duplicates()
    return X, make_labels(X, n_labels, rng)


def make_labels(X, n_labels, rng):
    Y = sparse.lil_matrix((n_labels, X.shape[0]), dtype=np.uint8)
    for j in range(n_labels):
        margins = X @ rng.normal(size=X.shape[1]) + rng.logistic(size=X.shape[0])
        Y[j, margins > np.quantile(margins, 1 - rng.uniform(0.01, 0.05))] = 1
    return Y.T.tocsr()


def spent() -> float:
    """CPU seconds of this process and of the workers it has waited for."""
    own, others = (resource.getrusage(who) for who in (0, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def once(call, scale=1.0):
    started = spent(), time.perf_counter()
    call()
    wall = time.perf_counter() - started[1]
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)  # so that its workers' time is counted
    return Times((spent() - started[0]) * scale, wall * scale)


def compare(name, X, Y, peer_labels, targets):
    from lightgbm import LGBMClassifier
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import MultiOutputClassifier

    from oddslip.learners import OneVsRest

    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    n_labels = Y.shape[1]
    truth = np.asarray(Y.todense())
    scale = n_labels / peer_labels
    title(f"{name}: {X.shape[0]:,} x {X.shape[1]:,}, {n_labels} labels, {ROUNDS} trees each")
    if scale > 1:
        print(f"  (the peers train {peer_labels} labels; their times are scaled to {n_labels})")
    ours = once(lambda: OneVsRest(parameters=TOLD).fit(X, truth))
    line("OneVsRest, grouped", ours)
    part = truth[:, :peer_labels]
    loop = once(lambda: MultiOutputClassifier(LGBMClassifier(**PEER, n_jobs=2)).fit(X, part), scale)
    line("MultiOutputClassifier(LGBMClassifier(n_jobs=2))", loop, ours, targets[0])
    pool = once(
        lambda: OneVsRestClassifier(LGBMClassifier(**PEER, n_jobs=1), n_jobs=2).fit(X, part), scale
    )
    line("OneVsRestClassifier(LGBMClassifier(n_jobs=1))", pool, ours, targets[1])
    where_time_goes(X, truth[:, : min(8, n_labels)])


def where_time_goes(X, truth):
    """CPU seconds of each phase, one thread, one group."""
    from oddslip.learners.lightgbms import BACKEND

    told = BACKEND.defaults() | TOLD
    Y, weights = np.asfortranarray(truth), np.ones(truth.shape[1])
    times = []

    def clock(call):
        started = time.process_time()
        made = call()
        times.append(time.process_time() - started)
        return made

    ready = clock(lambda: BACKEND.prepare(X, told))
    clock(lambda: BACKEND.train(ready, Y, weights, told | {"num_iterations": 0}, 0))
    model = clock(lambda: BACKEND.train(ready, Y, weights, told, 0))
    clock(lambda: BACKEND.predict_margin(model, X))
    binning, creating, all_of_it, predicting = times
    n = truth.shape[1]
    print(f"  where the time goes, CPU s, a group of {n} labels on one thread:")
    print(f"    binning, once               {binning:8.2f}")
    print(f"    creating a Booster, a group {creating:8.2f}")
    print(f"    growing, a label            {(all_of_it - creating) / n:8.2f}")
    print(f"    predicting, a label         {predicting / n:8.2f}")


def run() -> None:
    X, Y = make_counts(60_000, 8_000, 0.004, 40)
    compare("Wide sparse counts", X, Y, 4, ("target 4x wall", "target 3x wall"))
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(20_000, 500))
    Y = make_labels(dense, 24, rng)
    compare("Narrow dense", dense, Y, 4, ("target 1.5x wall", "target 1.2x wall"))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_memory(n_labels: int) -> None:
    """In a process of its own: peak memory after each step."""
    from oddslip.learners import OneVsRest, score_to_file

    X, Y = make_counts(100_000, 2_000, 0.01, n_labels)
    print(f"  {n_labels} labels: features and labels made {peak_mb():7.0f} MB", end="", flush=True)
    told = {**TOLD, "num_iterations": 10}
    model = OneVsRest(weights="balanced", parameters=told, memory_bytes=256 * 1024**2).fit(X, Y)
    print(f", trained {peak_mb():7.0f} MB", end="", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.npy"
        score_to_file(model, X, path)
        size = path.stat().st_size / 1024**2
        print(f", scored {peak_mb():7.0f} MB (file {size:.0f} MB", end="")
        model.save(Path(folder) / "model")
        dumped = sum(len(text) for text in _dumps(model)) / 1024**2
        print(f", models as text {dumped:.0f} MB)", flush=True)


def _dumps(model):
    from oddslip.learners.lightgbms import BACKEND

    return (BACKEND.dump(group) for group in model._models)


def run_memory() -> None:
    print("Peak memory, 100,000 x 2,000 sparse rows, 10 trees a label, 256 MB for training:")
    for n_labels in (100, 500):
        told = [sys.executable, "-m", "benchmarks.training", "memory", str(n_labels)]
        subprocess.run(told, check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        run_memory()
    elif sys.argv[1:2] == ["memory"]:
        measure_memory(int(sys.argv[2]))
    else:
        run()
