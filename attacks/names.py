"""Hostile label names and file names: they steer no terminal, no page, no spreadsheet, no path.

A try takes one name through everything that shows or stores it: terminal and JSON of the commands,
the HTML report and its CSV download, saved repairs and models, Parquet, and as an output's name.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import io
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from attacks.child import Attempt, refused, try_in_child
from attacks.outcome import Outcome

TITLE = "Hostile names in terminal, HTML, CSV, JSON, saved files, Parquet and paths"
SLICE = 8
NAMES = (
    # of a page
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<!-- ",
    "-->",
    "]]>",
    "<![CDATA[",
    "&lt;b&gt;",
    "&#60;script&#62;",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "${7*7}",
    "<style>*{}",
    "</title>",
    "<base href=//evil>",
    "<iframe srcdoc=x>",
    "\u2028alert(1)",
    "\u2029",
    "`${1}`",
    "\\u003cscript\\u003e",
    # of a terminal
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "\x90dcs\x9c",
    "\x07",
    "\x08\x08\x08",
    "\x7f",
    "a\rb",
    "a\nb",
    "a\x0bb",
    "a\x0cb",
    "a\tb",
    "a\x85b",
    "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "[bold]rich[/bold]",
    "[link=http://evil]x[/link]",
    "%s%n",
    "\0",
    "a\0b",
    # of the eye
    "\u202egnp.exe",
    "\u2066b\u2069",
    "a\u200bb",
    "a\u200db",
    "\ufeffa",
    "\u00ada",
    "\u0430bc",
    "e\u0301",
    "\u1160",
    "\U000e0041",
    "\U0001f600",
    "\U0001f468\u200d\U0001f469",
    "\u0600\u06dd",
    "Z\u0335\u0321\u0322algo",
    "\u3164",
    # of a spreadsheet
    "=1+1",
    " =1+1",
    "\n=1+1",
    "\t=1",
    "\r=1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff20x",
    "=cmd|'/c calc'!A1",
    "\u00a0=1",
    '"=1',
    "a,b",
    "a;b",
    'a"b',
    "'=1",
    # of a path, a number, a text
    "../../etc/passwd",
    "/dev/full",
    "C:\\con",
    "con",
    ".",
    "..",
    "a/b",
    "~",
    "-o",
    "--help",
    "*",
    "$(touch x)",
    "`id`",
    "nan",
    "1e999",
    "None",
    "true",
    "",
    " ",
    "  a  ",
    "x" * 300,
    "\u00fc" * 200,
    "\ud800",
    "a\udfffb",
    "\udcff",
)
FULL = 70  # of them, drawn by the seed


def attack(count: int, seed: int) -> Outcome:
    """No name twice."""
    return try_in_child("attacks.names", min(count, len(NAMES)), seed, seconds=120.0)


def prepare(seed: int, folder: Path) -> Attempt:
    """Each name stands among two plain ones."""
    world = _World(folder)
    order = sorted(range(len(NAMES)), key=lambda at: (at * 0.6180339887 + seed * 0.1) % 1)

    def attempt(number: int) -> str:
        name = NAMES[order[number]]
        try:
            for check in (world.in_files, world.in_page, world.in_terminal, world.as_path):
                # Half of a surrogate pair is no text, and may be refused as a label's name.
                if refused(lambda check=check: check(name)) and is_text(name):
                    raise AssertionError("a name that is text must be taken")
        except Exception as error:
            error.args = (f"{name!r}: {error}",)
            raise
        return "names"

    return attempt


def is_text(name: str) -> bool:
    """Whether UTF-8 can hold it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class _World:
    """Scores and labels of three labels, of which the first has the hostile name."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        rng = np.random.default_rng(0)
        self.scores = rng.uniform(0.05, 0.95, (60, 3))
        self.labels = rng.random((60, 3)) < self.scores
        self.folder = folder / "names"
        self.folder.mkdir(exist_ok=True)
        os.chdir(self.folder)
        np.save("scores.npy", self.scores)
        np.save("labels.npy", self.labels)
        self.plain = _Page(self._page("plain"))

    def in_files(self, name: str) -> None:
        """Saved repairs and models give the name back; Parquet does, or refuses half a pair."""
        import oddslip
        from oddslip.writers import write_ranking, write_scores

        names = [name, "b", "c"]
        oddslip.calibrators.Platt().fit(self.scores, self.labels, label_names=names).save("r")
        if oddslip.load_repair("r").label_names != tuple(names):
            raise AssertionError("a saved repair must give its names back")
        model = oddslip.OneVsRest("logistic", threads=1)
        model.fit(self.scores, self.labels, label_names=names).save("m")
        if oddslip.OneVsRest.load("m").label_names_ != tuple(names):
            raise AssertionError("a saved model must give its names back")
        told = {"n_rows": 60, "label_names": names}
        wrong = refused(
            lambda: write_scores("s.parquet", [(0, self.scores)], n_labels=3, dtype="f8", **told)
        )
        ranking = oddslip.rank(self.scores, k=2)
        wrong_too = refused(lambda: write_ranking("t.parquet", [(0, ranking)], k=2, **told))
        if (wrong, wrong_too) != (not is_text(name), not is_text(name)):
            raise AssertionError("Parquet must hold every name that is text, and refuse others")
        if not wrong and oddslip.open_source("s.parquet").label_names != tuple(names):
            raise AssertionError("Parquet must give its names back")

    def _page(self, name: str) -> str:
        import oddslip
        from oddslip.reports.html.page import render_page

        names = [name, "b", "c"]
        found = oddslip.diagnose(
            self.scores, self.labels, k=2, n_replicates=20, label_names=names, weights="balanced"
        )
        found._repr_html_()
        json.dumps(found.to_dict(), allow_nan=False)
        return str(render_page(found))

    def in_page(self, name: str) -> None:
        """The page has the elements it would have with a plain name, and guards its download."""
        page = self._page(name)
        page.encode()
        shown = _Page(page)
        if shown.elements != self.plain.elements:
            raise AssertionError("a name must not add elements or attributes to a page")
        raw = {c for c in page if not c.isprintable() and c not in "\n\t"}
        if raw:
            raise AssertionError(f"a page must hold no controls, got {sorted(raw)!r}")
        guarded = re.match(_formula(), name) is not None
        start = name.lstrip("".join(map(chr, range(33))) + "\u00a0\u3000\ufeff\x85\x7f")[:1]
        if start in tuple("=+-@\uff1d\uff0b\uff0d\uff20") and not guarded:
            raise AssertionError("a cell that a spreadsheet would run must be guarded")

    def in_terminal(self, name: str) -> None:
        """Whatever is printed is printable, and JSON gives the name back."""
        if not is_text(name) or "\0" in name:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = [name, "b", "c"]
        columns = [pa.array(self.scores[:, at]) for at in range(3)]
        pq.write_table(pa.Table.from_arrays(columns, names=names), "named.parquet")
        commands = (
            ["rank", "named.parquet", "-k", "2"],
            ["rank", "named.parquet", "-k", "2", "--json"],
            ["evaluate", "named.parquet", "labels.npy", "-k", "2", "--bootstrap", "0"],
            ["diagnose", "named.parquet", "labels.npy", "-k", "2", "--bootstrap", "0", "--verbose"],
            ["diagnose", "named.parquet", "labels.npy", "-k", "2", "--bootstrap", "0", "--json"],
            [
                "plan",
                "labels.npy",
                "--unweighted",
                "named.parquet",
                "-k",
                "2",
                "--rounds",
                "5",
                "--learning-rate",
                "0.1",
                "--bootstrap",
                "0",
                "--verbose",
            ],
            ["fit", "named.parquet", "labels.npy", "--calibrator", "platt", "-o", "r", "--json"],
        )
        for arguments in commands:
            code, printed = main(arguments)
            if code != 0:
                raise AssertionError(f"{arguments[0]} must take the name, got {printed[-200:]!r}")
            if "--json" in arguments and arguments[0] != "rank":
                _find(json.loads(printed), name)
            elif "--json" in arguments:
                _find([json.loads(line) for line in printed.splitlines()], name)

    def as_path(self, name: str) -> None:
        """An output of that name is written and named printably, or refused in one line."""
        before = set(os.listdir(self.folder.parent))
        arguments = ["fit", "scores.npy", "labels.npy", "--calibrator", "platt", "--output"]
        code, printed = main([*arguments, name])
        if code == 2 and printed.count("\n") != 1:
            raise AssertionError(f"a refusal must be one line, got {printed!r}")
        if code not in (0, 2):
            raise AssertionError(f"a path must be written or refused, got {code}: {printed!r}")
        if set(os.listdir(self.folder.parent)) != before:
            raise AssertionError("nothing may be written outside of the folder")
        with contextlib.suppress(OSError, ValueError):
            # What was written just now, and nothing else: a name may be that of a device.
            if code == 0 and name not in ("scores.npy", "labels.npy") and "/" not in name:
                os.unlink(name)
        code, printed = main(["rank", name, "-k", "2"])
        if code != 2 and name not in ("--help",):
            raise AssertionError(f"a missing file must be refused, got {code}: {printed!r}")


class _Page(HTMLParser):
    """Elements of a page, in order, with the names of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Any] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.elements.append(("declaration", decl))


def _formula() -> str:
    """The pattern by which the report's download guards a cell."""
    page = importlib.resources.files("oddslip.reports.html") / "templates" / "page.js"
    (formula,) = re.findall(r"const formula = /(.+)/;", page.read_text(encoding="utf-8"))
    return str(formula)


def _find(value: Any, name: str) -> None:
    found = [value]
    for each in found:
        if isinstance(each, dict):
            found += each.values()
        elif isinstance(each, list):
            found += each
    if name not in [each for each in found if isinstance(each, str)]:
        raise AssertionError("JSON must hold the name as it is")


def main(arguments: list[str]) -> tuple[int, str]:
    """Exit code of a command and all it prints, which must be printable."""
    from oddslip.cli.app import main as run

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = run(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
    printed = out.getvalue()
    raw = {c for c in printed if not c.isprintable() and c != "\n"}
    if raw:
        raise AssertionError(f"{arguments[0]} printed {sorted(raw)!r}")
    return code, printed
