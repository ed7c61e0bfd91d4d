"""A number is said once: page, figure and terminal agree on it, above all where a repair hurts."""

import io
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip
from oddslip import diagnose, plan
from oddslip.core import formatting
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import Verdict
from oddslip.diagnosis.decomposition import decompose
from oddslip.reports import numbers
from oddslip.reports.figures import style as figures
from oddslip.reports.figures.waterfall import PALE_BLUE, PALE_ORANGE, draw_waterfalls
from oddslip.reports.html.page import ladder_part, regime_part
from oddslip.reports.html.pictures import draw_waterfall
from oddslip.reports.html.report_text import facts_of, tell_loss, tiles_of
from oddslip.reports.numbers import RegimePoint, Regimes, Waterfall
from oddslip.reports.text import show_diagnosis, show_plan

HURT = Waterfall("a pair", "MAP@7", 0.5, 0.45, 0.4, inversion=0.44, repaired=0.35, ceiling=0.6)
score = st.floats(0, 1).map(lambda value: round(value, 3))


@cache
def found_with(seed=88, n_replicates=0, **options):
    """A small pair; that of seed 88 has too few calibration rows, and isotonic hurts."""
    pair = synthetic_pair(240, 30, seed=seed, noise=0.2)
    rows = np.isin(np.arange(240), np.random.default_rng(42).permutation(240)[:72])
    defaults = {
        "weights": pair.weights,
        "unweighted": pair.unweighted[~rows],
        "calibration": (pair.weighted[rows], pair.labels[rows]),
    }
    return diagnose(
        pair.weighted[~rows],
        pair.labels[~rows],
        k=3,
        n_replicates=n_replicates,
        **defaults | options,
    )


def shares_on_page(shown):
    """The shares that the page's waterfall writes, in their order."""
    return re.findall(r"[+-]\d\.\d{4}, (-?\d+%)</text>", draw_waterfall(shown))


def shares_in_figure(shown):
    texts = [text.get_text() for text in draw_waterfalls([shown]).axes[0].texts]
    found = (re.search(r"\((.*)\)", text) for text in texts)
    return [share[1].replace(figures.MINUS, "-") for share in found if share]


def printed(pieces):
    from rich.console import Console

    out = Console(width=200, record=True, file=io.StringIO())
    for piece in pieces:
        out.print(piece)
    return out.export_text()


def test_a_repair_that_hurts_is_a_loss_on_the_page_and_in_the_figure():
    assert shares_on_page(HURT) == shares_in_figure(HURT) == ["50%", "50%", "40%", "-50%"]


def test_a_repair_that_hurts_has_the_colour_of_a_loss():
    bars = re.findall(r'class="bar (\w+)"', draw_waterfall(HURT))
    assert bars == ["good", "lost", "lost", "bad", "gain", "lost", "good"]
    patches = draw_waterfalls([HURT]).axes[0].patches
    colours = [colour_of(patch) for patch in patches]
    assert colours[-2:] == [PALE_BLUE.lower(), PALE_ORANGE.lower()]


def colour_of(patch):
    from matplotlib.colors import to_hex

    return to_hex(patch.get_facecolor())


@given(score, score, score, score, score)
@settings(max_examples=15, deadline=None)
def test_page_and_figure_say_the_same_shares(unweighted, what_if, weighted, inversion, repaired):
    shown = Waterfall("", "MAP@7", unweighted, what_if, weighted, inversion, repaired, 1.0)
    assert shares_on_page(shown) == shares_in_figure(shown)


def test_the_bars_of_page_and_figure_have_the_same_widths():
    reach = 0.6  # the ceiling: where the page's axis ends
    page = re.findall(r'width="([\d.]+)%" height="14" class="bar', draw_waterfall(HURT))
    drawn = [abs(bar.get_width()) for bar in draw_waterfalls([HURT]).axes[0].patches]
    np.testing.assert_allclose(
        [float(width) / 100 * reach for width in page[:-1]], drawn, atol=1e-4
    )


def test_the_waterfall_shows_the_shares_of_the_decomposition():
    found = found_with(seed=5)
    parts = found.decomposition
    assert parts.loss > 0
    shares = {
        step.name: step.share for step in numbers.waterfall_steps(numbers.waterfall_of(found))
    }
    assert shares["odds shift"] == pytest.approx(parts.share("odds"))
    assert shares["slippage"] == pytest.approx(parts.share("slippage"))
    assert shares["inversion"] == pytest.approx(parts.returned["inversion"])
    assert shares[found.chosen.name] == pytest.approx(parts.returned["chosen"])


@pytest.mark.parametrize(
    ("world", "rung"),
    [({"noise": 0.3, "realized": 0.6}, "chosen"), ({"realized": 1.0}, "inversion")],
)
def test_every_place_shows_the_repair_of_the_verdict(world, rung):
    pair = synthetic_pair(2000, 20, seed=1, **world)
    twin = {"weights": pair.weights, "unweighted": pair.unweighted}
    found = diagnose(pair.weighted, pair.labels, k=3, n_replicates=100, **twin)
    repaired = found.ladder.value(rung)
    assert repaired != found.ladder.value("isotonic")
    name, value = found.chosen.name if rung == "chosen" else rung, formatting.score(repaired)
    share = formatting.percent(found.decomposition.returned[rung])
    assert value in found.verdict.sentence
    assert found.to_dict()["verdict"]["repair"] == rung
    shown = numbers.waterfall_of(found)
    assert (shown.repair, shown.repaired) == (name, repaired)
    assert shares_on_page(shown)[-1] == shares_in_figure(shown)[-1] == share
    assert re.findall(r">(\d\.\d{4})</text>", draw_waterfall(shown))[-1] == value
    rows = [row for block in ladder_part(found)["blocks"] for row in block]
    assert [row["name"] for row in rows if row["is_repair"]] == [rung]
    assert any(f"returns {share}" in sentence for sentence in tell_loss(found))
    assert f"returns {share} of the loss" in printed(show_diagnosis(found))
    assert f"{name} returns {share}" in printed(show_diagnosis(found, verbose=True))
    ticks = found.plot("ladder").axes[0].get_yticklabels()
    bold = [tick.get_text() for tick in ticks if tick.get_fontweight() == "bold"]
    assert bold == [found.rung_name(rung)]


def test_words_terminal_and_both_pictures_say_that_a_repair_hurts():
    found = hurt_by_repair()
    share = formatting.percent(found.decomposition.returned["chosen"])
    assert share.startswith("-")
    shown = numbers.waterfall_of(found)
    assert share == shares_on_page(shown)[-1] == shares_in_figure(shown)[-1]
    assert any(f"returns {share}" in sentence for sentence in tell_loss(found))
    assert f"{found.chosen.name} returns {share}" in printed(show_diagnosis(found, verbose=True))


def hurt_by_repair():
    """A diagnosis whose verdict recommends no repair, and whose "chosen" is below raw."""
    found = found_with()
    rungs = found.ladder.rungs | {"chosen": found.ladder["isotonic"]}
    ladder = replace(found.ladder, rungs=rungs)
    return replace(
        found,
        ladder=ladder,
        decomposition=decompose(ladder),
        verdict=Verdict("keep_raw", "Keep the raw scores."),
    )


def test_where_the_inversion_alone_repairs_the_waterfall_needs_no_calibration_rows():
    pair = synthetic_pair(2000, 20, seed=1, realized=1.0)
    twin = {"weights": pair.weights, "unweighted": pair.unweighted}
    found = diagnose(pair.weighted, pair.labels, k=3, n_replicates=0, **twin)
    ladder = replace(
        found.ladder,
        rungs={name: rung for name, rung in found.ladder.rungs.items() if name in INPUTS_ALONE},
    )
    shown = numbers.waterfall_of(replace(found, chosen=None, ladder=ladder))
    assert (shown.repair, shown.repaired) == ("inversion", ladder.value("inversion"))


INPUTS_ALONE = ("unweighted", "what-if", "raw", "inversion", "ceiling")


def test_a_slippage_that_gave_back_has_its_minus_on_page_figure_and_terminal():
    found = found_with(seed=97)
    parts = found.decomposition
    share = f"{parts.share('slippage'):.0%}"
    assert share.startswith("-")
    assert parts.loss > 0
    shown = numbers.waterfall_of(found)
    assert share == shares_on_page(shown)[1] == shares_in_figure(shown)[1]
    assert any(f"accounts for {share}" in sentence for sentence in tell_loss(found))
    assert not any(f" {share[1:]}" in sentence for sentence in tell_loss(found))
    assert f"slippage {share}" in printed(show_diagnosis(found, verbose=True))


def test_an_odds_shift_that_would_gain_has_its_minus_in_words_too():
    parts = replace(found_with().decomposition, odds=-0.01, slippage=0.05, loss=0.04)
    words = tell_loss(replace(found_with(), decomposition=parts))
    assert any("accounts for -25% of it" in sentence for sentence in words)


def test_a_bar_that_starts_at_zero_is_joined_where_it_starts():
    # The weighted model ranks nothing right, so what repairs return starts at zero.
    shown = replace(HURT, weighted=0.0)
    joints = re.findall(r'<line x1="([\d.]+)%"[^>]*class="joint"', draw_waterfall(shown))
    assert [float(x) for x in joints][-3:-1] == [0.0, 0.0]


@pytest.mark.parametrize("share", [0.0, 0.0003, 0.0007, 0.01, 0.9997, 1.0])
def test_a_small_share_reads_the_same_on_the_page_in_a_figure_and_in_its_table(share):
    told = formatting.small_percent(share)
    n_rows, n_labels = 100, 100
    found = found_with()
    saturated = np.zeros(n_labels, np.int64)
    saturated[0] = round(share * n_rows * n_labels)
    stored = replace(found.saturation, n_rows=n_rows, n_labels=n_labels, n_saturated=saturated)
    assert tiles_of(replace(found, saturation=stored))[0][0] == told
    assert figures.small_percent(share) == told
    if share > 0:
        point = RegimePoint("one", "a series", 1.0, 0.5, share)
        assert regime_part(found, Regimes("", (point,)))["rows"][0]["saturated"] == told


def test_what_is_not_none_never_reads_as_none_nor_what_is_not_all_as_all():
    shares = np.concatenate([np.geomspace(1e-12, 0.5), 1 - np.geomspace(1e-12, 0.5)])
    for share in shares:
        assert float(formatting.small_percent(share).strip("<>%")) not in (0, 100)


def test_the_level_of_an_interval_keeps_its_digits():
    pair = synthetic_pair(60, 4)
    from oddslip.reports.text import evaluation_table

    found = oddslip.evaluate(pair.weighted, pair.labels, k=2, n_replicates=20, level=0.999)
    assert evaluation_table(found).columns[2].header == "99.9% interval"


def test_a_budget_without_bound_is_not_printed_as_a_number():
    found = found_with(rounds=20, learning_rate=0.1, max_delta_step=0.0)
    assert "inf nat" not in printed(show_diagnosis(found, verbose=True))


def test_the_step_budget_reads_the_same_on_terminal_page_and_figures():
    found = found_with(rounds=7, learning_rate=0.1, max_delta_step=0.5, n_replicates=0)
    from oddslip.reports.html.page import render_page

    assert "Step budget: 0.35 nat." in printed(show_diagnosis(found, verbose=True))
    assert "The step budget is 0.35 nat" in render_page(found)
    legend = found.plot("shifts").legends[0]
    assert "step budget, 0.35 nat" in [text.get_text() for text in legend.texts]


def test_a_plan_without_replicates_shows_no_interval():
    pair = synthetic_pair(200, 6)
    early = plan(
        pair.labels,
        rounds=20,
        learning_rate=0.1,
        max_delta_step=1.0,
        k=3,
        unweighted=pair.unweighted,
        n_replicates=0,
    )
    assert "nan" not in printed(show_plan(early))


def test_the_page_marks_what_repair_would_deploy_by_its_name():
    found = found_with()
    rows = [row for block in ladder_part(found)["blocks"] for row in block]
    marked = {row["name"]: row["chosen"] for row in rows if row["chosen"]}
    assert marked == {"chosen": found.chosen.name}


def test_terminal_page_and_json_say_the_same_auc():
    found = found_with()
    told = formatting.estimated(found.signal.mean)
    assert f"Within-label AUC: {told}" in printed(show_diagnosis(found, verbose=True))
    assert dict(facts_of(found))["within-label AUC"] == told
    assert found.to_dict()["signal"]["auc"]["value"] == found.signal.mean.value


ROOT = Path(oddslip.__file__).parent
SPEAKERS = sorted([*(ROOT / "reports").rglob("*.py"), *(ROOT / "diagnosis").rglob("*.py")])


@pytest.mark.parametrize("path", SPEAKERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_wording_says_how_shares_and_changes_are_written(path):
    own = re.findall(r"\{[^{}\n]*:(?:\.\d%|\+\.\df|\.4f|\.3g)\}", path.read_text(encoding="utf-8"))
    assert not own
