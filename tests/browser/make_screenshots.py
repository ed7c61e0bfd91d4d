"""Make the pictures of the demo: python tests/browser/make_screenshots.py

README.md and docs/diagnose.md show the report that `oddslip demo` leaves, docs/index.md the waterfall
of the same diagnosis.
"""

import sys
import tempfile
from contextlib import chdir
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from browsing import open_browser

from oddslip.cli.demo import _run
from oddslip.reports.figures.waterfall import describe_waterfall
from oddslip.reports.numbers import waterfall_of

DOCS = Path(__file__).parents[2] / "docs"
SHOTS = {
    "report-desktop": ((1280, 1700), "light"),
    "report-phone": ((390, 1700), "light"),
    "report-dark": ((1280, 1700), "dark"),
}


def main(folder: Path) -> None:
    """Run the demo once, draw its waterfall and photograph its report."""
    folder = folder.absolute()
    # The page shows the command with its paths, so the folder is that of `make demo`.
    with tempfile.TemporaryDirectory() as temporary, chdir(temporary):
        report = Path("demo-report")
        diagnosis = _run(report, ["oddslip", "demo"]).diagnosis
        # A test compares the description with the demo, so the picture cannot go stale unnoticed.
        metadata = {"Description": describe_waterfall(waterfall_of(diagnosis))}
        diagnosis.plot("waterfall").savefig(folder / "figure-demo.png", metadata=metadata)
        for name, ((width, height), scheme) in SHOTS.items():
            size = {"width": width, "height": height}
            profile = Path(temporary) / name
            with open_browser(profile, viewport=size, color_scheme=scheme) as browser:
                page = browser.new_page()
                page.goto((report / "report.html").absolute().as_uri())
                page.screenshot(path=str(folder / f"{name}.png"))
                if folder != DOCS:
                    page.screenshot(path=str(folder / f"{name}-whole.png"), full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
