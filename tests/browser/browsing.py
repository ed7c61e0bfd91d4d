"""Debian's Chromium, driven without a network and with a fresh profile."""

import shutil
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


@contextmanager
def open_browser(profile: Path, **how):
    """A browser context over an empty user-data folder; `how` goes to Playwright as it is."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile), executable_path=CHROMIUM, args=FLAGS, headless=True, **how
        )
        try:
            yield context
        finally:
            context.close()
