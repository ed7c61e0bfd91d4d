"""The page in a real browser: it works, it is safe, and everyone can use it."""

import csv
import io

import pytest
from pages_shown import HOSTILE

N_LABELS = 4000


def sort_button(key):
    return f'#label-table th[data-key="{key}"] button'


def order_by(column, *, up):
    """Labels by value, unknown ones last, equals by label."""
    known = [at for at, value in enumerate(column) if value is not None]
    known.sort(key=lambda at: column[at] if up else -column[at])
    return known + [at for at, value in enumerate(column) if value is None]


@pytest.mark.parametrize("name", ["bare", "pretty", "wide"])
def test_a_page_opens_without_errors_and_without_the_network(visit, name):
    visited = visit(name)
    visited.page.wait_for_load_state("networkidle")
    assert visited.troubles == []
    assert visited.dialogs == []
    outside = [url for url in visited.requests if not url.startswith(("file://", "data:"))]
    assert outside == []
    assert len([url for url in visited.requests if url.startswith("file://")]) == 1


@pytest.mark.parametrize("key", ["prior", "weight", "evaluation_positives", "realized_shift"])
def test_four_thousand_labels_sort_both_ways(visit, key):
    visited = visit("wide")
    names, column = visited.column("label"), visited.column(key)
    assert len(names) == N_LABELS
    # The table opens sorted by evaluated positives, so a first press on them turns the order.
    ways = (True, False) if key == "evaluation_positives" else (False, True)
    for up in ways:
        visited.page.click(sort_button(key))
        assert visited.names() == [names[at] for at in order_by(column, up=up)[:50]]
        heading = visited.page.locator(f'#label-table th[data-key="{key}"]')
        assert heading.get_attribute("aria-sort") == ("ascending" if up else "descending")


def test_a_second_press_sorts_names_downwards(visit):
    visited = visit("wide")
    visited.page.click(sort_button("label"))
    visited.page.click(sort_button("label"))
    plain = visited.column("label")[len(HOSTILE) :]
    items = [name for name in visited.names() if name.startswith("item-")]
    assert items == sorted(plain, reverse=True)[: len(items)]
    assert items


def test_four_thousand_labels_filter(visit):
    visited = visit("wide")
    names, dead = visited.column("label"), visited.column("dead")
    saturated = visited.column("saturated_cells")
    visited.page.fill("#search", "ITEM-39")
    matching = [name for name in names if "item-39" in name]
    assert f"{len(matching)} of 4,000 labels" in visited.page.text_content("#count")
    visited.page.check('[data-only="dead"]')
    both = {
        name for name, is_dead in zip(names, dead, strict=True) if "item-39" in name and is_dead
    }
    assert both
    assert set(visited.names()) == both
    visited.page.check('[data-only="saturated_cells"]')
    matching = [name for name, n in zip(names, saturated, strict=True) if name in both and n > 0]
    assert f"{len(matching):,} of 4,000 labels" in visited.page.text_content("#count")


def test_the_table_turns_its_pages(visit):
    visited = visit("wide")
    first = visited.names()
    assert visited.page.locator("#previous").is_disabled()
    visited.page.click("#next")
    assert not set(first) & set(visited.names())
    assert visited.page.text_content("#page") == "Page 2 of 80"
    visited.page.click("#previous")
    assert visited.names() == first


def test_hostile_names_show_as_text_and_open_no_dialog(visit):
    visited = visit("wide")
    for name in (HOSTILE[0], HOSTILE[1]):
        visited.page.fill("#search", name)
        assert visited.names() == [name]
    visited.page.fill("#search", "gnp.exe")
    assert visited.names() == ["\\u202egnp.exe\\u2066 right to left"]
    assert visited.page.locator("img").count() == 0
    visited.page.locator('[data-i="0"]').dispatch_event("pointerover")
    assert visited.page.text_content("#tip").startswith(HOSTILE[0])
    assert visited.dialogs == []
    assert visited.troubles == []


def test_a_tooltip_names_the_label_of_a_dot(visit):
    visited = visit("pretty")
    dot = visited.page.locator(".speck").first
    name = visited.column("label")[int(dot.get_attribute("data-i"))]
    assert not visited.page.locator("#tip").is_visible()
    dot.dispatch_event("pointerover")
    assert visited.page.locator("#tip").is_visible()
    assert visited.page.text_content("#tip").split("\n")[0] == name
    visited.page.locator("h1").dispatch_event("pointerover")
    assert not visited.page.locator("#tip").is_visible()


def test_the_download_holds_every_label_with_its_own_name(visit):
    visited = visit("wide")
    with visited.page.expect_download() as waiting:
        visited.page.click("#download")
    told = waiting.value.path().read_bytes().decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(told, newline="")))
    assert len(rows) == N_LABELS
    names = {row["label"] for row in rows}
    assert set(HOSTILE) - names == {HOSTILE[5]}  # a formula to a spreadsheet
    assert f"'{HOSTILE[5]}" in names
    weights = dict(zip(visited.column("label"), visited.column("weight"), strict=True))
    assert all(
        float(row["weight"]) == weights[row["label"]]
        for row in rows
        if row["label"].startswith("item-")
    )


def test_the_download_keeps_to_the_filter(visit):
    visited = visit("wide")
    visited.page.check('[data-only="dead"]')
    with visited.page.expect_download() as waiting:
        visited.page.click("#download")
    told = waiting.value.path().read_bytes().decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(told, newline="")))
    assert len(rows) == sum(visited.column("dead"))
    assert {row["dead"] for row in rows} == {"true"}


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [
        ("pretty", "light", "desktop"),
        ("pretty", "dark", "desktop"),
        ("pretty", "light", "phone"),
        ("bare", "dark", "phone"),
        ("wide", "light", "phone"),
    ],
)
def test_axe_finds_nothing_serious(visit, axe, name, scheme, width):
    visited = visit(name, scheme=scheme, width=width)
    visited.page.evaluate(
        "for (const part of document.querySelectorAll('details')) part.open = true"
    )
    visited.page.evaluate(axe)
    found = visited.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [
        (violation["id"], [node["html"][:200] for node in violation["nodes"][:3]])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
    assert grave == []


@pytest.mark.parametrize("name", ["bare", "pretty", "wide"])
def test_a_phone_never_scrolls_sideways(visit, name):
    visited = visit(name, width="phone")
    visited.page.evaluate(
        "for (const part of document.querySelectorAll('details')) part.open = true"
    )
    wide = visited.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= visited.page.evaluate("document.documentElement.clientWidth") == 360


def test_print_hides_the_controls_and_opens_the_details(visit):
    visited = visit("pretty")
    visited.page.emulate_media(media="print")
    for selector in (".controls", "nav", "#theme", ".skip"):
        for part in visited.page.locator(selector).all():
            assert not part.is_visible()
    assert visited.page.locator("#label-table").is_visible()
    assert visited.page.locator("h1").is_visible()
    visited.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert visited.page.locator("details:not([open])").count() == 0
    visited.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert visited.page.locator("details[open]").count() == 0


def test_the_keyboard_alone_sorts(visit):
    visited = visit("wide")
    visited.page.focus("#search")
    reached = None
    for _ in range(15):
        visited.page.keyboard.press("Tab")
        reached = visited.page.evaluate("document.activeElement.parentElement.dataset.key")
        if reached == "prior":
            break
    assert reached == "prior"
    outline = visited.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    visited.page.keyboard.press("Enter")
    names, prior = visited.column("label"), visited.column("prior")
    assert visited.names() == [names[at] for at in order_by(prior, up=False)[:50]]
    assert visited.page.evaluate("document.activeElement.parentElement.dataset.key") == "prior"


def test_the_skip_link_is_the_first_stop_and_leads_to_the_verdict(visit):
    visited = visit("pretty")
    visited.page.keyboard.press("Tab")
    assert visited.page.evaluate("document.activeElement.className") == "skip"
    visited.page.keyboard.press("Enter")
    assert visited.page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_the_theme_button_names_the_colours_that_a_press_gives(visit, scheme, other):
    visited = visit("pretty", scheme=scheme)
    paint = "getComputedStyle(document.body).backgroundColor"
    before = visited.page.evaluate(paint)
    assert visited.page.inner_text("#theme").lower() == other
    visited.page.click("#theme")
    assert visited.page.evaluate(paint) != before
    assert visited.page.inner_text("#theme").lower() == scheme
    visited.page.click("#theme")
    assert visited.page.evaluate(paint) == before


def test_the_theme_button_follows_the_system(visit):
    visited = visit("pretty", scheme="light")
    visited.page.emulate_media(color_scheme="dark")
    # The browser tells the page of a changed system at its next frame, not at once.
    visited.page.locator("#theme", has_text="Light").wait_for(timeout=10_000)


@pytest.mark.parametrize("width", ["desktop", "phone"])
@pytest.mark.parametrize("name", ["bare", "pretty", "wide"])
def test_facts_stand_in_full_lines_and_no_value_wraps(visit, name, width):
    visited = visit(name, width=width)
    tops = visited.page.eval_on_selector_all(
        ".facts > div", "all => all.map((each) => each.getBoundingClientRect().top)"
    )
    assert len({tops.count(top) for top in tops}) == 1
    heights = visited.page.eval_on_selector_all(
        ".facts dd", "all => all.map((each) => each.getBoundingClientRect().height)"
    )
    assert max(heights) < 1.5 * min(heights)


def test_without_scripts_the_page_still_tells_everything_but_the_table(address, browser):
    page = browser.new_page()
    try:
        session = browser.new_cdp_session(page)
        session.send("Emulation.setScriptExecutionDisabled", {"value": True})
        page.goto(address("pretty"))
        content = page.locator("#labels").inner_text()
        assert "This table needs scripts." in content
        assert not page.locator("#theme").is_visible()
        assert page.locator("h1").is_visible()
    finally:
        page.close()
