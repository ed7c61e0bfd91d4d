"""Every finding fires where it should and is silent where it should be."""

from pathlib import Path

import numpy as np
import pytest
from scipy import special

from oddslip.core.panel import Panel
from oddslip.diagnosis import CODES, Finding, diagnose
from oddslip.diagnosis.findings import order_findings

DOCS = Path(__file__).parents[2] / "docs"

# Code: a scene in which it fires, and one in which it does not.
SCENES = {
    "OS101": ("realized", "common weight"),
    "OS102": ("common weight", "realized"),
    "OS201": ("saturated", "realized"),
    "OS202": ("saturated", "realized"),
    "OS203": ("saturated", "realized"),
    "OS204": ("saturated", "realized"),
    "OS301": ("capped", "realized"),
    "OS302": ("saturated", "realized"),
    "OS303": ("realized", "uneven"),
    "OS304": ("uneven", "realized"),
    "OS305": ("capped", "realized"),
    "OS401": ("dead labels", "no weights"),
    "OS402": ("scarce", "realized"),
    "OS403": ("scarce", "realized"),
    "OS404": ("dead labels", "no weights"),
    "OS406": ("drift", "realized"),
}


@pytest.mark.parametrize(("code", "names"), SCENES.items())
def test_a_finding_fires_where_it_should_and_nowhere_else(scene, code, names):
    fires, silent = names
    assert scene(fires).finding(code) is not None
    assert scene(silent).finding(code) is None


def mixed_with_evaluated(told, n_rows=100):
    """Calibration rows, some of which are evaluated too."""
    scores, labels = told["calibration"]
    return (
        np.concatenate([scores, told["scores"][:n_rows]]),
        np.concatenate([labels, told["labels"][:n_rows]]),
    )


def test_calibration_rows_that_look_evaluated_are_a_suspicion_with_a_count(scene, arguments):
    told = arguments("realized")
    mixed = mixed_with_evaluated(told)
    found = diagnose(**told | {"calibration": mixed, "n_replicates": 0}).finding("OS405")
    assert found.evidence["n_rows"] == 100
    assert found.severity == "warning"
    assert "100 of 1,300" in found.sentence
    assert scene("realized").finding("OS405") is None


def test_calibration_rows_that_are_the_evaluated_rows_are_critical_without_ids(arguments):
    told = arguments("realized")
    same = told["scores"], told["labels"]
    found = diagnose(**told | {"calibration": same, "n_replicates": 0}).finding("OS405")
    assert (found.severity, found.evidence["share"]) == ("critical", 1.0)


def test_calibration_rows_whose_ids_are_evaluated_are_critical(arguments):
    told = arguments("realized")
    scores, labels = mixed_with_evaluated(told)
    told |= {"unweighted": None, "label_names": None, "n_replicates": 0}
    rows = [f"row {at}" for at in range(len(told["scores"]))]
    others = [f"other {at}" for at in range(len(scores) - 100)] + rows[:100]
    evaluated = Panel(told.pop("scores"), told.pop("labels"), row_ids=rows)
    held_out = Panel(scores, labels, row_ids=others)
    found = diagnose(evaluated, **told | {"calibration": held_out}).finding("OS405")
    assert (found.severity, found.evidence["n_rows"]) == ("critical", 100)


def test_a_twin_in_another_order_of_the_rows_is_noticed_and_nothing_is_read_off_it(
    scene, arguments
):
    told = arguments("realized")
    rows = np.random.default_rng(0).permutation(len(told["scores"]))
    found = diagnose(**told | {"unweighted": told["unweighted"][rows]})
    assert found.finding("OS206").severity == "critical"
    assert scene("realized").finding("OS206") is None
    assert found.decomposition.loss < 0 < scene("realized").decomposition.loss
    assert found.verdict.code == "repairable_by_inversion"
    assert "twin" not in found.verdict.sentence


def test_shifts_that_cannot_be_read_name_only_the_reasons_and_inputs_that_matter(scene, arguments):
    told = arguments("saturated")
    finding = scene("saturated").finding("OS302")
    assert finding.evidence["n_saturated_labels"] == finding.evidence["n_unknown"]
    assert "no prior" not in finding.sentence
    assert "Pass" not in finding.advice, "the twin was passed"
    alone = diagnose(**told | {"unweighted": None, "n_replicates": 0}).finding("OS302")
    assert "margins" in alone.advice
    margins = {
        "scores": np.clip(special.logit(told["scores"].astype(np.float64)), -30, 30),
        "calibration": None,
        "unweighted": None,
        "kind": "margin",
    }
    alone = diagnose(**told | margins | {"n_replicates": 0}).finding("OS302")
    assert "margins" not in alone.advice


def test_rows_that_calibrate_one_another_are_marked_optimistic(scene, arguments):
    told = arguments("realized") | {"calibration": None, "n_replicates": 0}
    found = diagnose(**told)
    assert found.optimistic
    assert found.finding("OS407") is not None
    assert scene("realized").finding("OS407") is None


def test_every_code_is_tested_here():
    elsewhere = {"OS405", "OS407", "OS206"} | {"OS103", "OS205"}  # the last two: test_scenes.py
    elsewhere |= {"OS104", "OS105", "OS207", "OS208", "OS209", "OS210"}  # test_contradictions.py
    elsewhere |= {code for code in CODES if code > "OS5"}  # serving/test_check.py, test_absent.py
    elsewhere |= {"OS408"}  # selection/test_row_aware.py
    assert set(CODES) == set(SCENES) | elsewhere


def test_the_gravest_findings_come_first(scene, scenes):
    grave = ["critical", "warning", "info"]
    for name in scenes:
        places = [grave.index(finding.severity) for finding in scene(name).findings]
        assert places == sorted(places)


def test_findings_equally_grave_keep_their_order():
    made = [Finding(code, "info", "", {}, "") for code in ("OS303", "OS102", "OS407")]
    assert [finding.code for finding in order_findings(made)] == ["OS303", "OS102", "OS407"]


def test_every_finding_says_what_it_saw_and_what_to_do(scene, scenes):
    for name in scenes:
        for finding in scene(name).findings:
            assert finding.sentence.endswith(".")
            assert finding.advice.endswith(".")
            assert finding.evidence


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_section_its_anchor_leads_to(code):
    finding = Finding(code, "info", "", {}, "")
    page, anchor = finding.anchor.split("#")
    headings = [
        line[3:].strip().lower()
        for line in (DOCS / page).read_text().splitlines()
        if line.startswith("## ")
    ]
    assert headings.count(anchor) == 1
    assert finding.name.lower() in (DOCS / page).read_text().lower()


def test_the_takeover_names_the_labels_that_take_the_slots(scene, pair):
    labels = scene("dead labels").finding("OS401").evidence["labels"]
    dead = {pair("dead labels").label_names[j] for j in pair("dead labels").dead}
    assert dead & set(labels)
