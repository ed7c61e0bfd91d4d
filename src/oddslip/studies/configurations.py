"""What studies ask of the names they are given, and how a configuration becomes a folder's name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Any

from oddslip.errors import InvalidInput
from oddslip.results import plain


def digest_of(configuration: dict[str, Any]) -> str:
    """Sixteen digits that change with anything in the configuration.

    Examples
    --------
    >>> digest_of({"seed": 42, "weight": "none"}) == digest_of({"weight": "none", "seed": 42})
    True
    """
    text = json.dumps(plain(configuration), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_names(what: str, names: Sequence[Any], allowed: Collection[Any]) -> None:
    """Refuse a name that a study does not know."""
    for name in names:
        if name not in allowed:
            told = ", ".join(str(each) for each in allowed)
            raise InvalidInput(f"{what} must be among {told}, got {name!r}.")
