"""What every result offers: `to_dict`, `to_frame` where a table fits, a table in a notebook."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oddslip.core.types import ScoresLike
from oddslip.errors import MissingDependency


def plain(value: Any) -> Any:
    """Built-in numbers, lists and dicts in place of NumPy's, so that JSON can hold them."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None  # JSON has no NaN
    return value


def as_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas frame of these columns; without pandas an error, never another type."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependency(
            "to_frame() needs pandas. Run: pip install pandas, or use to_dict()."
        ) from error
    return pd.DataFrame(columns)


def label_frame(columns: Mapping[str, Any], label_names: Sequence[str] | None) -> Any:
    """A pandas frame with one line per label, named in the first column, or else numbered."""
    n_labels = len(next(iter(columns.values())))
    names = np.arange(n_labels) if label_names is None else np.array(label_names)
    return as_frame({"label": names, **columns})


def html_text(text: str) -> str:
    """Text as markup: everything escaped, and what stands between two backticks as code.

    Examples
    --------
    >>> html_text("Run `oddslip fit` on <rows>.")
    'Run <code>oddslip fit</code> on &lt;rows&gt;.'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def html_findings(findings: Iterable[Any]) -> str:
    """Findings as a list for notebooks; empty without any."""
    items = "".join(
        f"<li><b>{each.code} {each.severity}</b>: {html_text(each.sentence)} "
        f"<i>{html_text(each.advice)}</i></li>"
        for each in findings
    )
    return items and f"<ul>{items}</ul>"


def name_ranking(ranking: Any, label_names: Sequence[str] | None, scores: ScoresLike = None) -> Any:
    """Names of ranked labels, as text where they have no names; None where a slot is empty.

    Parameters
    ----------
    ranking : ndarray of int
        Label indices, best first; -1 in an empty slot.
    label_names : sequence of str, optional
    scores : optional
        What was ranked. For a pandas frame the answer is one too: see `frame_like`.

    Examples
    --------
    >>> name_ranking(np.array([[1, 0], [0, -1]]), ["a", "b"]).tolist()
    [['b', 'a'], ['a', None]]
    """
    n_labels = int(ranking.max(initial=-1)) + 1
    names = label_names or [str(label) for label in range(n_labels)]
    return frame_like(scores, np.array([*names, None], object)[ranking], "label")


def frame_like(scores: ScoresLike, slots: Any, name: str) -> Any:
    """One column per slot, such as label_1, with the index of a pandas frame; else the array."""
    if not (hasattr(scores, "iloc") and hasattr(scores, "columns")):
        return slots
    columns = [f"{name}_{slot + 1}" for slot in range(slots.shape[1])]
    return type(scores)(slots, index=scores.index, columns=columns, dtype=slots.dtype)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A small table for notebooks. Every cell is escaped: label names are hostile text."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{cells('th', header)}</tr></thead><tbody>{body}</tbody></table>"
    )
