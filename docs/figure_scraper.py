"""Pictures and order of the gallery.

A file of its own, because Sphinx keeps its settings between builds and can only do so with what it
can import by name.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

# As a newcomer would meet them: look, mend, foresee; then one's own models, rows and files.
_ORDER = (
    "diagnose_a_weighted_ranker.py",
    "repair_scores.py",
    "plan_before_training.py",
    "compare_two_rankings.py",
    "read_a_lightgbm_loop.py",
    "train_a_matched_pair.py",
    "bring_your_own_calibration_rows.py",
    "rank_a_file_larger_than_memory.py",
)

_SAVED: dict[str, set[int]] = {}


def scrape_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that an example holds by name, each once; text that shows them.

    The library draws without pyplot, so the scraper that asks pyplot would find nothing.
    """
    saved = _SAVED.setdefault(block_vars["src_file"], set())
    paths = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and id(value) not in saved:
            saved.add(id(value))
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=200, facecolor="white")
            paths.append(path)
    return str(figure_rst(paths, gallery_conf["src_dir"]))


def order_by_intent(filename: str) -> tuple[int, str]:
    """Where an example stands; one that is not listed comes last."""
    return (_ORDER.index(filename) if filename in _ORDER else len(_ORDER), filename)
