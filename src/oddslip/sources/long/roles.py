"""Roles of the columns of a long table: row, label, score and truth of a cell.

A table is long if its columns have usual names for these four, each role fits one column and no
column remains. Names are compared without case, underscores, hyphens and spaces. Labels are names
or integers, so a column of floats or bools is not one: a wide table whose labels are called "item"
and "score" stays wide.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oddslip.errors import InvalidInput

NAMES = {
    role: names.split()
    for role, names in {
        "row": "row rowid user userid uid customer customerid client clientid member memberid "
        "account accountid visitor visitorid session sessionid query queryid qid",
        "label": "label labelid item itemid iid product productid sku article articleid movie "
        "movieid doc docid document documentid candidate candidateid",
        "score": "score prediction predicted pred yscore ypred yprob yproba probability proba prob",
        "true": "true truth istrue ytrue y label target relevance relevant isrelevant click "
        "clicked isclick purchased bought ordered converted positive actual outcome groundtruth",
    }.items()
}
ROLES = tuple(NAMES)
# Column that pandas writes for its index: it numbers the lines.
LINE_NUMBERS = ("__index_level_0__",)
FORM = (
    "Or give a line per cell, with the columns row, label, score and perhaps true (or user_id, "
    'item_id, score and label); columns={"row": ...} says which they are.'
)
PAIRS_FORM = (
    "Or give a line per true label, with the columns row_id and label (or user_id and item_id); "
    'columns={"row": ...} says which they are.'
)


def find_roles(
    names: Sequence[str],
    measures: Collection[str],
    *,
    columns: Mapping[str, str] | None = None,
    truths: bool = False,
    label_names: Collection[str] | None = None,
    called: Any = "the table",
) -> dict[str, str] | None:
    """The column of each role; None if the table is not long.

    Rows of truth are "row_id", which cannot be row numbers, unless their column is called row.

    Parameters
    ----------
    names : sequence of str
        Columns of the table.
    measures : collection of str
        Those of floats or bools, which cannot be labels.
    columns : mapping from role to column, optional
        Columns that the user names. Other roles are found by name, and columns without a role are
        ignored. The truth may be in another table, which need not have all of these columns.
    truths : bool
        Whether to read the truth of the table and ignore its scores.
    label_names : collection of str, optional
        Names of the labels. A column named like one of them holds the cells of that label, so the
        table is wide.
    called : str or path
        Name of the table in errors.

    Examples
    --------
    >>> find_roles(["user_id", "item_id", "score", "label"], ["score"])
    {'row': 'user_id', 'label': 'item_id', 'score': 'score', 'true': 'label'}
    >>> find_roles(["user", "item", "score"], ["item", "score"]) is None
    True
    """
    names = [name for name in names if name not in LINE_NUMBERS]
    named_roles = {} if columns is None else _check_columns(columns, names, truths, called)
    fits = {role: _fits(role, names, named_roles, measures) for role in ROLES}
    others = [name for name in fits["label"] if _plain(name) != "label"]
    if others:  # then a column "label" is the truth
        fits["label"] = others
    fits["true"] = [name for name in fits["true"] if name not in fits["label"]]
    needed_roles = ("row", "label") if truths else ("row", "label", "score")
    lacking = next((role for role in needed_roles if not fits[role]), None)
    if lacking is not None:
        if named_roles and not truths:
            raise InvalidInput(
                f"columns must name the {lacking} of {called}, whose columns are "
                f"{', '.join(names):.200}."
            )
        return None
    if label_names is not None and not named_roles and fits["label"][0] in label_names:
        return None
    roles = {role: fitting[0] for role, fitting in fits.items() if fitting}
    twice = [role for role, fitting in fits.items() if len(fitting) > 1]
    rest = [name for name in names if name not in roles.values()]
    if twice or (rest and not named_roles):
        if truths and not named_roles:
            return None
        problem = (
            f"{fits[twice[0]][0]!r:.60} and {fits[twice[0]][1]!r:.60} for the {twice[0]}"
            if twice
            else f"also {rest[0]!r:.60}"
        )
        raise InvalidInput(
            f"{called} must have one column for each role of a long table (row, label, score and "
            f"perhaps true) and no other, got {problem}. Drop it, or say which: "
            f"columns={roles!r:.200}."
        )
    if not truths:
        return roles
    if roles.pop("score", None) is not None and "true" not in roles:
        return None
    if "row" not in named_roles and _plain(roles["row"]) != "row":
        return {"row_id": roles.pop("row"), **roles}
    return roles


def looks_long(names: Sequence[str], measures: Collection[str]) -> bool:
    """Whether some column can be the row of a cell and another its label."""
    return all(_fits(role, names, {}, measures) for role in ("row", "label"))


def _fits(
    role: str, names: Sequence[str], named_roles: Mapping[str, str], measures: Collection[str]
) -> list[str]:
    """Columns that can have a role."""
    if role in named_roles:
        return [named_roles[role]]
    return [
        name
        for name in names
        if _plain(name) in NAMES[role]
        and name not in named_roles.values()
        and not (role == "label" and name in measures)
    ]


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _check_columns(columns: Any, names: Sequence[str], truths: bool, called: Any) -> dict[str, str]:
    """The columns that the user names, as far as the table has them."""
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidInput(
            'columns must be {"row": ..., "label": ..., "score": ..., "true": ...} or some of '
            f"these, got {columns!r:.60}."
        )
    for role, name in columns.items():
        if role not in ROLES or not isinstance(name, str):
            raise InvalidInput(
                f"columns must be a column for each of {', '.join(ROLES)}, got {role!r:.60}: "
                f"{name!r:.60}."
            )
        if name not in names and not truths and role != "true":
            raise InvalidInput(
                f"columns must name columns of {called}, got {name!r:.60} for the {role}, but they "
                f"are {', '.join(names):.200}."
            )
    if len(set(columns.values())) < len(columns):
        raise InvalidInput(f"columns must name a column once, got {dict(columns)!r:.120}.")
    return {role: name for role, name in columns.items() if name in names}


__all__ = ["FORM", "PAIRS_FORM", "ROLES", "find_roles", "looks_long"]
