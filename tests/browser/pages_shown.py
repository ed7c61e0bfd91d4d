"""Diagnoses whose pages the browser tests and the screenshots open."""

import numpy as np

from oddslip import diagnose
from oddslip.datasets import synthetic_pair

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\u202egnp.exe\u2066 right to left",
    "quote \" and ' and `",
    "two\nlines\tand a tab",
    '=HYPERLINK("http://127.0.0.1/","x")',
    "{{ 7 * 7 }} {% raw %}",
    "long " + "name" * 200,
    "]]><!-- &amp; \u2028",
)


def pretty_diagnosis(n_rows=20_000, n_replicates=2000):
    """A realistic panel: most shifts fell short, cells saturated, some labels are dead."""
    rng = np.random.default_rng(3)
    slipped = rng.random(400) < 0.8
    realized = np.where(slipped, rng.uniform(0.15, 0.75, 400), rng.uniform(0.97, 1.0, 400))
    pair = synthetic_pair(
        n_rows,
        400,
        prevalence=(0.0005, 0.15),
        signal=1.0,
        realized=realized,
        noise=0.5,
        saturate=0.004,
        n_dead=9,
        seed=7,
    )
    held_out = pair.calibration
    return diagnose(
        pair.weighted[~held_out],
        pair.labels[~held_out],
        k=7,
        weights=pair.weights,
        unweighted=pair.unweighted[~held_out],
        calibration=(pair.weighted[held_out], pair.labels[held_out]),
        prior=pair.prior,
        rounds=60,
        learning_rate=0.05,
        max_delta_step=2.0,
        n_replicates=n_replicates,
        label_names=pair.label_names,
    )


def wide_diagnosis(n_labels=4000):
    """Many labels over few rows; the first ones have hostile names."""
    pair = synthetic_pair(400, n_labels, prevalence=(0.002, 0.2), n_dead=50, saturate=0.02, seed=3)
    names = HOSTILE + pair.label_names[len(HOSTILE) :]
    return diagnose(
        pair.weighted,
        pair.labels,
        k=7,
        weights=pair.weights,
        unweighted=pair.unweighted,
        n_replicates=20,
        label_names=names,
    )


def bare_diagnosis():
    """Scores and labels, nothing else."""
    pair = synthetic_pair(600, 12, seed=5)
    return diagnose(pair.weighted, pair.labels, k=3, n_replicates=0)
