"""Verdicts are right where the truth is known, and no advice contradicts another."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.app import app
from experiments.verdict_simulation import (
    FIRST_SEED,
    SCENES,
    draw_pair,
    tabulate,
    tell_pair,
    try_scenes,
)
from oddslip.diagnosis import diagnose
from oddslip.errors import InvalidInput

SLOW = "healthy, 60,000 rows"  # drawn by `python -m experiments verdict-simulation`
SEEDS = (7, 8)  # below those of the table

# What an advice asks for, by words of its own.
STANCES = {
    "invert": ("subtract ln w",),
    "calibrate": ("calibrate on held-out rows",),
    "keep raw": ("keep the raw scores",),
    "not raw": ("do not deploy these scores",),
    "popularity": ("show the labels by popularity",),
    "repair nothing": ("repair nothing", "nothing to repair"),
    "distrust the weights": ("check the weights",),
    "drop the weights": ("train without weights", "retrain without", "or without weights"),
    "keep the weights": ("keep the weights",),
    "raise the cap": ("raise the cap",),
    "set a cap": ("with a cap",),
}
CLASHES = [
    {"invert", "keep raw"},
    {"invert", "calibrate"},
    {"invert", "popularity"},
    {"invert", "distrust the weights"},
    {"invert", "repair nothing"},
    {"calibrate", "keep raw"},
    {"calibrate", "popularity"},
    {"calibrate", "repair nothing"},
    {"keep raw", "not raw"},
    {"keep raw", "popularity"},
    {"keep raw", "repair nothing"},
    {"popularity", "repair nothing"},
    {"drop the weights", "keep the weights"},
    {"drop the weights", "repair nothing"},
    {"drop the weights", "distrust the weights"},
    {"raise the cap", "set a cap"},
    {"raise the cap", "drop the weights"},
]


@cache
def drawn(name, seed):
    return diagnose(**SCENES[name].draw(seed), n_replicates=200)


@pytest.mark.parametrize("name", [name for name in SCENES if name != SLOW])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_verdict_is_right_where_the_truth_is_known(name, seed):
    found = drawn(name, seed)
    assert SCENES[name].is_right(found), found.verdict.sentence


def test_the_scenes_of_the_table_are_not_those_that_thresholds_were_set_on():
    assert max(SEEDS) < FIRST_SEED


def stances(advice):
    lowered = advice.lower()
    return {name for name, words in STANCES.items() if any(word in lowered for word in words)}


def clashes_in(found):
    taken = set().union(*(stances(finding.advice) for finding in found.findings))
    return [pair for pair in map(set, combinations(sorted(taken), 2)) if pair in CLASHES]


@pytest.mark.parametrize("name", [name for name in SCENES if name != SLOW])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_advice_contradicts_another_where_the_truth_is_known(name, seed):
    assert clashes_in(drawn(name, seed)) == []


def test_no_advice_contradicts_another_in_any_other_scene(scene, scenes):
    for name in scenes:
        assert clashes_in(scene(name)) == [], name


def test_contradictions_would_be_seen(scene):
    from dataclasses import replace

    found = scene("realized")
    loud = replace(found.findings[0], advice="Keep the raw scores. Raise the cap.")
    assert len(clashes_in(replace(found, findings=(*found.findings, loud)))) == 2


@pytest.mark.parametrize("name", ["inverse weights", "permuted weights", "stale weights"])
def test_weights_that_do_not_fit_are_not_blamed(name):
    found = drawn(name, SEEDS[0])
    assert "by the weights" not in found.verdict.sentence
    assert "label-specific weights" not in found.verdict.sentence
    assert found.finding("OS101") is None
    assert found.finding("OS301") is None
    fits = {"inverse weights": "reversed", "permuted weights": "unrelated"}
    assert found.finding("OS103").evidence["fit"] == fits.get(name, "no trace")


def test_weights_that_fit_are_not_doubted(scene, scenes):
    for name in scenes:
        assert scene(name).finding("OS103") is None, name


def worse_twin(seed=7):
    """A weighted model that is better than its unweighted twin, which is full of noise."""
    told = tell_pair(draw_pair(seed, realized=0.7))
    rng = np.random.default_rng(seed)
    odds = told["unweighted"] / (1 - told["unweighted"])
    odds = odds * np.exp(2.0 * rng.normal(size=odds.shape))
    return told | {"unweighted": (odds / (1 + odds)).astype(np.float32), "k": 7}


def test_weights_that_gained_against_the_twin_are_neither_blamed_nor_advised_against():
    found = diagnose(**worse_twin(), n_replicates=200)
    assert found.ladder.gain("unweighted").high < 0
    assert "Hurt" not in found.verdict.sentence
    assert "better than the unweighted twin" in found.verdict.sentence.lower()
    advice = " ".join(finding.advice for finding in found.findings)
    assert "without weights" not in advice
    assert "without label-specific weights" not in advice
    assert "Keep the weights" in advice
    assert clashes_in(found) == []


def test_where_no_repair_is_above_popularity_the_verdict_says_so():
    pair = draw_pair(9, signal=0.1)  # a trace of signal, under a full shift
    found = diagnose(pair.weighted, pair.labels, weights=pair.weights, k=7, n_replicates=200)
    assert found.signal.standing == "there"
    assert any(found.ladder.gain(name).low > 0 for name in ("inversion", "platt", "offset"))
    assert found.ladder.gain("popularity").low > 0
    assert found.verdict.code == "below_popularity"
    assert "repairable" not in found.verdict.sentence
    assert "Show the labels by popularity" in found.finding("OS201").advice
    assert clashes_in(found) == []


def test_the_table_has_a_line_for_each_scene():
    lines = list(tabulate(try_scenes(("random",), n_draws=1, first_seed=3, n_replicates=0)))
    assert len(lines) == 3
    assert lines[2].startswith("| random | scores are noise | 1 of 1 | no_signal 1 |")


def test_the_command_writes_the_page_and_names_its_seeds(tmp_path):
    words = ["verdict-simulation", "--scene", "random", "--draws", "1", "--first-seed", "3"]
    ran = CliRunner().invoke(app, [*words, "--page", str(tmp_path / "page.md")])
    assert ran.exit_code == 0
    page = (tmp_path / "page.md").read_text()
    assert "seeds 3 to 3" in page
    assert "| random | scores are noise | 1 of 1 |" in page


def test_an_unknown_scene_is_refused_with_the_names_there_are():
    with pytest.raises(InvalidInput, match="scene must be one of no weights"):
        list(try_scenes(("none",)))
