"""The inversion is judged by what the ladder measured; the paper's association only explains."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from oddslip.core.results import html_text
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.diagnosis.checks.weights import check_inversion
from oddslip.diagnosis.comparison import (
    chosen_repair,
    fitted_repair,
    name_repair,
    standing_of,
    try_inversion,
)
from oddslip.diagnosis.ladder import Ladder, Rung
from oddslip.diagnosis.rungs import Chosen
from oddslip.diagnosis.summary import summarize
from oddslip.diagnosis.thresholds import conditions_hold
from oddslip.diagnosis.verdict import judge
from oddslip.metrics.evaluation import Estimate
from oddslip.reports.html.page import render_page
from oddslip.reports.text import show_diagnosis

# Scene: whether the paper's conditions hold, and the finding that the measured ladder asks for.
INVERSIONS = {
    "realized": (True, "OS303"),
    "capped": (False, "OS305"),  # what Repair chooses is the higher
    "capped, few to calibrate": (False, "OS303"),  # surely the best
    "short, with dead labels": (False, "OS303"),
    "drift": (False, "OS303"),
    "uneven": (True, "OS304"),
    "starved": (True, "OS304"),
    "dead labels": (True, "OS304"),
    "uneven and short": (False, "OS304"),
    "saturated": (False, "OS304"),
    "scarce": (False, "OS304"),
    "capped, some to calibrate": (False, "OS303"),  # level with what Repair chooses
    "capped lower": (False, "OS304"),
    "capped, few to evaluate": (False, "OS305"),
}
ADVISING = ("OS101", "OS301", "OS303", "OS304", "OS305", "OS403")


def told_in(found, *codes):
    return [f"{each.sentence} {each.advice}" for each in found.findings if each.code in codes]


def on_terminal(found):
    console = Console(file=io.StringIO(), width=4000)
    for piece in show_diagnosis(found, verbose=True):
        console.print(piece, markup=False, highlight=False)
    return console.file.getvalue()


@pytest.mark.parametrize(("name", "expected"), INVERSIONS.items())
def test_the_finding_is_the_measured_one_whatever_the_conditions_say(scene, name, expected):
    found = scene(name)
    holds, code = expected
    assert conditions_hold(found.shifts.median_ratio, found.saturation.share) == holds
    made = [each.code for each in found.findings if each.code in ("OS303", "OS304", "OS305")]
    assert made == [code]
    assert found.finding(code).evidence["conditions_hold"] == holds


def test_an_inversion_measured_to_be_best_is_advised_though_the_cap_binds(scene):
    found = scene("capped, few to calibrate")
    ladder = found.ladder
    assert ladder.lead("inversion", ladder.best(("offset", "platt", "isotonic", "beta"))).low > 0
    assert ladder.lead("inversion", "chosen").low > 0
    assert found.verdict.code == "repairable_by_inversion"
    (short,) = told_in(found, "OS301")
    assert "yet it is measured to pay" in short
    assert "Subtract ln w" in short
    (pays,) = told_in(found, "OS303")
    assert "would not expect it to pay" in pays


def test_an_inversion_measured_to_lose_is_not_advised_though_the_conditions_hold(scene):
    found = scene("starved")
    assert found.ladder.gain("inversion").high < 0
    (loses,) = told_in(found, "OS304")
    assert "would expect it to pay" in loses
    assert "Subtract ln w" not in " ".join(told_in(found, *ADVISING))
    assert found.chosen.name in loses


def test_a_difference_that_the_rows_do_not_decide_is_told_as_such(scene):
    found = scene("capped")
    trial = try_inversion(found)
    assert "these rows do not decide between" in found.verdict.sentence
    (told,) = told_in(found, "OS305")
    assert f"Compare inversion and {name_repair(found, trial.other)} on more rows" in told
    assert f"{trial.lead.value:+.4f}" in told


def test_an_inversion_level_with_the_best_is_preferred_and_the_best_is_named(scene):
    found = scene("capped, some to calibrate")
    assert found.chosen.name not in ("raw", "inversion")
    assert chosen_repair(found) == "inversion"
    value = found.ladder.value("chosen")
    assert f"level with {found.chosen.name} ({value:.4f}, chosen by Repair)" in (
        found.verdict.sentence
    )


@pytest.mark.parametrize("name", INVERSIONS)
def test_the_verdict_names_the_repair_that_is_taken_and_what_repair_chooses(scene, name):
    found = scene(name)
    sentence = found.verdict.sentence
    for repair in {chosen_repair(found), fitted_repair(found)} - {None}:
        assert f"{found.ladder.value(repair):.4f}" in sentence
        named = name_repair(found, repair)
        assert ("subtracting ln w" if repair == "inversion" else named) in sentence
    if chosen_repair(found) is None:
        assert found.verdict.code in ("healthy", "keep_raw", "common_weight", "drift")


@pytest.mark.parametrize("name", INVERSIONS)
def test_every_advice_is_that_of_the_verdict(scene, name):
    found = scene(name)
    repair, undecided = chosen_repair(found), try_inversion(found).outcome == "undecided"
    for told in told_in(found, *ADVISING):
        lowered = told.lower()
        assert "do not invert" not in lowered
        assert ("subtract ln w" in lowered) == (repair == "inversion" and not undecided)
        assert ("keep the raw scores" in lowered) == (repair is None)
    assert (found.verdict.code == "repairable_by_inversion") <= (repair == "inversion")
    assert (found.verdict.code == "repairable_by_calibration") <= (repair != "inversion")


@pytest.mark.parametrize("name", INVERSIONS)
def test_terminal_and_page_say_what_the_verdict_and_the_findings_say(scene, name):
    from html import unescape

    found = scene(name)
    terminal, page = on_terminal(found), unescape(render_page(found))
    finding = next(each for each in found.findings if each.code in ("OS303", "OS304", "OS305"))
    for text in (found.verdict.sentence, finding.sentence, finding.advice):
        assert text in terminal
        assert unescape(html_text(text)) in page  # commands as code
    assert f"Measured: {unescape(html_text(finding.sentence))}" in page
    before, _ = page.split(f'<em class="badge">{found.chosen.name}</em>')
    assert before.rstrip().endswith('<span class="rung-name">chosen</span>')
    assert f"chosen: {found.chosen.name}" in terminal


def test_the_lead_is_the_paired_difference_of_two_rungs(scene):
    ladder = scene("capped").ladder
    lead, gain = ladder.lead("inversion", "offset"), ladder.gain("inversion")
    assert lead.value == ladder.value("inversion") - ladder.value("offset")
    assert lead.low < lead.value < lead.high
    assert lead.high - lead.low < gain.high - gain.low  # the rows both rank alike cancel
    against_raw = ladder.lead("inversion", "raw")
    assert (against_raw.low, against_raw.high) == pytest.approx((gain.low, gain.high))


def test_without_a_bootstrap_sizes_decide_about_the_inversion(arguments):
    for name, code in (("capped, few to calibrate", "OS303"), ("starved", "OS304")):
        found = diagnose(**arguments(name) | {"n_replicates": 0})
        assert np.isnan(try_inversion(found).lead.low)
        assert found.finding(code) is not None
        assert "nan" not in found.finding(code).sentence


@pytest.mark.parametrize(
    ("difference", "standing"),
    [
        ((0.02, 0.01, 0.03), "above"),
        ((-0.02, -0.03, -0.01), "below"),
        ((0.001, -0.002, 0.004), "level"),
        ((0.0, 0.0, 0.0), "level"),
        ((0.001, -0.02, 0.02), "undecided"),
        ((0.02, -0.01, 0.05), "undecided"),
        ((0.004, 0.001, 0.007), "undecided"),  # surely there, and perhaps too small to matter
        ((0.004, np.nan, np.nan), "level"),
        ((0.02, np.nan, np.nan), "above"),
    ],
)
def test_a_difference_stands_by_its_interval_and_its_size(difference, standing):
    assert standing_of(Estimate(*difference), 0.5) == standing


def made_ladder(**gains):
    """A ladder with these gains over a raw of 0.5, each with its interval."""
    rungs = {
        name.replace("_", "-"): Rung(
            name, {"map": Estimate(0.5 + gain[0], 0.0, 1.0)}, {"map": Estimate(*gain)}
        )
        for name, gain in ({"raw": (0.0, 0.0, 0.0)} | gains).items()
    }
    return Ladder(rungs, k=7, n_rows=10, n_evaluated=10, n_replicates=9, seed=0)


def test_a_higher_but_unsure_repair_does_not_hide_a_sure_one(scene):
    ladder = made_ladder(inversion=(0.03, 0.02, 0.04), platt=(0.04, -0.01, 0.09))
    found = replace(scene("capped"), ladder=ladder, chosen=None, decomposition=None, takeover=None)
    assert chosen_repair(found) == "inversion"
    assert judge(found).code == "repairable_by_inversion"
    assert check_inversion(found).code == "OS303"


def test_the_verdict_speaks_of_what_repair_chooses_and_not_of_the_best_in_hindsight(scene):
    gains = {"chosen": (0.03, 0.02, 0.04), "platt": (0.08, 0.07, 0.09)}
    found = replace(
        scene("no weights"),
        ladder=made_ladder(**gains),
        chosen=Chosen("offset", "Why."),
        decomposition=None,
        takeover=None,
    )
    sentence = judge(found).sentence
    assert "offset, which Repair chooses, takes MAP@7 from 0.5000 to 0.5300" in sentence
    assert "platt" not in sentence


def test_where_repair_keeps_raw_no_rung_is_called_a_repair_in_hindsight(scene):
    gains = {"chosen": (0.0, 0.0, 0.0), "platt": (0.08, 0.07, 0.09)}
    found = replace(
        scene("no weights"),
        ladder=made_ladder(**gains),
        chosen=Chosen("raw", "Why."),
        decomposition=None,
        takeover=None,
    )
    assert judge(found).code == "healthy"


def test_a_repair_above_raw_but_not_above_popularity_is_not_said_to_lose_to_raw():
    pair = synthetic_pair(70, 7, prevalence=(0.2, 0.6), signal=0.6, noise=0.2, seed=9)
    diagnosis = diagnose(
        pair.weighted, pair.labels, k=3, weights=pair.weights, unweighted=pair.unweighted
    )
    gain = diagnosis.ladder.gain("inversion")
    assert gain.low > 0
    assert diagnosis.verdict.repair is None
    said = [diagnosis.verdict.sentence, summarize(diagnosis).repair]
    said += [text for each in diagnosis.findings for text in (each.sentence, each.advice)]
    for text in said:
        assert "does not help" not in text
        assert not re.search(r"no repair (surely|clearly) beats (them|the raw)", text.lower()), text
