"""The study of dropping candidates early: what a cell holds, and what its page lists."""

import numpy as np

from experiments.row_aware.panels import Panel, Scored
from experiments.screening import measure, write_page
from oddslip.datasets.synthetic import synthetic_pair


def small_panel():
    pair = synthetic_pair(1200, 12, noise=0.4, weights="sqrt", seed=3)
    half = np.arange(pair.n_rows) < 600
    scored = Scored(
        3,
        *(pair.weighted[half], pair.labels[half], pair.weighted[~half], pair.labels[~half]),
        pair.prior,
        pair.weights,
        np.arange(600),
    )
    return Panel("made-up-1", {}, lambda: scored)


def test_only_one_of_both_repairs_drops_candidates():
    timings = {}
    cell = measure(small_panel(), timings)
    assert cell["whole"]["dropped"] == 0 < cell["screened"]["dropped"]
    assert cell["whole"]["candidates"] == cell["screened"]["candidates"]
    assert cell["whole"]["chosen"] == cell["screened"]["chosen"]
    assert cell["whole"]["map"] == cell["screened"]["map"]
    assert set(timings) == {"cpu_screened", "cpu_whole"}


def test_the_page_lists_what_differs():
    def cell(screened, whole):
        repairs = {
            name: {"chosen": chosen, "map": level, "candidates": 10, "dropped": dropped}
            for name, (chosen, level, dropped) in {
                "screened": (screened, 0.5, 5),
                "whole": (whole, 0.75, 0),
            }.items()
        }
        return {"raw": 0.25, "n_rows": 1000, "cpu": [1.0, 2.0], **repairs}

    page = write_page(
        {"flags-mlp-1": cell("raw", "raw"), "flags-mlp-r": cell("raw", "hierarchical")}
    )
    assert "same in 1 of 2 panels" in page
    assert "50% of the candidates are dropped" in page
    assert "2 CPU seconds in place of 4" in page
    assert (
        "| flags-mlp-r | 1,000 | 0.2500 | raw | 0.5000 | hierarchical | 0.7500 | -0.2500 |" in page
    )
    assert "flags-mlp-1" not in page
