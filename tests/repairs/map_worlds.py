"""Maps and scores of every form, and what NumPy and SciPy make of them."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit, logit

from oddslip.kernels.maps import AFFINE, BETA, CONSTANT, EXCLUDED, IDENTITY, KNOTS
from oddslip.repairs.maps import LabelMaps

CODES = {
    "probability": (KNOTS, KNOTS, KNOTS, CONSTANT, IDENTITY, EXCLUDED),
    "log_odds": (AFFINE, AFFINE, BETA, CONSTANT, IDENTITY, EXCLUDED),
}
SETTINGS = settings(deadline=None, max_examples=60)
worlds = st.tuples(
    st.integers(0, 2**32),
    st.sampled_from(["probability", "margin"]),
    st.sampled_from(["probability", "log_odds"]),
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 300),
    st.booleans(),
)


def draw_scores(rng, kind, dtype, n_rows, n_labels):
    """Rows of many sorts: smooth, crowded with ties, saturated, tiny, signed zeros."""
    margins = rng.normal(-2, 4, (n_rows, n_labels))
    crowded = rng.random(n_rows) < 0.3
    margins[crowded] = np.rint(margins[crowded] / 3) * 3
    margins[rng.random((n_rows, n_labels)) < 0.1 * rng.integers(0, 5)] = rng.choice([12.0, 80.0])
    if kind == "margin":
        scores = margins.astype(dtype)
        extremes = [-0.0, 0.0, np.finfo(dtype).max, np.finfo(dtype).min, 5e-45, 745.2]
    else:
        scores = expit(margins).astype(dtype)
        extremes = [-0.0, 0.0, 1.0, 1.0, np.nextafter(dtype(1), dtype(0)), 1e-45, 1e-12, 0.5]
    odd = rng.random(scores.shape) < rng.choice([0.0, 0.05])
    scores[odd] = rng.choice(np.array(extremes, dtype), odd.sum())
    return scores


def draw_maps(rng, kind, scale, scores, step=False, codes=None):
    n_labels = scores.shape[1]
    code = rng.choice(CODES[scale] if codes is None else codes, n_labels).astype(np.int8)
    a, b, c = rng.uniform(0, 2, (3, n_labels)) * rng.integers(0, 2, (3, n_labels))
    a[code == CONSTANT] = rng.choice([0.0, 1.0, 0.25, 0.01], (code == CONSTANT).sum())
    b = np.where(code == AFFINE, rng.choice([-2.0, 0.0, 1.5], n_labels), b)
    xs, ys, stops = [np.empty(0)], [np.empty(0)], []
    for label in range(n_labels):
        size = int(rng.integers(1, 12))
        x = np.unique(rng.choice(scores[:, label].astype(np.float64) + 0.0, size))
        # Values of few different heights, so that labels tie with one another.
        y = np.sort(rng.choice([0.0, 0.1, 0.1, 0.2, 0.5, 1.0, rng.random()], x.size))
        xs.append(x)
        ys.append(y)
        stops.append(x.size)
    stop = np.cumsum(stops)
    return LabelMaps(
        kind, scale, code, a, b, c, stop - stops, stop, np.concatenate(xs), np.concatenate(ys), step
    )


@np.errstate(over="ignore", invalid="ignore")
def reference_values(maps, scores):
    """Values by numpy and scipy, label by label."""
    scores = scores.astype(np.float64)
    margin = maps.kind == "margin"
    values = np.empty(scores.shape)
    for label in range(maps.n_labels):
        s, code = scores[:, label], maps.code[label]
        a, b, c = maps.a[label], maps.b[label], maps.c[label]
        x, y = (array[maps.start[label] : maps.stop[label]] for array in (maps.x, maps.y))
        clipped = np.clip(s, 1e-12, 1 - 1e-12)
        z = s if margin else logit(clipped)
        if code == KNOTS and maps.step:
            values[:, label] = y[np.maximum(np.searchsorted(x, s, side="right") - 1, 0)]
        elif code == KNOTS:
            values[:, label] = np.interp(s, x, y)
        elif code == AFFINE:
            values[:, label] = a * z + b
        elif code == BETA:
            ln_s = log_expit(s) if margin else np.log(clipped)
            ln_rest = log_expit(-s) if margin else np.log1p(-clipped)
            values[:, label] = a * ln_s - b * ln_rest + c
        elif code == CONSTANT:
            values[:, label] = logit(a) if maps.scale == "log_odds" else a
        elif code == IDENTITY and maps.scale == "log_odds":
            values[:, label] = z
        elif code == IDENTITY:
            values[:, label] = expit(s) if margin else s
        else:
            values[:, label] = -np.inf
    return values


def sort_rows(values, k):
    return np.argsort(-values, axis=1, kind="stable")[:, :k]


def simple_maps(kind="probability", scale="probability", **changed):
    """Two labels: knots (or a line) and a constant."""
    odds = scale == "log_odds"
    arguments = {
        "code": [AFFINE if odds else KNOTS, CONSTANT],
        "a": [1.0, 0.25],
        "b": [0.0, 0.0],
        "c": [0.0, 0.0],
        "start": [0, 0],
        "stop": [0 if odds else 2, 0],
        "x": [0.2, 0.8],
        "y": [0.0, 0.6],
    }
    return LabelMaps(kind, scale, **(arguments | changed))
