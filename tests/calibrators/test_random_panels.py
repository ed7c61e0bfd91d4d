"""No panel that is valid makes a calibrator fail, leave a gap, or turn the order of a label.

``ODDSLIP_PANELS=10000 pytest tests/calibrators/test_random_panels.py`` tries as many as that.
"""

import os
import warnings

import numpy as np
import pytest

from oddslip import Panel
from oddslip.calibrators import build_calibrator
from oddslip.calibrators.catalogue import CATALOGUE
from oddslip.selection import Repair

N_PANELS = int(os.environ.get("ODDSLIP_PANELS", "60"))
AT_ONCE = 20
FITTED = [name for name, entry in CATALOGUE.items() if entry.fitted and entry.maker]


def draw_scores(rng, shape, kind):
    """Smooth, coarse, constant, extreme, or a mixture of these from label to label."""
    margins = rng.normal(rng.normal(-2, 3, shape[1]), rng.choice([0.1, 1, 6]), shape)
    for label in range(shape[1]):
        match rng.integers(6):
            case 0:
                margins[:, label] = margins[0, label]
            case 1:
                margins[:, label] = np.round(margins[:, label])
            case 2:
                margins[:, label] = rng.choice([-700.0, 0.0, 700.0], shape[0])
    scores = margins if kind == "margin" else 1 / (1 + np.exp(-np.clip(margins, -800, 700)))
    return scores.astype(rng.choice([np.float32, np.float64]))


def draw_panel(seed):
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["probability", "margin"]))
    shape = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    scores = draw_scores(rng, shape, kind)
    labels = rng.random(shape) < rng.choice([0.0, 0.02, 0.3, 1.0], shape[1])
    labels[rng.integers(shape[0]), rng.integers(shape[1])] = True
    options = {"kind": kind}
    if rng.random() < 0.5:
        options["prior"] = rng.choice([0.0, 1e-6, 0.1, 0.9, 1.0], shape[1])
    if rng.random() < 0.3:
        options["weights"] = np.exp(rng.normal(0, 3, shape[1]))
    weight = rng.choice([0.1, 1.0, 1e4], shape[0]) if rng.random() < 0.3 else None
    return rng, scores, labels, options, weight


def check(seed):
    rng, scores, labels, options, weight = draw_panel(seed)
    # Each panel tries one of all calibrators, and the two that are made of all labels.
    names = {str(rng.choice(FITTED)), "hierarchical", "hierarchical_isotonic"}
    fits = {name: build_calibrator(name, **options) for name in names}
    if seed % 10 == 0 and len(scores) >= 5:
        fits["auto"] = Repair(k=1 + seed % labels.shape[1], **options)
    for name, calibrator in fits.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            fitted = calibrator.fit(scores, labels, sample_weight=weight)
            values = fitted.transform(Panel(scores, kind=options["kind"]))
        message = f"seed {seed}, {name}"
        assert np.isfinite(values).all(), message
        assert ((values >= 0) & (values <= 1)).all(), message
        for label in range(labels.shape[1]):
            order = np.argsort(scores[:, label], kind="stable")
            assert (np.diff(values[order, label]) >= 0).all(), f"{message}, label {label}"


@pytest.mark.parametrize("first", range(0, N_PANELS, AT_ONCE))
def test_every_valid_panel_can_be_fitted_without_a_gap_and_in_order(first):
    for seed in range(first, min(first + AT_ONCE, N_PANELS)):
        check(seed)


def test_a_slope_that_falls_by_next_to_nothing_divides_nothing():
    check(6854)
