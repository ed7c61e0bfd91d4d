"""Fitted repairs with maps of every form, and scores for them."""

import sys
from pathlib import Path

import numpy as np

from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.row_aware import add_stage
from oddslip.repairs.row_stage import RowStage

sys.path.insert(0, str(Path(__file__).parents[1] / "repairs"))
from map_worlds import draw_maps, draw_scores


def as_repair(maps, label_names=None):
    """A repair that has these maps and says nothing of how they came about."""
    n = maps.n_labels
    record = LabelRecord(
        ("calibrated",) * n, np.ones(n, np.int64), np.full(n, 0.5), "given", np.zeros(n, np.bool_)
    )
    return FittedRepair(maps, label_names, record, "Isotonic", {"tau": 0}, 100)


def draw_repair(seed, most_labels=40, most_rows=6, label_names=None):
    """A repair of any kind, scale and form, and rows of scores; small."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["probability", "margin"]))
    scale = str(rng.choice(["probability", "log_odds"]))
    dtype = [np.float32, np.float64][seed % 2]
    shape = int(rng.integers(1, most_rows + 1)), int(rng.integers(1, most_labels + 1))
    scores = draw_scores(rng, kind, dtype, *shape)
    maps = draw_maps(rng, kind, scale, scores, step=bool(rng.random() < 0.2))
    k = int(rng.integers(1, shape[1] + 1))
    names = None if label_names is None else label_names(shape[1])
    return as_repair(maps, names), scores, k


def draw_row_aware(seed, n_rows=30, n_labels=12, label_names=None, **numbers):
    """A repair with a row-aware stage behind maps of every form of log-odds, and scores."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["probability", "margin"]))
    scores = draw_scores(rng, kind, [np.float32, np.float64][seed % 2], n_rows, n_labels)
    size = int(rng.integers(0, n_labels))
    others = [rng.permutation(np.delete(np.arange(n_labels), j))[:size] for j in range(n_labels)]
    partners = np.sort(np.array(others, np.int32).reshape(n_labels, size), axis=1)
    coefficients = {"slope": rng.uniform(-0.5, 0.5), "intercept": rng.normal(), "support": 1.5}
    stage = RowStage(
        **(coefficients | numbers),
        partners=partners,
        lift=rng.normal(0, 1, partners.shape),
        prevalence=rng.random(n_labels),
    )
    return as_repair(
        add_stage(draw_maps(rng, kind, "log_odds", scores), stage), label_names
    ), scores
