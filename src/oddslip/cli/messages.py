"""Rewrites error messages: Python arguments become command-line options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

_OTHER_NAMES = {"n_replicates": "bootstrap"}  # Python argument: option


def in_options(message: str, options: dict[str, str]) -> str:
    """The message with ``kind="margin"`` as ``--kind margin``, for the options of this command.

    Examples
    --------
    >>> in_options('If scores are log-odds, pass kind="margin".', {"kind": "--kind"})
    'If scores are log-odds, pass --kind margin.'
    >>> in_options('Say so: open_source(scores, kind="margin").', {"kind": "--kind"})
    'Say so: --kind margin.'
    >>> in_options("k must be between 1 and n_labels=14, got k=20.", {"k": "-k"})
    '-k must be between 1 and n_labels=14, got -k 20.'
    >>> in_options("Say which: columns={'row': 'user', 'label': 'item'}.", {"columns": "--columns"})
    'Say which: --columns row=user,label=item.'
    """
    option_of = options | {
        argument: options[option] for argument, option in _OTHER_NAMES.items() if option in options
    }
    if not option_of:
        return message
    names = "|".join(map(re.escape, option_of))
    # Not in a call such as OneVsRest(learner="mlp"), and not part of a longer name or a path.
    value = r"\"([^\"]*)\"|'([^']*)'|(\{[^{}]*\}|[\w+-]+(?:\.\w+)*)"
    assignment = rf"(?<![\w(./-])({names})=(?:{value})"

    def as_option(hit: re.Match[str]) -> str:
        if hit[1] is None:  # a call
            return hit[0]
        return f"{option_of[hit[1]]} {hit[2] or hit[3] or _pairs(hit[4] or '') or repr('')}"

    message = re.sub(rf"open_source\(\w+, ({assignment})\)", r"\1", message)
    message = re.sub(rf"{assignment}|\w\([^()]*\)", as_option, message)
    return re.sub(rf"^({names}) (must|are needed|is needed)\b", _replace_name(option_of), message)


def _pairs(value: str) -> str:
    """A dict in the form of an option, row=user_id,label=item_id; other values unchanged."""
    if not value.startswith("{"):
        return value
    text = re.sub("['\"]", "", value[1:-1])
    return shlex.quote(text.replace(": ", "=").replace(", ", ","))


def _replace_name(option_of: dict[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda hit: f"{option_of[hit[1]]} {hit[2]}"


def options_of(command: Any, typed: list[str]) -> dict[str, str]:
    """Options of the typed command, by argument name."""
    for word in typed:
        inner = getattr(command, "commands", {}).get(word)
        if inner is not None:
            command = inner
    return {
        parameter.name: _shortest(parameter.opts)
        for parameter in command.params
        if parameter.param_type_name == "option" and not getattr(parameter, "is_flag", False)
    }


def _shortest(opts: list[str]) -> str:
    """The clearest spelling: -k, but --output rather than -o."""
    long = max(opts, key=len)
    return min(opts, key=len) if len(long) == 3 else long
