"""What a notebook shows: balanced, escaped, and the gist alone."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from oddslip import Repair, diagnose, evaluate, plan
from oddslip.datasets import synthetic_pair

HOSTILE = "<img src=x onerror=alert(1)>"
PAIR = synthetic_pair(600, 8, seed=2, realized=0.7, n_dead=2)
NAMES = [f"{HOSTILE}&{at}" for at in range(8)]


class Reader(HTMLParser):
    """Tags in their order, and the text; fails where tags do not balance."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert not attrs
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def diagnosed(**more):
    told = {"label_names": NAMES, "n_replicates": 50, "k": 3, **more}
    return diagnose(PAIR.weighted, PAIR.labels, **told)


def full():
    return diagnosed(
        weights=PAIR.weights,
        unweighted=PAIR.unweighted,
        calibration=(PAIR.weighted[PAIR.calibration], PAIR.labels[PAIR.calibration]),
    )


def test_a_diagnosis_shows_its_verdict_five_rungs_and_three_findings():
    found = full()
    assert len(found.findings) > 3
    page = Reader(found._repr_html_())
    assert found.verdict.sentence in page.text
    assert page.seen.count("tr") == 6
    assert page.seen.count("li") == 3
    assert all(finding.sentence in page.text for finding in found.findings[:3])


def test_what_repair_would_deploy_is_among_the_rungs():
    assert "chosen" in Reader(full()._repr_html_()).text


def test_scores_and_labels_alone_are_enough():
    page = Reader(diagnosed()._repr_html_())
    assert page.seen.count("tr") == 6


def test_a_hostile_name_shows_as_text():
    found = full()
    finding = replace(found.findings[0], sentence=f"{HOSTILE} fell short.", advice="</li><b>")
    verdict = found.verdict._replace(sentence=f"</p>{HOSTILE}")
    hostile = replace(found, findings=(finding, *found.findings[1:]), verdict=verdict)
    page = Reader(hostile._repr_html_())
    assert "img" not in page.seen
    assert page.text.count(HOSTILE) == 2


def test_a_command_in_backticks_shows_as_code_and_its_markup_as_text():
    found = full()
    finding = replace(found.findings[0], sentence="", advice=f"Run `fit {HOSTILE}`, not `.")
    page = Reader(replace(found, findings=(finding,))._repr_html_())
    assert page.seen.count("code") == 1
    assert f"Run fit {HOSTILE}, not `." in page.text
    assert "img" not in page.seen


def test_the_fragment_brings_no_colours_of_its_own():
    page = full()._repr_html_()
    assert "style" not in page
    assert "color" not in page


@pytest.mark.parametrize("cap", [0, 1.0])
def test_a_plan_shows_as_a_table(cap):
    early = plan(PAIR.labels, rounds=60, learning_rate=0.05, max_delta_step=cap, label_names=NAMES)
    page = Reader(early._repr_html_())
    assert early.recommendation in page.text
    assert ("no cap, no bound" in page.text) == (cap == 0)
    assert "inf" not in page.text


def test_evaluations_and_comparisons_show_as_tables():
    first, second = (
        evaluate(scores, PAIR.labels, k=3, n_replicates=50)
        for scores in (PAIR.unweighted, PAIR.weighted)
    )
    compared = first.compare(second)
    for result in (first, compared):
        page = Reader(result._repr_html_())
        assert page.seen.count("tr") == 7
        assert list(result.to_frame()["metric"]) == [
            "MAP@3",
            "precision@3",
            "recall@3",
            "nDCG@3",
            "PSP@3",
            "hit rate@3",
        ]
    assert compared.to_frame()["difference"][0] == compared["map"].value


def test_a_fitted_repair_shows_the_table_of_its_choice():
    repair = Repair(k=3, rule="paper").fit(PAIR.weighted, PAIR.labels, label_names=NAMES)
    page = Reader(repair._repr_html_())
    assert f"{repair.chosen_} (chosen)" in page.text
    assert len(repair.table_.to_frame()) == page.seen.count("tr") - 1
