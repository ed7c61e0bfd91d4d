"""Names as plain text, one font, no pyplot, nothing left behind."""

import gc
import io
import json
import os
import subprocess
import sys
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip.reports.figures.style import (
    LONGEST,
    MARKERS,
    drawable,
    finish,
    new_figure,
    percent,
    round_steps,
    series_marks,
    signed,
    small_percent,
)
from oddslip.reports.figures.waterfall import draw_waterfalls
from oddslip.reports.numbers import Waterfall

HOSTILE = [
    "$x^2$",
    "$\\frac{",
    "a\nb",
    "tab\tend",
    "\\alpha",
    "100% & _x_",
    "\u202eevil",
    "日本語",
    "🙂",
    "\x00",
]


def pair(name="a pair"):
    return Waterfall(name, "MAP@7", 0.8, 0.6, 0.1, 0.2, 0.7, 0.75, 0.78)


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=200)
def test_any_name_becomes_one_printable_line(name):
    shown = drawable(name)
    assert shown.isprintable()
    if len(name) <= LONGEST and name.isascii() and name.isprintable():
        assert shown == name


def test_a_long_name_is_cut_and_says_so():
    shown = drawable("x" * 500)
    assert len(shown) == LONGEST
    assert shown.endswith("…")


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_is_drawn_literally_and_without_a_warning(name):
    figure = draw_waterfalls([pair(name)])
    figure.savefig(io.BytesIO())
    title = figure.axes[0].get_title(loc="left")
    assert title == drawable(name)
    assert not any(text.get_parse_math() for text in texts_of(figure))


def test_the_machines_settings_do_not_reach_our_texts():
    import matplotlib

    with matplotlib.rc_context({"text.usetex": True, "font.family": "monospace"}):
        figure = draw_waterfalls([pair("50% $")])
        assert not any(text.get_usetex() for text in texts_of(figure))
        assert {tuple(text.get_fontfamily()) for text in texts_of(figure)} == {("DejaVu Sans",)}


def test_drawing_changes_no_setting():
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw_waterfalls([pair()])
    assert dict(matplotlib.rcParams) == before


def test_a_figure_leaves_nothing_behind():
    figure = draw_waterfalls([pair()])
    figure.savefig(io.BytesIO())
    gone = weakref.ref(figure)
    del figure
    gc.collect()
    assert gone() is None


def test_neither_pyplot_nor_a_display_is_needed():
    code = (
        "import json, sys, io\n"
        "import oddslip.reports.figures.waterfall as w, oddslip.reports.figures.overview\n"
        "light = 'matplotlib' not in sys.modules\n"
        "from oddslip.reports.numbers import Waterfall\n"
        "w.draw_waterfalls([Waterfall('a', 'MAP@7', .8, .6, .1, .2, .7, .75)]).savefig(io.BytesIO())\n"
        "print(json.dumps([light, 'matplotlib.pyplot' in sys.modules]))\n"
    )
    quiet = {
        name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MPLBACKEND")
    }
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=quiet
    )
    assert json.loads(told.stdout) == [True, False]


def test_a_notebook_gets_a_png():
    assert draw_waterfalls([pair()])._repr_png_().startswith(b"\x89PNG")


def test_the_same_numbers_give_the_same_bytes():
    first, second = io.BytesIO(), io.BytesIO()
    for held in (first, second):
        draw_waterfalls([pair()]).savefig(held)
    assert first.getvalue() == second.getvalue()


def test_a_figure_is_as_wide_as_it_is_printed():
    assert new_figure(80).get_figwidth() * 25.4 == pytest.approx(160)


def test_series_differ_in_colour_or_shape():
    marks = series_marks([f"series {at}" for at in range(3 * len(MARKERS))])
    assert len({(mark["color"], mark["marker"]) for mark in marks.values()}) == len(marks)


def test_a_tick_label_made_later_is_plain_too():
    figure = new_figure(40)
    axis = figure.subplots()
    axis.set_yticks([0, 1], ["$a$", "$b$"])
    finish(figure).savefig(io.BytesIO())
    assert [text.get_text() for text in axis.get_yticklabels()] == ["$a$", "$b$"]
    assert not any(text.get_parse_math() for text in axis.get_yticklabels())


def test_numbers_keep_their_sign_and_their_size():
    assert signed(-0.1234) == "\N{MINUS SIGN}0.123"
    assert percent(-1.9) == "\N{MINUS SIGN}190%"
    assert [small_percent(share) for share in (0, 0.00001, 0.166)] == ["0%", "<0.1%", "16.6%"]


@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e6))
@settings(deadline=None)
def test_ticks_lie_within_and_rise(low, factor):
    steps = round_steps(low, low * factor)
    assert steps == sorted(set(steps))
    assert all(low <= step <= low * factor for step in steps)


def texts_of(figure):
    from matplotlib.text import Text

    return figure.findobj(Text)
