"""Messages name arguments of Python; on the command line they name the options that were meant."""

from __future__ import annotations

import re
import shlex
from typing import Any

_OTHER_NAMES = {"n_replicates": "bootstrap"}  # in Python, and here


def in_options(message: str, options: dict[str, str]) -> str:
    """The message with ``kind="margin"`` as ``--kind margin``, for options of this command alone.

    Examples
    --------
    >>> in_options('If scores are log-odds, pass kind="margin".', {"kind": "--kind"})
    'If scores are log-odds, pass --kind margin.'
    >>> in_options("k must be between 1 and n_labels=14, got k=20.", {"k": "-k"})
    '-k must be between 1 and n_labels=14, got -k 20.'
    >>> in_options("Say which: columns={'row': 'user', 'label': 'item'}.", {"columns": "--columns"})
    'Say which: --columns row=user,label=item.'
    """
    known = options | {
        ours: options[theirs] for ours, theirs in _OTHER_NAMES.items() if theirs in options
    }
    if not known:
        return message
    names = "|".join(map(re.escape, known))
    # Not in a call such as OneVsRest(learner="mlp"), and not part of a longer name or a path.
    value = r"\"([^\"]*)\"|'([^']*)'|(\{[^{}]*\}|[\w+-]+(?:\.\w+)*)"
    given = rf"(?<![\w(./-])({names})=(?:{value})"

    def as_option(hit: re.Match[str]) -> str:
        if hit[1] is None:  # a call
            return hit[0]
        return f"{known[hit[1]]} {hit[2] or hit[3] or _pairs(hit[4] or '') or repr('')}"

    message = re.sub(rf"{given}|\w\([^()]*\)", as_option, message)
    return re.sub(rf"^({names}) (must|are needed|is needed)\b", _named(known), message)


def _pairs(value: str) -> str:
    """A dict as an option takes it: row=user_id,label=item_id. Anything else stays."""
    if not value.startswith("{"):
        return value
    text = re.sub("['\"]", "", value[1:-1])
    return shlex.quote(text.replace(": ", "=").replace(", ", ","))


def _named(known: dict[str, str]) -> Any:
    return lambda hit: f"{known[hit[1]]} {hit[2]}"


def options_of(command: Any, typed: list[str]) -> dict[str, str]:
    """Options of the command that was typed, by the name of the argument that each becomes."""
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
    """The one to name: -k, but --output rather than -o, which says nothing."""
    long = max(opts, key=len)
    return min(opts, key=len) if len(long) == 3 else long
