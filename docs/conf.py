"""How the documentation site is built: ``make docs`` writes it to build/docs, without network.

The Markdown pages of this folder are also read as they are, so nothing here may ask them to change:
what only the site needs (toctrees, the reference, the gallery) lives in pages of its own.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import oddslip

sys.path.insert(0, str(Path(__file__).parent))  # where figure_scraper.py is

project = "oddslip"
author = "oddslip developers"
project_copyright = "oddslip developers"
version = release = oddslip.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["examples/*.md5", "examples/*.json", "examples/*.py"]
templates_path = ["_templates"]
highlight_options = {"python": {"stripnl": True}}  # the blank line that ends a doctest
default_role = "py:obj"  # `oddslip.rank` in a docstring is a link wherever it can be one

myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters say it in words
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # the class template lists members
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"oddslip {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "oddslip"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "default",
}


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"/[a-z_]+\.py$",
    "image_scrapers": ("figure_scraper.scrape_figures",),
    "reset_modules": (),
    "capture_repr": (),  # only what an example prints
    "within_subsection_order": "figure_scraper.order_by_intent",
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 10_000,
    "thumbnail_size": (480, 320),
    "plot_gallery": "True",
    "abort_on_example_error": True,
}


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds by itself, and fields of a dataclass or a NamedTuple.

    Fields stand in the docstring's Attributes already.
    """
    if name in {"get_metadata_routing", "set_output"} or name.endswith("_request"):
        return True
    if inspect.ismemberdescriptor(member) or type(member).__name__ == "_tuplegetter":
        return True
    return None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", _skip)
