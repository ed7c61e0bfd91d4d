"""One cell of the selection study: every candidate out of fold and on test rows, every rule.

All rules choose from one set of trials: a rule with fewer candidates, or fewer draws of the folds,
sees what `oddslip.Repair` would show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import mean_with_interval
from experiments.folds import numbered_folds
from experiments.store import row_precisions
from oddslip.calibrators.policy import DeadLabelPolicy
from oddslip.core.panel import Panel
from oddslip.core.passes import run
from oddslip.metrics.at_k import Scoring
from oddslip.repairs.maps import LabelMaps
from oddslip.selection.candidates import PAPER_TAUS, RAW, WIDE, Candidate, read_candidate
from oddslip.selection.rules import RULES, Rule
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import Source

SEED = 42
N_SEEDS = 20  # of the folds, where the stability of a choice is asked for
WIDE_TAUS = (20, 50, 100)
N_REPLICATES = 2000
LEVEL = 0.95

# The paper's rule as these cells were measured: equal means go to the simpler candidate.
PAPER_RULE = Rule(
    "paper",
    (RAW, Candidate("pooled"), *(Candidate("isotonic", tau=tau) for tau in PAPER_TAUS)),
)
# The default as it was before hierarchical fits.
OLD = Rule(
    "auto-0.2",
    (
        RAW,
        Candidate("pooled"),
        Candidate("offset"),
        *(Candidate("shrunk", strength=strength) for strength in (5, 20)),
        *(Candidate("isotonic", tau=tau) for tau in PAPER_TAUS),
    ),
    guard=1.0,
    n_repeats=3,
)
# The default with the larger taus besides.
TAUS = replace(
    RULES["auto"],
    name="auto, taus to 100",
    candidates=(*WIDE, *(Candidate("isotonic", tau=tau) for tau in WIDE_TAUS)),
)
CHOOSING = {rule.name: rule for rule in (PAPER_RULE, OLD, RULES["auto"], TAUS)}
# Compared on the pages: candidates that do not depend on the rows, and rules.
FIXED = {"isotonic": "isotonic-0", "Platt": "platt", "hierarchical": "hierarchical"}
CONTENDERS = (*FIXED, *CHOOSING)


def all_candidates(weighted: bool) -> tuple[Candidate, ...]:
    """Every candidate that any rule tries, once, the fixed ones too."""
    candidates = [each for rule in CHOOSING.values() for each in rule.candidates]
    candidates += [read_candidate(name) for name in FIXED.values()]
    candidates += [Candidate(form) for form in ("platt", "beta", "temperature")]
    return tuple(each for each in dict.fromkeys(candidates) if weighted or not each.needs_weights)


def measure_cell(
    calibration: Source,
    test: Source,
    *,
    k: int,
    prior: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """Out-of-fold and test values of every candidate; choice and test value of every rule."""
    candidates = all_candidates(weights is not None)
    policy = DeadLabelPolicy(prior=prior, weights=weights)
    n_repeats = RULES["auto"].repeats_for(calibration.n_rows)
    trials, once = try_twice(calibration, candidates, n_repeats, SEED, Scoring(k), policy)
    tested = measure_on_test(trials, test)
    raw = tested["raw"]
    means = trials.means
    gains, errors = trials.gains()
    chosen = {
        name: choose(rule, trials if rule.n_repeats > 1 else once)
        for name, rule in CHOOSING.items()
    }
    choices_by_name = FIXED | {name: choice[0] for name, choice in chosen.items()}
    deployed = tested[choices_by_name["auto"]]
    return {
        "k": k,
        "n_rows": calibration.n_rows,
        "n_labels": calibration.n_labels,
        "n_evaluated": trials.n_evaluated,
        "n_test": int(raw.size),
        "n_repeats": trials.n_repeats,
        "raw": {"out_of_fold": float(means[0]), "test": float(raw.mean())},
        "candidates": {
            each.name: {
                "out_of_fold": float(gains[at]),
                "standard_error": float(errors[at]),
                "test": float((tested[each.name] - raw).mean()),
            }
            for at, each in enumerate(trials.candidates)
        },
        "contenders": {
            name: {
                "chosen": candidate,
                **_describe(tested[candidate] - raw),
                "minus_auto": _describe(tested[candidate] - deployed),
            }
            for name, candidate in choices_by_name.items()
        },
        "why": {name: why for name, (_, why) in chosen.items()},
    }


def try_twice(
    calibration: Source,
    candidates: Sequence[Candidate],
    n_repeats: int,
    seed: int,
    *options: Any,
) -> tuple[Trials, Trials]:
    """Trials with all repeats of the folds, and with the first alone.

    ``options`` are the scoring and the policy.
    """
    folds = numbered_folds(calibration.n_rows, seed=seed, n_repeats=n_repeats)
    whole, first = (
        try_candidates(calibration, candidates, *options, folds=some) for some in (folds, folds[:1])
    )
    trials = run(calibration, whole)
    return trials, trials if n_repeats == 1 else run(calibration, first)


def choose(rule: Rule, trials: Trials) -> tuple[str, str]:
    """What a rule takes, and why, from trials of more candidates than it knows."""
    candidates = [each for each in rule.candidates if each in trials.candidates]
    choice = rule.choose(trials.of(candidates))
    return candidates[choice.place].name, choice.why


def measure_on_test(trials: Trials, test: Source) -> dict[str, NDArray[np.float64]]:
    """MAP@K of every test row with a true label, by candidate, fitted on all calibration rows."""
    truth = test.positives()
    tested = {}
    for candidate in trials.candidates:
        maps, _ = trials.fits.fit(candidate, None)
        ranked = [block for _, block in test.map(partial(_rank, maps, trials.k))]
        tested[candidate.name] = row_precisions(np.concatenate(ranked), truth, test.n_labels)
    return tested


def _rank(maps: LabelMaps, k: int, panel: Panel) -> NDArray[np.int32]:
    return maps.rank_panel(panel, k)


def _describe(differences: NDArray[np.float64]) -> dict[str, float]:
    """Mean of paired differences over rows, its standard error and its bootstrap interval."""
    n = differences.size
    gap = mean_with_interval(differences, n_replicates=N_REPLICATES, level=LEVEL, seed=SEED)
    error = float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return {
        "difference": gap.value,
        "low": gap.low,
        "high": gap.high,
        "standard_error": error,
    }


def sweep_seeds(
    calibration: Source,
    test: Source,
    *,
    k: int,
    prior: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """What the default chooses with other folds, drawn three times each, and once."""
    rule = RULES["auto"]
    policy = DeadLabelPolicy(prior=prior, weights=weights)
    chosen: dict[str, list[str]] = {"auto": [], "auto, folds drawn once": []}
    for seed in range(N_SEEDS):
        candidates = rule.candidates_for(weights)
        trials, once = try_twice(calibration, candidates, rule.n_repeats, seed, Scoring(k), policy)
        chosen["auto"].append(choose(rule, trials)[0])
        chosen["auto, folds drawn once"].append(choose(rule, once)[0])
    names = {name for choices in chosen.values() for name in choices} | {"raw"}
    used = [each for each in trials.candidates if each.name in names]
    tested = {
        name: values.mean() for name, values in measure_on_test(trials.of(used), test).items()
    }
    return {
        name: {
            "chosen": {each: choices.count(each) for each in sorted(set(choices))},
            "test": [float(tested[each] - tested["raw"]) for each in choices],
        }
        for name, choices in chosen.items()
    }
