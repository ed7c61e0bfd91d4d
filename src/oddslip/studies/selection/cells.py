"""One cell of the selection study: every candidate out of fold and on test rows, every rule.

All rules choose from one set of trials: a rule with fewer candidates, or fewer draws of the folds,
sees what `oddslip.Repair` would show it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.metrics.bootstrap import bootstrap_sums, percentile_interval
from oddslip.selection.candidates import PAPER_TAUS, RAW, WIDE, Candidate, read_candidate
from oddslip.selection.rules import GUARD, REPEATS, RULES, Rule, gains_over_raw
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import Source
from oddslip.studies.store import row_precisions

SEED = 42
N_SEEDS = 20  # of the folds, where the stability of a choice is asked for
WIDE_TAUS = (20, 50, 100)
N_REPLICATES = 2000
LEVEL = 0.95

# The default of version 0.2.
OLD = Rule(
    "auto-0.2",
    (
        RAW,
        Candidate("pooled"),
        Candidate("offset"),
        *(Candidate("shrunk", strength=strength) for strength in (5, 20)),
        *(Candidate("isotonic", tau=tau) for tau in PAPER_TAUS),
    ),
    guard=GUARD,
    n_repeats=REPEATS,
)
# The default with the larger taus besides.
TAUS = Rule(
    "auto, taus to 100",
    (*WIDE, *(Candidate("isotonic", tau=tau) for tau in WIDE_TAUS)),
    guard=GUARD,
    n_repeats=REPEATS,
    near=RULES["auto"].near,
)
CHOOSING = {rule.name: rule for rule in (RULES["paper"], OLD, RULES["auto"], TAUS)}
# What pages tell beside one another: candidates taken whatever the rows say, and rules.
FIXED = {"isotonic": "isotonic-0", "Platt": "platt", "hierarchical": "hierarchical"}
CONTENDERS = (*FIXED, *CHOOSING)


def all_candidates(weighted: bool) -> tuple[Candidate, ...]:
    """Every candidate that any rule tries, once, the fixed ones too."""
    listed = [each for rule in CHOOSING.values() for each in rule.candidates]
    listed += [read_candidate(name) for name in FIXED.values()]
    listed += [Candidate(form) for form in ("platt", "beta", "temperature")]
    return tuple(each for each in dict.fromkeys(listed) if weighted or not each.needs_weights)


def measure_cell(
    calibration: Source,
    test: Source,
    *,
    k: int,
    prior: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    n_seeds: int = 1,
) -> dict[str, Any]:
    """Out-of-fold and test values of every candidate; choice and test value of every rule.

    With several seeds, also what each rule chooses with other folds, and what it costs.
    """
    trials = try_again(calibration, k=k, prior=prior, weights=weights, seed=SEED)
    tested = test_candidates(trials, test)
    raw = tested["raw"]
    means = trials.values.mean(axis=0)
    gains, errors = gains_over_raw(trials)
    chosen = {name: choose(rule, trials) for name, rule in CHOOSING.items()}
    taken = FIXED | {name: choice[0] for name, choice in chosen.items()}
    deployed = tested[taken["auto"]]
    cell: dict[str, Any] = {
        "k": k,
        "n_rows": calibration.n_rows,
        "n_labels": calibration.n_labels,
        "n_evaluated": int(trials.rows.size),
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
            for name, candidate in taken.items()
        },
        "why": {name: why for name, (_, why) in chosen.items()},
    }
    if n_seeds > 1:
        options = {"k": k, "prior": prior, "weights": weights}
        cell["seeds"] = _sweep_seeds(calibration, tested, n_seeds, **options)
    return cell


def try_again(
    calibration: Source, *, k: int, prior: Any, weights: Any, seed: int, repeats: int | None = None
) -> Trials:
    """Trials of every candidate, with as many draws of the folds as the default has."""
    drawn = RULES["auto"].repeats_for(calibration.n_rows) if repeats is None else repeats
    return try_candidates(
        calibration, all_candidates(weights is not None), k=k, n_repeats=drawn, seed=seed,
        prior=prior, weights=weights,
    )  # fmt: skip


def choose(rule: Rule, trials: Trials) -> tuple[str, str]:
    """What a rule takes, and why, from trials of more candidates than it knows."""
    candidates = [each for each in rule.candidates if each in trials.candidates]
    seen = trials.of(candidates, n_repeats=min(rule.n_repeats, trials.n_repeats))
    choice = rule.choose(seen)
    return candidates[choice.place].name, choice.why


def test_candidates(trials: Trials, test: Source) -> dict[str, NDArray[np.float64]]:
    """MAP@K of every test row with a true label, by candidate, fitted on all calibration rows."""
    truth = test.positives()
    tested = {}
    for candidate in trials.candidates:
        maps, _ = trials.fits.fit(candidate, None)
        ranked = [
            block for _, block in test.map(lambda panel, m=maps: m.rank_panel(panel, trials.k))
        ]
        tested[candidate.name] = row_precisions(np.concatenate(ranked), truth, test.n_labels)
    return tested


def _describe(differences: NDArray[np.float64]) -> dict[str, float]:
    """Mean of paired differences over rows, its standard error and its bootstrap interval."""
    n = differences.size
    sums = bootstrap_sums(differences[:, None], n_replicates=N_REPLICATES, seed=SEED)[:, 0]
    low, high = percentile_interval(sums / n, LEVEL)
    error = float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return {
        "difference": float(differences.mean()),
        "low": float(low),
        "high": float(high),
        "standard_error": error,
    }


def _sweep_seeds(
    calibration: Source, tested: dict[str, NDArray[np.float64]], n_seeds: int, **options: Any
) -> dict[str, Any]:
    """Choices of every rule with other folds, and of the default with folds drawn once."""
    sweeps: dict[str, list[str]] = {name: [] for name in (*CHOOSING, "auto, folds drawn once")}
    for seed in range(n_seeds):
        trials = try_again(calibration, seed=seed, **options)
        for name, rule in CHOOSING.items():
            sweeps[name].append(choose(rule, trials)[0])
        once = trials.of(trials.candidates, n_repeats=1)
        sweeps["auto, folds drawn once"].append(choose(RULES["auto"], once)[0])
    raw = tested["raw"].mean()
    return {
        name: {
            "chosen": {each: choices.count(each) for each in sorted(set(choices))},
            "test": [float(tested[each].mean() - raw) for each in choices],
        }
        for name, choices in sweeps.items()
    }
