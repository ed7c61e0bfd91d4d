"""Which arms a study has, in which order, and what names them."""

import shlex

import pytest

from experiments.pairs.arms import ON_SCORES, PARTS, Arm, distinct_arms, plan_arms
from oddslip.errors import InvalidInput


def test_a_twin_is_planned_before_its_weighted_arm():
    planned = [arm for _, arm in plan_arms()]
    for place, arm in enumerate(planned):
        assert arm.twin in planned[: place + 1]


def test_pairs_and_caps_come_first():
    parts = [part for part, _ in plan_arms()]
    assert list(dict.fromkeys(parts)) == list(PARTS)
    assert PARTS[:2] == ("ladder", "caps")


def test_the_paper_has_these_arms():
    keys = {arm.key for part, arm in plan_arms() if part not in ON_SCORES}
    assert len(keys) == 4 + 2 * 5 + 2 * 2 + 2 * 3 + 1 + 2
    assert {
        "lightgbm-r",
        "lightgbm-1-cap-0.3",
        "mlp-10r",
        "lightgbm-r-draw-3",
        "lightgbm-1-earlier",
    } <= keys


def test_every_arm_stands_once_among_the_distinct_ones():
    assert len(set(distinct_arms())) == len(distinct_arms())
    assert set(distinct_arms()) == {arm for _, arm in plan_arms()}


def test_no_two_arms_share_a_key():
    arms = {arm for _, arm in plan_arms()}
    assert len({arm.key for arm in arms}) == len(arms)
    assert len(
        {str(sorted(arm.configuration().items())) for arm in arms if not arm.all_products}
    ) == (len({arm for arm in arms if not arm.all_products}))


@pytest.mark.parametrize(
    "arm", sorted({a for _, a in plan_arms()}, key=lambda a: a.key), ids=lambda a: a.key
)
def test_the_command_kept_in_a_cell_asks_for_just_that_arm(arm):
    words = shlex.split(arm.options)
    options = dict(zip(words[::2], words[1::2], strict=True))
    arguments = {"learners": [options["--learner"]], "weights": [options["--weight"]]}
    if "--cap" in options:
        arguments["caps"] = [None if options["--cap"] == "none" else float(options["--cap"])]
        arguments["draws"] = [int(options["--draw"])]
    parts = (
        [options["--part"]] if "--part" in options else [p for p in PARTS if p != "all-products"]
    )
    assert {planned for _, planned in plan_arms(parts, **arguments)} == {arm}


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("parts", ["ladders"]),
        ("learners", ["forest"]),
        ("weights", ["2r"]),
        ("caps", [3.0]),
        ("draws", [9]),
    ],
)
def test_unknown_names_are_refused(what, names):
    arguments = {} if what == "parts" else {what: names}
    with pytest.raises(InvalidInput, match=f"{what} must be among"):
        plan_arms(names if what == "parts" else PARTS, **arguments)


def test_only_a_booster_has_a_step_budget():
    assert Arm("mlp", "r").budget() == {}
    assert Arm("lightgbm", "r", cap=0.3).budget() == {
        "rounds": 60,
        "learning_rate": 0.05,
        "max_delta_step": 0.3,
    }
