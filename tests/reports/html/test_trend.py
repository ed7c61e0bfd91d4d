"""The page of trends: whole, escaped, the same every time."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import oddslip
from oddslip.reports.html.trend import MAX_RUNS, find_series, render_trend, write_trend
from oddslip.serving.check_log import append_check, read_checks

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(1)</script>"
VOID = {"meta", "link", "line", "circle", "rect", "path"}


class Reader(HTMLParser):
    """Which elements there are, and whether each that is opened is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag in VOID and (not self.open or self.open[-1] != tag):
            return
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    # Marks with a title are not void: HTML lets SVG close itself or not.
    reader.feed(re.sub(r"<(rect|circle)([^>]*[^/])>(<title>.*?</title>)</\1>", r"<\1\2/>", page))
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    rng = np.random.default_rng(1)
    scores = rng.random((400, 5))
    labels = rng.random(scores.shape) < scores
    repair = oddslip.Repair(k=2, rule="isotonic-0").fit(scores, labels)
    for day in range(1, 5):
        cells = rng.random((300, 5)) ** (3 if day == 3 else 1)
        truth = None if day % 2 else rng.random(cells.shape) < cells
        result = oddslip.check(repair, cells, truth, n_replicates=50)
        append_check(path, result, when=f"2026-05-0{day}")
    return read_checks(path)


def test_every_number_of_the_log_is_drawn_and_every_run_listed(records):
    page = render_trend(records)
    reader = read(page)
    words = " ".join(reader.text)
    for series in find_series(records):
        assert series.title in words
    assert [len(series.points) for series in find_series(records)][:2] == [2, 2]
    for record in records:
        assert record["when"] in words
    assert "OS501" in words
    marks = [attributes for tag, attributes in reader.tags if tag == "rect"]
    assert [mark["class"] for mark in marks] == ["bar good", "bar good", "bar bad", "bar good"]


def test_the_page_needs_no_network_runs_no_script_and_is_the_same_every_time(records):
    page = render_trend(records)
    assert page == render_trend(records)
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "<script" not in page
    assert " style=" not in page


def test_what_stands_in_a_log_is_text_and_nothing_else(records):
    spoiled = json.loads(json.dumps(records))
    for record in spoiled:
        record["findings"] = [{"code": HOSTILE, "severity": HOSTILE, "sentence": HOSTILE}]
        record["failed"] = [HOSTILE]
        record["passed"] = False
        record["when"] = "2026-05-01"
        record["about"] = {HOSTILE: HOSTILE}
    page = render_trend(spoiled)
    tags = {tag for tag, _ in read(page).tags}
    assert not tags & {"script", "img", "iframe", "object"}
    assert "onerror" in " ".join(read(page).text)


def test_a_long_log_shows_its_end(records):
    page = render_trend(records * 150)
    assert f"{len(records) * 150 - MAX_RUNS} older runs are not shown" in page


def test_one_run_is_enough(records, tmp_path):
    write_trend(records[:1], tmp_path / "trend.html")
    reader = read((tmp_path / "trend.html").read_text())
    assert records[0]["when"] in " ".join(reader.text)
    assert [tag for tag, _ in reader.tags].count("rect") == 1
