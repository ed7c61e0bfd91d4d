"""Rules: who is taken, given what the candidates reached."""

import numpy as np
import pytest

from oddslip.errors import InvalidInput
from oddslip.selection.candidates import PAPER, RAW, Candidate
from oddslip.selection.rules import RULES, Rule, read_rule
from oddslip.selection.trials import Trials, TrialSums

OFFSET, POOLED = Candidate("offset"), Candidate("pooled")


def trials_with(values, candidates):
    values = np.array(values, float)
    raw = list(candidates).index(RAW)
    others = np.arange(len(candidates)) != raw
    values[:, others] -= values[:, [raw]]
    parts = [values[np.arange(len(values)) % 5 == fold] for fold in range(5)]
    n = np.array([[len(part) for part in parts]])
    first = np.stack([part.sum(axis=0) for part in parts])[None]
    second = np.stack([part.T @ part for part in parts])[None]
    total = TrialSums(*(each[0].sum(axis=0) for each in (n, first, second)))
    return Trials(
        candidates=tuple(candidates),
        metric="map",
        k=7,
        n_folds=5,
        n_repeats=1,
        seed=42,
        total=total,
        by_fold=TrialSums(n, first, second),
        fits=None,
        fitted=[],
        n_fits={},
    )


def choose(rule, values, candidates):
    choice = rule.choose(trials_with(values, candidates))
    return candidates[choice.place].name, choice.why


def rows_gaining(mean, error, n=400, seed=0):
    """Paired differences with exactly this mean and this standard error of it."""
    drawn = np.random.default_rng(seed).standard_normal(n)
    drawn = (drawn - drawn.mean()) / drawn.std(ddof=1)
    return mean + drawn * error * np.sqrt(n)


def test_the_papers_rule_takes_the_best_mean_however_small_the_gain():
    values = np.full((4, 7), 0.5)
    values[0, 3] += 1e-9
    assert choose(RULES["paper"], values, PAPER)[0] == PAPER[3].name


TIES = {
    "paper": [*(f"isotonic-{tau}" for tau in (0, 1, 2, 5, 10)), "pooled", "raw"],
    "mine": ["raw", "pooled", *(f"isotonic-{tau}" for tau in (10, 5, 2, 1, 0))],
}


@pytest.mark.parametrize("start", range(7))
@pytest.mark.parametrize("rule", TIES)
def test_equal_means_go_to_the_simpler_but_to_the_smaller_tau_in_the_papers_rule(rule, start):
    order = TIES[rule]
    best = set(order[start:])
    values = [[0.5 if candidate.name in best else 0.4 for candidate in PAPER]]
    taken = RULES.get(rule, Rule("mine", PAPER))
    assert choose(taken, values * 3, PAPER)[0] == order[start]


@pytest.mark.parametrize(("errors", "taken"), [(0.9, "raw"), (1.1, "offset")])
def test_the_guard_keeps_raw_unless_it_is_beaten_by_enough_standard_errors(errors, taken):
    raw = np.random.default_rng(1).random(400)
    values = np.column_stack([raw, raw + rows_gaining(0.01 * errors, 0.01)])
    name, why = choose(Rule("mine", (RAW, OFFSET), guard=1.0), values, (RAW, OFFSET))
    assert name == taken
    assert f"{errors:.1f} standard errors; 1 standard error is required" in why


def test_an_unsure_winner_makes_way_for_a_sure_one():
    candidates = (RAW, OFFSET, POOLED)
    values = np.column_stack(
        [np.zeros(400), rows_gaining(0.02, 0.005), rows_gaining(0.03, 0.03, seed=1)]
    )
    assert choose(Rule("mine", candidates, guard=2.0), values, candidates)[0] == "offset"
    assert choose(Rule("mine", candidates), values, candidates)[0] == "pooled"


def test_of_two_sure_ones_the_better_mean_is_taken():
    candidates = (RAW, OFFSET, POOLED)
    values = np.column_stack(
        [np.zeros(400), rows_gaining(0.04, 0.01), rows_gaining(0.03, 0.001, seed=1)]
    )
    assert choose(Rule("mine", candidates, guard=2.0), values, candidates)[0] == "offset"


def test_candidates_that_all_lose_leave_raw():
    values = np.column_stack([np.full(9, 0.5), np.full(9, 0.4)])
    name, why = choose(Rule("mine", (RAW, OFFSET), guard=2.0), values, (RAW, OFFSET))
    assert (name, why) == ("raw", "raw is kept: no candidate beats its out-of-fold MAP@7.")


def test_one_row_is_never_sure():
    rule = Rule("mine", (RAW, OFFSET), guard=2.0)
    assert choose(rule, [[0.0, 1.0]], (RAW, OFFSET))[0] == "raw"


def test_a_candidate_asked_for_by_name_is_taken_even_if_it_loses():
    rule = read_rule("isotonic-5")
    name, why = choose(rule, [[0.5, 0.1], [0.5, 0.2]], rule.candidates)
    assert (name, why) == ("isotonic-5", "isotonic-5 was asked for by name.")


def test_folds_of_many_rows_are_drawn_once():
    assert RULES["auto"].repeats_for(100) == 3
    assert RULES["auto"].repeats_for(1_000_000) == 1
    assert RULES["paper"].repeats_for(100) == 1


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"candidates": (OFFSET,)}, "must hold raw"),
        ({"candidates": (RAW, RAW)}, "each candidate once"),
        ({"candidates": (RAW,), "fixed": OFFSET}, "must hold the fixed one, 'offset'"),
        ({"candidates": (RAW,), "guard": -1.0}, "guard must be at least 0"),
        ({"candidates": (RAW,), "guard": float("nan")}, "guard must be at least 0"),
        ({"candidates": (RAW,), "leaning": (OFFSET,)}, "must hold what is leaned to, 'offset'"),
        ({"candidates": (RAW,), "n_repeats": 0}, "n_repeats must be at least 1"),
    ],
)
def test_a_rule_that_does_not_add_up_is_refused(options, line):
    with pytest.raises(InvalidInput, match=line):
        Rule("mine", **options)


def test_a_rule_must_be_a_name_or_a_rule():
    with pytest.raises(InvalidInput, match="rule must be a name or a Rule"):
        read_rule(3)


HALF, BEST = Candidate("halfway"), Candidate("hierarchical")
AUTO = RULES["auto"]


@pytest.mark.parametrize("seed", range(30))
def test_auto_takes_only_a_sure_gain_or_what_is_sure_not_to_lose(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    raw = rng.random(n)
    noise = rng.normal(rng.normal(0, 0.05), 0.3, (n, len(AUTO.candidates)))
    noise[:, AUTO.candidates.index(RAW)] = 0
    trials = trials_with(raw[:, None] + noise, AUTO.candidates)
    taken = AUTO.choose(trials).place
    if AUTO.candidates[taken] != RAW:
        differences = noise[:, taken]
        gain, error = differences.mean(), differences.std(ddof=1) / np.sqrt(n)
        low = gain - AUTO.guard_of(AUTO.candidates[taken]) * error
        named = AUTO.candidates[taken] == BEST
        assert low > 0 or (named and gain > 0 and low > -min(0.01, 0.02 * raw.mean()))


@pytest.mark.parametrize(
    ("candidate", "errors", "taken"),
    [
        (HALF, 2.1, "halfway"),
        (HALF, 1.9, "raw"),
        (BEST, 2.1, "hierarchical"),
        (BEST, 1.9, "raw"),
        (OFFSET, 3.1, "offset"),
        (OFFSET, 2.9, "raw"),
    ],
)
def test_the_best_of_many_must_be_surer_than_what_was_named_before(candidate, errors, taken):
    values = np.column_stack([np.zeros(400), rows_gaining(0.01 * errors, 0.01)])
    name, why = choose(AUTO, values, (RAW, candidate))
    assert name == taken
    assert f"{errors:.1f} standard errors" in why


@pytest.mark.parametrize(
    ("level", "gain", "error", "taken"),
    [
        (0.5, 0.002, 0.0059, "hierarchical"),  # two errors reach down to -0.0098
        (0.5, 0.002, 0.0061, "raw"),  # -0.0102
        (0.5, -0.0001, 0.0001, "raw"),  # harmless, but no better
        (0.1, 0.002, 0.0019, "hierarchical"),  # of a low metric 2% may be lost
        (0.1, 0.002, 0.0021, "raw"),
    ],
)
def test_where_nothing_is_sure_a_better_mean_that_can_not_harm_is_taken(level, gain, error, taken):
    values = np.column_stack([np.full(400, level), level + rows_gaining(gain, error)])
    name, why = choose(AUTO, values, (RAW, BEST))
    assert name == taken
    assert ("no sure gain" in why) == (taken != "raw")
    if taken != "raw":
        assert f"by 2 standard errors no loss of {min(0.01, 0.02 * level):.4f}" in why


@pytest.mark.parametrize("other", [OFFSET, HALF])
def test_only_hierarchical_is_leaned_to(other):
    values = np.column_stack([np.full(400, 0.5), 0.5 + rows_gaining(0.001, 0.002)])
    assert choose(AUTO, values, (RAW, other))[0] == "raw"


@pytest.mark.parametrize(("lead", "taken"), [(1.5, "hierarchical"), (2.5, "offset")])
def test_hierarchical_stands_in_for_what_does_not_surely_beat_it(lead, taken):
    favoured = rows_gaining(0.05, 0.005)
    ahead = favoured + rows_gaining(0.001 * lead, 0.001, seed=3)
    values = np.column_stack([np.zeros(400), favoured, ahead])
    name, why = choose(AUTO, values, (RAW, BEST, OFFSET))
    assert name == taken
    assert ("offset does not surely beat it" in why) == (taken == "hierarchical")


def test_an_unsure_favourite_does_not_stand_in():
    values = np.column_stack([np.zeros(400), rows_gaining(0.02, 0.02), rows_gaining(0.03, 0.004)])
    assert choose(AUTO, values, (RAW, BEST, OFFSET))[0] == "offset"


def test_auto_has_no_shared_map():
    """It would rank as raw does, save where it ties what raw tells apart."""
    assert POOLED not in AUTO.candidates
    assert POOLED in RULES["paper"].candidates


def test_a_favourite_must_be_a_candidate():
    with pytest.raises(InvalidInput, match="must hold the favourite, 'hierarchical'"):
        Rule("mine", (RAW, OFFSET), guard=1.0, favourite=BEST)


@pytest.mark.parametrize("guard", [-1.0, float("inf")])
def test_a_guard_of_ones_own_must_be_a_guard(guard):
    with pytest.raises(InvalidInput, match="guard must be at least 0 and finite"):
        Rule("mine", (RAW, OFFSET), guard=1.0, guards=((OFFSET, guard),))
