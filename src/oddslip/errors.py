"""Every error oddslip raises on purpose.

::

    OddslipError                 anything we refuse, with one line that says why
    ├── InvalidInput             what came in breaks a rule (also a ValueError)
    ├── MissingDependency        an optional package is not installed (also an ImportError)
    └── UnreadableFile           a file is missing, cut short, foreign or altered (also an OSError)

The command line turns each of them into that one line and exit code 2.
"""

from __future__ import annotations


class OddslipError(Exception):
    """Base of all errors raised on purpose."""


class InvalidInput(OddslipError, ValueError):  # noqa: N818
    """What came in breaks a rule. The message says what must hold, what came, what to do."""


class MissingDependency(OddslipError, ImportError):  # noqa: N818
    """An optional package is needed and not installed."""


class UnreadableFile(OddslipError, OSError):  # noqa: N818
    """A file is missing, cut short, of another kind, or altered."""


def first_line(error: BaseException) -> str:
    """What an error says, in one short line without its full stop.

    Examples
    --------
    >>> first_line(ValueError("no such thing."))
    'no such thing'
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")[:160]
