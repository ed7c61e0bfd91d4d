"""Ranking metrics at K, within-label AUC, and the row bootstrap.

May import kernels, panels, tallies and sources; knows nothing of shifts or calibrators.
"""

from oddslip.metrics.at_k import (
    average_precision_at_k,
    hit_rate_at_k,
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    psp_at_k,
    recall_at_k,
)
from oddslip.metrics.auc import auc_per_label, mean_auc
from oddslip.metrics.evaluation import Comparison, Estimate, Evaluation, evaluate
from oddslip.metrics.ranking import rank
from oddslip.metrics.reliability import Reliability, reliability_at_k

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "Reliability",
    "auc_per_label",
    "average_precision_at_k",
    "evaluate",
    "hit_rate_at_k",
    "label_propensities",
    "mean_auc",
    "ndcg_at_k",
    "precision_at_k",
    "psp_at_k",
    "rank",
    "recall_at_k",
    "reliability_at_k",
]
