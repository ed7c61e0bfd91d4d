"""A browser and three pages for the whole session.

Without Chromium, Playwright or npm these tests are skipped; with ODDSLIP_BROWSER=required their
absence fails.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browsing import CHROMIUM, open_browser
from pages_shown import HOSTILE, bare_diagnosis, pretty_diagnosis, wide_diagnosis

from oddslip.reports.html.page import write_page

HERE = Path(__file__).parent
AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = {"desktop": 1280, "phone": 360}
PROVENANCE = {"command": f"oddslip diagnose {HOSTILE[0]} {HOSTILE[1]}", "versions": {"x": "1.0"}}


def refuse(what):
    if os.environ.get("ODDSLIP_BROWSER") == "required":
        pytest.fail(f"{what} must be installed where ODDSLIP_BROWSER=required.")
    pytest.skip(f"{what} is not installed")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if importlib.util.find_spec("playwright") is None:
        refuse("playwright")
    if CHROMIUM is None:
        refuse("chromium")
    with open_browser(tmp_path_factory.mktemp("profile"), accept_downloads=True) as context:
        yield context


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, installed once even if several workers ask."""
    if shutil.which("npm") is None:
        refuse("npm")
    with (HERE / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not AXE.exists():
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
            if done.returncode:
                refuse(f"axe-core ({done.stderr.strip()[-300:]})")
    return AXE.read_text("utf-8")


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Addresses of the written pages by name; each is diagnosed when first asked for."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    diagnoses = {
        "pretty": lambda: pretty_diagnosis(4000, 50),
        "wide": wide_diagnosis,
        "bare": bare_diagnosis,
    }

    def written(name):
        if name not in made:
            made[name] = folder / f"{name}.html"
            write_page(diagnoses[name](), made[name], provenance=PROVENANCE)
        return made[name].as_uri()

    return written


class Visit:
    """An open page with all that went wrong on it."""

    def __init__(self, page):
        self.page, self.troubles, self.requests, self.dialogs = page, [], [], []
        page.on(
            "console", lambda m: m.type in ("error", "warning") and self.troubles.append(m.text)
        )
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._refuse)

    def _refuse(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def names(self):
        """Labels on the page of the table that is shown, top to bottom."""
        return self.page.locator("#label-table tbody th").all_text_contents()

    def column(self, key):
        """All values of a column as the page's data has them, by label name."""
        return self.page.evaluate(
            "key => JSON.parse(document.getElementById('label-data').textContent).values[key]", key
        )


@pytest.fixture
def visit(browser, address):
    pages = []

    def open_page(name, *, width="desktop", scheme="light"):
        page = browser.new_page()
        pages.append(page)
        page.set_viewport_size({"width": WIDTHS[width], "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        visited = Visit(page)
        page.goto(address(name))
        return visited

    yield open_page
    for page in pages:
        page.close()
