"""The page of a decision: complete, escaped, and without scripts."""

from dataclasses import replace

import numpy as np
import pytest
from tests.decisions.decision_worlds import draw_rows, fit_decision, fit_repair
from tests.reports.html.test_trend import HOSTILE, read

import oddslip
from oddslip import Decision
from oddslip.calibrators import Isotonic
from oddslip.cli.app import main
from oddslip.reports.decision_text import describe_lists
from oddslip.reports.html.decision import (
    LOOKS,
    MAX_FOLDED,
    MAX_LABELS,
    MAX_LENGTHS,
    draw_lengths,
    render_page,
    threshold_rows,
    write_page,
)
from oddslip.sources import open_source

NAMES = (HOSTILE, "\u202egnp.exe", "{{ 7 * 7 }}", "two\nlines", "quote \" and '", "plain")


@pytest.fixture(scope="module")
def repair():
    return fit_repair()


def words_of(page):
    return " ".join("".join(read(page).text).split())


def test_the_page_says_what_lists_reach_and_the_thresholds_of_each_label(repair, tmp_path):
    decision = fit_decision(repair, {"goal": "f1"})
    decision.write_page(tmp_path / "page.html")
    words = words_of((tmp_path / "page.html").read_text())
    for name, value in describe_lists(decision.fitted_):
        assert f"{name}{value}" in words or f"{name} {value}" in words
    assert decision.fitted_.thresholds is not None
    for row in threshold_rows(decision.fitted_):
        assert row[3] == f"{decision.fitted_.thresholds.used[int(row[0])]:.4g}"
        assert row[3] in words


def test_names_of_labels_are_text_and_nothing_else():
    rows = open_source(*draw_rows(0, 1000), label_names=NAMES)
    repair = Isotonic().fit(rows).fitted_
    decide = Decision(repair, goal="precision", target=0.6)
    decide.fit(open_source(*draw_rows(1), label_names=NAMES))
    decide.fitted_.summary["unmet"] = list(NAMES)
    page = render_page(decide, provenance={HOSTILE: {HOSTILE: HOSTILE}})
    tags = {tag for tag, _ in read(page).tags}
    assert not tags & {"script", "img", "iframe", "object"}
    words = words_of(page)
    assert "onerror" in words
    assert "{{ 7 * 7 }}" in words
    assert "\u202e" not in page


def test_the_page_needs_no_network_and_no_script_and_is_the_same_every_time(repair):
    decision = fit_decision(repair, {"rule": "length", "goal": "f1", "n_replicates": 20})
    page = render_page(decision)
    assert page == render_page(decision)
    assert "//" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page
    assert " style=" not in page


def test_every_length_is_drawn_raw_beside_repaired(repair):
    decision = fit_decision(repair, {"rule": "length", "goal": "f1", "n_replicates": 20})
    marks = [attributes for tag, attributes in read(render_page(decision)).tags if tag == "circle"]
    looks = [mark["class"] for mark in marks if mark["r"] == "3.5"]
    assert looks == 2 * (6 * [f"dot {LOOKS['raw']}"] + 6 * [f"dot {LOOKS['repaired']}"])
    assert "lengths-title" not in render_page(decision.fitted_)


def test_of_very_many_lengths_some_are_drawn_and_the_chosen_one_always():
    metrics = oddslip.metrics.evaluation.Estimate(0.5, 0.4, 0.6)
    table = oddslip.decisions.length_table.LengthTable({"recall": (metrics,) * 5000}, 10)
    drawn = draw_lengths({"raw": table, "repaired": table}, "recall", 77)
    assert 2 * MAX_LENGTHS <= drawn.count("<circle") <= 2 * MAX_LENGTHS + 2
    assert "raw, 77 labels" in drawn


def test_of_many_labels_those_with_most_positives_are_shown_and_others_folded():
    rng = np.random.default_rng(3)
    scores = rng.random((40, MAX_FOLDED + 7))
    labels = rng.random(scores.shape) < 0.3
    repair = Isotonic().fit(scores, labels).fitted_
    decide = Decision(repair).fit(rng.random(scores.shape), labels)
    page = render_page(decide)
    assert f"{MAX_FOLDED - MAX_LABELS} more" in page
    assert "7 labels with fewer positives are left out" in page
    positives = [int(row[-1]) for row in threshold_rows(decide.fitted_)]
    assert positives == sorted(positives, reverse=True)


def test_a_threshold_of_all_labels_is_one_row_and_an_infinite_one_shows_nothing(repair):
    decide = fit_decision(repair, {"rule": "common_threshold", "goal": "f1"})
    assert [row[0] for row in threshold_rows(decide.fitted_)] == ["all labels"]
    none = np.full(6, np.inf)
    never = replace(
        decide.fitted_,
        rule=replace(decide.fitted_.rule, thresholds=none),
        thresholds=replace(decide.fitted_.thresholds, used=none),
    )
    words = words_of(render_page(never))
    assert "Show no label of any row." in words
    assert "never shown" in words


@pytest.mark.parametrize("arguments", [{"rule": "row", "goal": "missed", "target": 0.3}, {}])
def test_a_saved_decision_has_the_page_of_the_fitted_one(repair, arguments, tmp_path):
    decision = fit_decision(repair, arguments)
    decision.save(tmp_path / "d.oddslip")
    write_page(oddslip.load_decision(tmp_path / "d.oddslip"), tmp_path / "d.html")
    assert (tmp_path / "d.html").read_text("utf-8") == render_page(decision)


def test_the_command_writes_the_page_with_its_provenance(repair, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scores, labels = draw_rows(1)
    np.save("s.npy", scores)
    np.save("y.npy", labels)
    repair.save("r.oddslip")
    told = ["--rule", "length", "--html", "d.html"]
    assert main(["decide", "r.oddslip", "s.npy", "y.npy", *told, "-o", "d.oddslip"]) == 0
    words = words_of((tmp_path / "d.html").read_text("utf-8"))
    assert "oddslip decide r.oddslip s.npy y.npy" in words
    assert "SHA-256" in words
    assert "chosen length" in words


def page_of(decision, **options):
    return words_of(render_page(decision.fit(*draw_rows(1), **options)))


def test_the_page_says_where_there_is_no_guarantee(repair):
    aim = {"goal": "missed", "target": 0.1}
    few = Decision(repair, "row", **aim)
    with pytest.warns(UserWarning, match="cannot guarantee"):
        few.fit(*(each[:5] for each in draw_rows(1)))
    words = words_of(render_page(few))
    assert "There is no guarantee" in words
    assert "takes 9 rows with a true label" in words
    assert "Show 6 labels of every row." in words
    with pytest.warns(UserWarning, match="cannot reach"):
        words = page_of(Decision(repair, "row", k_max=1, **aim))
    assert "lists of 1 label miss too many" in words


def test_the_page_has_one_sentence_for_very_many_groups(repair):
    groups = np.arange(400) % 20
    words = page_of(Decision(repair, "row", goal="wrong", target=0.3), groups=groups)
    assert words.count("Guarantee") == 1
    assert "in 20 of 20 groups" in words
    assert "the level of its group" in words


@pytest.mark.parametrize("ending", [".bmp", ".txt", ""])
def test_a_figure_that_cannot_be_drawn_is_refused_before_anything_is_written(
    repair, ending, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name, cells in zip(("s.npy", "y.npy"), draw_rows(1), strict=True):
        np.save(name, cells)
    repair.save("r.oddslip")
    files = ["decide", "r.oddslip", "s.npy", "y.npy", "--rule", "length", "-o", "d.oddslip"]
    assert main([*files, "--figure", f"figure{ending}"]) == 2
    assert "must end in" in capsys.readouterr().err
    assert not (tmp_path / "d.oddslip").exists()
