"""The page: complete, escaped, the same every time, and honest about what is not there."""

import ast
import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oddslip import diagnose, reports
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis.summary import summarize
from oddslip.errors import InvalidInput
from oddslip.reports.html import page as pages
from oddslip.reports.html.page import (
    findings_part,
    label_data,
    ladder_part,
    render_page,
    script_json,
    write_page,
)
from oddslip.reports.html.pictures import (
    MAX_DOTS,
    SHAPES,
    choose_labels,
    draw_regimes,
    shape_by_series,
)
from oddslip.reports.html.report_text import GLOSSARY
from oddslip.reports.html.svg import Axis, axis_over, tag, text
from oddslip.reports.numbers import (
    RegimePoint,
    Regimes,
    count_regimes,
    read_regimes,
    regime_of,
    tell_association,
    waterfall_of,
)

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\u202egnp.exe",
    "quote \" and '",
    "two\nlines",
    "{{ 7 * 7 }}",
    "x" * 3000,
)
JOINED = str.maketrans("", "", " `")  # code elements split a sentence, and backticks are gone
VOID = {"meta", "link", "input", "circle", "path", "line", "rect"}


@cache
def found_with(*told, seed=1, n_labels=16):
    """A diagnosis given only the named inputs besides scores and labels."""
    pair = synthetic_pair(900, n_labels, seed=seed, saturate=0.01, n_dead=2, noise=0.3)
    inputs = {
        "weights": pair.weights,
        "unweighted": pair.unweighted,
        "prior": pair.prior,
        "budget": None,
    }
    given = {name: inputs[name] for name in told if name != "budget"}
    if "budget" in told:
        given |= {"rounds": 20, "learning_rate": 0.1, "max_delta_step": 1.0}
    names = HOSTILE + pair.label_names[len(HOSTILE) :]
    return diagnose(pair.weighted, pair.labels, k=3, n_replicates=40, label_names=names, **given)


def full():
    return found_with("weights", "unweighted", "prior", "budget")


def test_the_page_shows_commands_as_code_and_their_markup_as_text():
    found = full()
    finding = replace(found.findings[0], sentence=f"`{HOSTILE[0]}`", advice="Run `oddslip fit`.")
    page = render_page(replace(found, findings=(finding,)))
    assert "<code>oddslip fit</code>" in page
    assert "<code>&lt;img src=x onerror=alert(1)&gt;</code>" in page


class Reader(HTMLParser):
    """Collects elements, visible text and the embedded data; checks that tags balance."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.data = [], [], [], ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append((tag, dict(attributes)))

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        inside = self.open[-1] if self.open else ("", {})
        if inside[1].get("id") == "label-data":
            self.data += text
        elif inside[0] not in ("script", "style"):
            self.texts.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def read(found, **how):
    return Reader(render_page(found, **how))


def test_the_page_holds_the_verdict_every_rung_and_every_finding():
    found = full()
    shown = read(found).text
    assert found.verdict.sentence in shown
    for name, rung in found.ladder.rungs.items():
        assert f"{name} " in shown
        assert f"{rung['map'].value:.4f}" in shown
        assert f"{rung['ndcg'].value:.4f}" in shown
    assert found.findings
    for finding in found.findings:
        assert f"{finding.code} {finding.name}" in shown
        assert finding.advice.translate(JOINED) in shown.translate(JOINED)


def test_the_page_opens_with_three_sentences_seven_rungs_and_three_findings():
    found = full()
    page, summary = read(found), summarize(found)
    assert all(text in page.text for text in (summary.harm, summary.repair, summary.python))
    assert "".join(summary.command.split()) in "".join(page.text.split())
    main, rest = ladder_part(found)["blocks"]
    assert len(main) <= 7
    assert len(main) + len(rest) == len(found.ladder.rungs)
    first, others = findings_part(found)
    assert len(first) <= 3
    assert len(first) + len(others) == len(found.findings)
    places = [page.text.index(text) for text in (summary.python, "Every rung ranks", "Advice.")]
    assert places == sorted(places)


def test_the_page_explains_its_words():
    shown = read(full()).text
    assert all(f"{word} {meaning}" in shown for word, meaning in GLOSSARY.items())


def test_the_glossary_of_the_docs_has_the_words_of_the_page():
    text = (Path(__file__).parents[3] / "docs/glossary.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (.*)$", text, re.MULTILINE)) >= {*GLOSSARY}


def test_the_same_diagnosis_gives_the_same_page():
    assert render_page(full()) == render_page(full())


@pytest.mark.parametrize(
    "told",
    [
        (),
        ("weights",),
        ("unweighted",),
        ("weights", "prior", "budget"),
        ("weights", "unweighted", "prior", "budget"),
    ],
    ids=lambda told: "+".join(told) or "nothing",
)
def test_a_page_comes_of_whatever_inputs_there_were(told):
    found = found_with(*told)
    shown = read(found)
    for missing in found.missing:
        assert missing.what in shown.text
        assert f"needs {missing.needs}" in shown.text
    pictures = {a["aria-labelledby"] for t, a in shown.tags if t == "svg" and "role" in a}
    assert ("waterfall-title" in pictures) == (waterfall_of(found) is not None)
    assert ("shifts-title" in pictures) == ("weights" in told)
    assert ("This model is not placed." in shown.text) == (regime_of(found) is None)


def test_a_missing_picture_says_which_input_would_allow_it():
    shown = read(found_with()).text
    assert "unweighted=, --unweighted" in shown
    assert "weights=, --weights" in shown


def test_a_split_of_the_evaluated_rows_is_marked_optimistic():
    assert "optimistic" in read(found_with()).text
    assert "optimistic" not in read(replace(found_with(), protocol="deployment")).text


def test_a_healthy_diagnosis_without_findings_says_so():
    assert "Nothing worth a finding." in read(replace(full(), findings=())).text
    assert "Nothing: every input was there." in read(replace(full(), missing=())).text


def test_shifts_that_none_can_read_are_said_and_drawn_apart():
    found = full()
    nothing = replace(found.shifts, identified=np.zeros(found.n_labels, bool))
    shown = read(replace(found, shifts=nothing))
    assert "No weighted label has a shift that can be read." in shown.text
    rings = [a for t, a in shown.tags if t == "circle" and a.get("class") == "ring bad"]
    assert len(rings) == found.n_labels


def test_a_diagnosis_without_intervals_shows_dashes_and_no_interval_lines():
    pair = synthetic_pair(300, 9)
    shown = read(diagnose(pair.weighted, pair.labels, k=3, n_replicates=0))
    assert "No intervals were asked for." in shown.text
    assert not [a for _, a in shown.tags if a.get("class") == "interval"]


def test_a_single_label_has_a_page():
    pair = synthetic_pair(300, 1, prevalence=(0.2, 0.3))
    found = diagnose(
        pair.weighted,
        pair.labels,
        k=1,
        n_replicates=10,
        weights=pair.weights,
        unweighted=pair.unweighted,
    )
    assert found.verdict.sentence in read(found).text


def test_hostile_names_stay_text():
    found = full()
    wicked = {"command": HOSTILE[1], HOSTILE[0]: {HOSTILE[1]: [HOSTILE[0], 3]}}
    page = render_page(found, provenance=wicked)
    shown = Reader(page)
    assert not [t for t, _ in shown.tags if t == "img"]
    assert [a.get("type") for t, a in shown.tags if t == "script"] == ["application/json", None]
    assert not [a for _, a in shown.tags if any(name.startswith("on") for name in a)]
    assert HOSTILE[1] in shown.text
    assert "\u202e" not in page
    page.encode("utf-8")


def test_a_finding_that_names_a_hostile_label_stays_text():
    found = full()
    said = replace(
        found.findings[0], sentence=f"It is {HOSTILE[0]}.", evidence={HOSTILE[0]: HOSTILE[1]}
    )
    shown = read(replace(found, findings=(said,)))
    assert f"It is {HOSTILE[0]}." in shown.text
    assert not [t for t, _ in shown.tags if t == "img"]


def test_the_table_holds_every_label_as_the_diagnosis_has_it():
    found = full()
    told = json.loads(read(found).data)
    columns = found.label_columns()
    assert told["columns"][0]["key"] == "label"
    raw = [told["raw"].get(str(at), name) for at, name in enumerate(told["values"]["label"])]
    assert raw == list(found.label_names)
    for key in ("evaluation_positives", "saturated_cells", "dead", "drifted"):
        assert told["values"][key] == columns[key].tolist()
    for key in ("prior", "weight", "intended_shift"):
        np.testing.assert_allclose(told["values"][key], columns[key], rtol=1e-6)
    known = np.array([value is not None for value in told["values"]["realized_shift"]])
    np.testing.assert_array_equal(known, found.shifts.identified)


@given(st.text(st.characters(exclude_categories=[])))
@settings(deadline=None, max_examples=300)
def test_script_data_reads_back_and_never_ends_its_element(value):
    told = script_json({"name": value})
    assert json.loads(told) == {"name": value}
    assert not set("<>&") & set(told)
    assert told.isascii()


@given(st.text(st.characters(exclude_categories=[])) | st.text("<>&\"'/ab!-=; \n"))
@settings(deadline=None, max_examples=400)
@example("<b>&amp;</text><i>")
@example('\' x="y"')
def test_markup_made_of_any_text_holds_one_element_with_that_text(value):
    made = Reader(text(value, data_t=value))
    assert [name for name, _ in made.tags] == ["text"]
    assert "".join(made.texts) == made.tags[0][1]["data-t"]


def test_the_policy_allows_this_style_and_this_script_alone():
    page = render_page(full())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for element, rule in (("style", "style-src"), ("script", "script-src")):
        content = re.search(f"<{element}>(.*?)</{element}>", page, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert " style=" not in page


def test_the_page_asks_for_nothing_from_outside():
    shown = read(full())
    links = [a[name] for _, a in shown.tags for name in ("href", "src") if name in a]
    assert links
    assert all(link.startswith("#") or link == "data:," for link in links)


def test_every_link_inside_the_page_leads_somewhere():
    shown = read(full())
    ids = [a["id"] for _, a in shown.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for t, a in shown.tags if t == "a"} <= set(ids)


def test_a_page_is_written_whole(tmp_path):
    write_page(full(), tmp_path / "report.html", provenance={"seed": 3})
    assert (tmp_path / "report.html").read_text("utf-8") == render_page(
        full(), provenance={"seed": 3}
    )
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InvalidInput, match="existing folder"):
        write_page(full(), tmp_path / "nowhere" / "report.html")


def test_the_waterfall_adds_up_to_the_diagnosis():
    found = full()
    shown, parts = waterfall_of(found), found.decomposition
    assert shown.unweighted - shown.weighted == parts.loss
    assert shown.unweighted - shown.what_if == parts.odds
    assert shown.ceiling == found.ladder.value("ceiling")


def test_this_model_stands_where_the_diagnosis_puts_it():
    found = full()
    found = replace(found, shifts=replace(found.shifts, identified=found.shifts.weighted))
    point = regime_of(found)
    assert point.ratio == found.shifts.median_ratio
    assert point.returned == found.decomposition.returned["inversion"]
    assert point.here


def test_the_regime_picture_does_without_reference_points(monkeypatch):
    monkeypatch.setattr(pages, "read_regimes", lambda: Regimes("", ()))
    assert "This installation holds none to compare with." in read(found_with()).text


def test_reference_points_are_numbers():
    for point in read_regimes().points:
        assert np.isfinite(point.ratio)
        assert np.isfinite(point.returned)


@cache
def placed():
    """A diagnosis with a place in the regime picture."""
    pair = synthetic_pair(900, 16, seed=1)
    given = {"weights": pair.weights, "unweighted": pair.unweighted}
    return diagnose(pair.weighted, pair.labels, k=3, n_replicates=40, **given)


def test_every_model_is_a_mark_and_a_line_of_the_regime_picture():
    references = read_regimes().points
    assert any(point.ratio <= 0 for point in references)
    drawn = draw_regimes(references)
    assert drawn.count('class="place"') == len(references)
    for point in references:
        assert f"{point.name}: realized {point.ratio:.2f} of ln w" in drawn
    page = render_page(placed())
    regime = page.split('<section id="regime"')[1].split("</section>")[0]
    assert regime.count('class="place"') == len(references) + 1
    assert regime.count("<tr><th") == len(references) + 2


@pytest.mark.parametrize("ratio", [0.0, -0.2])
def test_a_ratio_of_0_or_less_is_a_mark_at_the_left_edge_with_an_arrow(ratio):
    inside = RegimePoint("inside", "a", 0.4, 0.5, 0.0)
    drawn = draw_regimes([inside, replace(inside, ratio=ratio)])
    first, last = re.findall(r'<svg x="([\d.]+)%" y="[\d.]+" class="place">', drawn)
    assert 0 < float(last) < float(first)
    assert drawn.count('class="arrow"') == 1
    assert ">0 or less<" in drawn
    assert ">0 or less<" not in draw_regimes([inside])


def test_the_page_counts_how_often_the_association_held():
    counts = count_regimes(read_regimes().points)
    shown = read(placed()).text
    for sentence in tell_association(counts):
        assert sentence in " ".join(shown.split())


def test_a_model_whose_shift_went_the_other_way_is_placed():
    found = placed()
    shifts = replace(found.shifts, realized=-found.shifts.realized)
    turned = replace(found, shifts=shifts)
    assert regime_of(turned).ratio < 0
    assert "This model is not placed." not in read(turned).text


def test_a_share_beyond_the_edge_is_drawn_at_the_edge_with_an_arrow():
    far = RegimePoint("far", "a", 0.1, -25.0, 0.0)
    near = replace(far, returned=0.5)
    assert draw_regimes([far]).count('class="arrow"') == 1
    assert draw_regimes([near]).count('class="arrow"') == 0
    assert "-2500%" in draw_regimes([far])


def test_marks_are_open_where_cells_are_saturated():
    point = RegimePoint("a", "s", 1.0, 0.5, 0.0)
    assert 'class="mark"' in draw_regimes([point])
    assert 'class="mark open"' in draw_regimes([replace(point, saturated_share=0.2)])


def test_the_pictures_of_the_ladder_are_as_high_as_a_line_of_its_table():
    part = ladder_part(full())
    rows = [row for block in part["blocks"] for row in block]
    for svg in [*(row["svg"] for row in rows), part["scale"]]:
        assert float(re.search(r'<svg[^>]* height="([\d.]+)"', svg)[1]) < 40


def test_no_constant_of_the_reports_is_set_twice():
    for path in sorted(Path(reports.__file__).parent.rglob("*.py")):
        names = [
            name.id
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        ]
        assert len(names) == len(set(names)), path


def test_series_get_shapes_of_their_own():
    points = [RegimePoint("m", f"series {at}", 1.0, 0.0, 0.0) for at in range(len(SHAPES))]
    assert len(set(shape_by_series(points).values())) == len(SHAPES)


@pytest.mark.parametrize("n_labels", [1, 3999, 4000, 4001, 100_000])
def test_no_more_dots_than_a_browser_likes_are_drawn(n_labels):
    drawn = choose_labels(n_labels)
    assert len(drawn) <= MAX_DOTS
    assert len(drawn) >= min(n_labels, MAX_DOTS // 2)
    assert drawn[-1] < n_labels


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.integers(2, 8),
)
@settings(deadline=None)
@example([-14815.0, -385186.0], 2)
def test_an_axis_holds_its_values_and_its_ticks(values, n):
    axis = axis_over(values, 0.0, 100.0)
    for value in (*values, *axis.ticks(n)):
        assert -1e-6 <= axis(value) <= 100 + 1e-6
    assert 2 <= len(axis.ticks(n)) <= 2 * n + 1


def test_a_log_axis_puts_equal_ratios_at_equal_distances():
    axis = Axis(0.01, 100.0, 0.0, 100.0, log=True)
    assert axis(0.1) == pytest.approx(25.0)
    assert axis(1.0) == pytest.approx(50.0)
    assert 1.0 in axis.ticks()


def test_an_attribute_that_is_none_is_left_out():
    assert tag("a", x=None, y=1) == '<a y="1"/>'


def test_numbers_that_are_not_finite_become_empty_cells():
    found = full()
    shifts = replace(found.shifts, direct=np.full(found.n_labels, np.nan))
    told = label_data(replace(found, shifts=shifts))
    assert set(told["values"]["direct_shift"]) == {None}
