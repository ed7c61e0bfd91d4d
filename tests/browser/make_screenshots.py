"""Make the pictures of docs/report.md: python tests/browser/make_screenshots.py"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from browsing import open_browser
from pages_shown import pretty_diagnosis

from oddslip.reports.html.page import write_page

DOCS = Path(__file__).parents[2] / "docs"
SHOTS = {
    "report-desktop": ((1280, 1700), "light"),
    "report-phone": ((390, 1700), "light"),
    "report-dark": ((1280, 1700), "dark"),
}
COMMAND = (
    "oddslip diagnose scores.npy labels.npz -k 7 --weights w.npy --unweighted scores0.npy "
    "--html report.html"
)


def main(folder: Path) -> None:
    """Write the page once and photograph it."""
    with tempfile.TemporaryDirectory() as temporary:
        page_path = Path(temporary) / "report.html"
        write_page(pretty_diagnosis(), page_path, provenance={"command": COMMAND})
        for name, ((width, height), scheme) in SHOTS.items():
            size = {"width": width, "height": height}
            profile = Path(temporary) / name
            with open_browser(profile, viewport=size, color_scheme=scheme) as browser:
                page = browser.new_page()
                page.goto(page_path.as_uri())
                page.screenshot(path=str(folder / f"{name}.png"))
                if folder != DOCS:
                    page.screenshot(path=str(folder / f"{name}-whole.png"), full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
