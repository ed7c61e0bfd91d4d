"""`Repair`: the calibrator that chooses its calibrator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators.base import Calibrator
from oddslip.calibrators.dead_labels import DeadPolicy, LabelRecord, check_policy
from oddslip.calibrators.maps import LabelMaps
from oddslip.panels import Kind
from oddslip.selection.rules import Rule, read_rule
from oddslip.selection.tables import make_table
from oddslip.selection.trials import try_candidates
from oddslip.sources import Source


class Repair(Calibrator):
    """Choose a calibrator by the metric that is deployed, on the calibration rows, and fit it.

    Every candidate is fitted on all folds but one and ranks that one; the metric at K of the rows
    so ranked decides. What was chosen is then fitted on all rows.

    Parameters
    ----------
    k : int
        Slots per row.
    rule : str or Rule
        "paper": the best out-of-fold mean of isotonic with tau 0, 1, 2, 5, 10, pooled and raw.
        "auto": a wider choice and more folds, but raw is kept unless a candidate beats it by one
        standard error of the paired difference over rows. Or the name of a candidate to take in
        any case: "raw", "pooled", "offset", "isotonic", "isotonic-5", "shrunk-20", ...
    metric : {"map", "precision", "recall", "ndcg", "psp", "hit_rate"}
        What candidates are compared by.
    prior : array-like, optional
        Training prevalence of each label, for dead labels; else the smoothed prevalence of the
        rows fitted on.
    dead : {"prior", "identity", "exclude"}
        What a dead label gets.
    kind : {"probability", "margin"}
        What the scores are.
    n_folds : int
        Folds are cut from a ``numpy.random.default_rng(seed)`` permutation of the rows.
    seed : int
        Same seed, same folds and intervals.

    Attributes
    ----------
    chosen_ : str
        Name of the chosen candidate.
    why_ : str
        Why, in one sentence.
    table_ : SelectionTable
        Out-of-fold means of all candidates and their differences to raw, with intervals.
    fitted_ : FittedRepair
        What is applied and saved.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((400, 3)) < [0.5, 0.1, 0.02]
    >>> scores = np.where(truth, 0.6, 0.4) + 0.3 * rng.random((400, 3)) + [-0.3, 0.0, 0.1]
    >>> repair = Repair(k=1, rule="paper").fit(scores.clip(0, 1), truth)
    >>> repair.chosen_
    'isotonic-5'
    >>> repair.rank([[0.6, 0.8, 0.9]])
    array([[0]], dtype=int32)
    """

    def __init__(
        self,
        *,
        k: int,
        rule: str | Rule = "auto",
        metric: str = "map",
        prior: Any = None,
        dead: DeadPolicy = "prior",
        kind: Kind = "probability",
        n_folds: int = 5,
        seed: int = DEFAULT_SEED,
    ) -> None:
        self.k = k
        self.rule = rule
        self.metric = metric
        self.prior = prior
        self.dead = dead
        self.kind = kind
        self.n_folds = n_folds
        self.seed = seed

    def fit(
        self,
        scores: Any,
        labels: Any = None,
        *,
        label_names: Sequence[str] | None = None,
        threads: int | None = None,
    ) -> Self:
        """Choose and fit on calibration rows.

        Parameters
        ----------
        scores, labels
            In any form `oddslip.evaluate` takes.
        label_names : sequence of str, optional
            Names of the labels; a frame or a file brings its own.
        threads : int, optional
            Threads to use; all cores available unless told.
        """
        super().fit(scores, labels, label_names=label_names, threads=threads)
        parameters = {**self.fitted_.parameters, "chosen": self.chosen_, "why": self.why_}
        self.fitted_ = replace(self.fitted_, parameters=parameters)
        return self

    def rank(
        self, scores: Any, *, k: int | None = None, threads: int | None = None
    ) -> NDArray[np.int32]:
        """Top K after the repair.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        k : int, optional
            Slots per row; as many as the choice was made for unless told.
        threads : int, optional
            Threads to use; all cores available unless told.
        """
        return super().rank(scores, k=self.k if k is None else k, threads=threads)

    def _map_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        check_policy(self.dead, 0)
        rule = read_rule(self.rule)
        trials = try_candidates(
            source,
            rule.candidates,
            k=self.k,
            metric=self.metric,
            n_folds=self.n_folds,
            n_repeats=rule.repeats_for(source.n_rows),
            seed=self.seed,
            dead=self.dead,
            prior=self.prior,
            threads=threads,
        )
        choice = rule.choose(trials)
        chosen = trials.candidates[choice.place]
        self.chosen_, self.why_ = chosen.name, choice.why
        self.table_ = make_table(rule, trials, choice)
        return trials.fits.fit(chosen, None)

    def _repr_html_(self) -> str:
        """The table of the choice, once fitted."""
        if hasattr(self, "table_"):
            return self.table_._repr_html_()
        return str(super()._repr_html_())
