"""`try_candidates` with its settings as plain keywords."""

from oddslip.calibrators.policy import DeadLabelPolicy
from oddslip.core.passes import run
from oddslip.metrics.at_k import Scoring
from oddslip.selection import trials


def try_candidates(
    source,
    candidates,
    *,
    k,
    metric="map",
    propensities=None,
    dead="prior",
    prior=None,
    weights=None,
    **options,
):
    """Trials of the candidates out of fold."""
    computation = trials.try_candidates(
        source,
        candidates,
        Scoring(k, metric, propensities),
        DeadLabelPolicy(dead, prior=prior, weights=weights),
        **options,
    )
    return run(source, computation)
