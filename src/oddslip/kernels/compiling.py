"""How kernels are compiled: explicit signatures, cached on disk, without the GIL."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event, types

_NOTICE = "oddslip: compiling its kernels, once after an install (well under a minute) ...\n"


class _Notice(event.Listener):  # type: ignore[misc]
    """Says once, on a terminal, that the first run compiles. Cached kernels never get here."""

    told = False

    def on_start(self, event: Any) -> None:
        if not _Notice.told and sys.stderr.isatty():
            sys.stderr.write(_NOTICE)
        _Notice.told = True

    def on_end(self, event: Any) -> None:
        """Nothing to say when a kernel is done."""


event.register("numba:compile", _Notice())


def kernel(*signatures: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile for exactly these signatures, or find them in the cache on disk.

    ``"void(const uint32[:,::1], int64)"``: arrays are C-contiguous; ``const`` ones may be
    read-only, as those of a memory map are.
    """
    compiled: Callable[[Callable[..., Any]], Any] = numba.njit(
        [_signature(text) for text in signatures], nogil=True, cache=True, **options
    )
    return compiled


def _signature(text: str) -> Any:
    returned, arguments = text.removesuffix(")").split("(", 1)
    return _type(returned)(*map(_type, arguments.split(", ")))


def _type(word: str) -> Any:
    parts = re.fullmatch(r"(const )?(\w+)(\[[:,]*::1\])?", word)
    if parts is None:
        raise ValueError(f"cannot read the type {word!r}")
    const, name, axes = parts.groups()
    scalar = getattr(types, name)
    return scalar if axes is None else types.Array(scalar, axes.count(",") + 1, "C", bool(const))


def inlined(function: Callable[..., Any]) -> Any:
    """A piece of a kernel, kept apart for reading and pasted in at compile time."""
    return numba.njit(inline="always", nogil=True)(function)


def called(function: Callable[..., Any]) -> Any:
    """A piece of a kernel that stays a call: compiled by itself, its loops vectorise reliably."""
    return numba.njit(nogil=True)(function)
