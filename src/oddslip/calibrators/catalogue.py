"""The catalogue of named calibrators: how each is built, and what it needs.

It serves `build_calibrator`, ``oddslip fit --calibrator`` and its help, the selection rules and the
repair ladder. Heavy modules are only imported when a calibrator is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.calibrators.base import Calibrator

_PER_LABEL = ("dead", "tau", "prior", "kind")
_ISOTONIC = ("interpolation", "kind")


@dataclass(frozen=True, slots=True)
class Entry:
    """A calibrator by name.

    Parameters
    ----------
    name : str
    what : str
        A short description.
    maker : str
        Its class in `oddslip.calibrators`; empty if only a rule of `oddslip.Repair` fits it.
    takes : tuple of str
        Options that it takes.
    needs : tuple of str
        Options that it requires.
    settles : mapping
        Arguments of the class that the name fixes.
    flexibility : int, optional
        Rank among the calibrators that a rule may choose: of equals the simplest wins.
    fitted : bool
        Whether it learns from calibration rows.
    rung : bool
        Whether it is a rung of the repair ladder.
    """

    name: str
    what: str
    maker: str = ""
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    settles: Mapping[str, Any] = field(default_factory=dict)
    flexibility: int | None = None
    fitted: bool = True
    rung: bool = False


_WEIGHTS = ("weights", "prior", "kind")
_PRIOR = ("prior", "kind")


# In display order.
_ENTRIES = (
    Entry(
        "raw", "the scores as they are", "Raw", ("kind",), flexibility=0, fitted=False, rung=True
    ),
    Entry(
        "inversion",
        "log-odds less ln w",
        "Inversion",
        _WEIGHTS,
        needs=("weights",),
        flexibility=10,
        fitted=False,
        rung=True,
    ),
    Entry(
        "label_free",
        "log-odds less the shift that unlabelled scores and the prior show",
        "LabelFree",
        _PRIOR,
        flexibility=20,
        rung=True,
    ),
    Entry(
        "offset",
        "a constant per label on the log-odds",
        "Offset",
        _PER_LABEL,
        flexibility=50,
        rung=True,
    ),
    Entry(
        "isotonic",
        "per-label isotonic, dead labels at their prior",
        "Isotonic",
        (*_PER_LABEL, "interpolation"),
        flexibility=110,
        rung=True,
    ),
    Entry(
        "pooled",
        "one isotonic map for all labels",
        "PooledIsotonic",
        _ISOTONIC,
        flexibility=30,
        rung=True,
    ),
    Entry(
        "platt",
        "a slope and a constant per label on the log-odds",
        "Platt",
        _PER_LABEL,
        flexibility=70,
        rung=True,
    ),
    Entry("beta", "beta calibration per label", "Beta", _PER_LABEL, flexibility=80, rung=True),
    Entry(
        "temperature",
        "a slope per label on the log-odds",
        "Temperature",
        _PER_LABEL,
        flexibility=40,
    ),
    Entry(
        "shared-temperature",
        "one slope for all labels on the log-odds",
        "Temperature",
        _PER_LABEL,
        settles={"shared": True},
    ),
    Entry(
        "hierarchical",
        "a slope and a constant per label, shrunk towards what all share",
        "Hierarchical",
        _WEIGHTS,
        flexibility=60,
        rung=True,
    ),
    Entry(
        "row_aware",
        "hierarchical, and a stage that adds what a row's other labels say",
        flexibility=120,
    ),
    Entry(
        "hierarchical_isotonic",
        "isotonic over hierarchical where positives are many",
        "HierarchicalIsotonic",
        _WEIGHTS,
        flexibility=100,
    ),
    Entry("halfway", "half of the way from raw to hierarchical, on the log-odds", flexibility=55),
    Entry("shrunk", "isotonic shrunk towards the offset where positives are few", flexibility=90),
    Entry(
        "popularity",
        "labels by their prior, the same in every row",
        "Popularity",
        _PRIOR,
        fitted=False,
        rung=True,
    ),
)
CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
# Names for `build_calibrator` and --calibrator, and those a rule may choose, the simplest first.
NAMES = tuple(name for name, entry in CATALOGUE.items() if entry.maker)
CANDIDATES = tuple(
    sorted(
        (name for name, entry in CATALOGUE.items() if entry.flexibility is not None),
        key=lambda name: CATALOGUE[name].flexibility or 0,
    )
)
OPTIONS = tuple(dict.fromkeys(option for entry in CATALOGUE.values() for option in entry.takes))


def build_calibrator(name: str, **options: Any) -> Calibrator:
    """The calibrator of this name, not yet fitted.

    Parameters
    ----------
    name : str
        One of `NAMES`: "isotonic", "platt", "inversion", ...
    **options
        Any of `OPTIONS`. Those that this calibrator does not take are ignored, so that several
        can be built from the same options.

    Returns
    -------
    Calibrator

    Examples
    --------
    >>> build_calibrator("isotonic", tau=5)
    Isotonic(tau=5)
    >>> build_calibrator("pooled", tau=5)
    PooledIsotonic()
    """
    from oddslip import calibrators

    entry = CATALOGUE.get(name) if isinstance(name, str) else None
    if entry is None or not entry.maker:
        message = f"calibrator must be one of {', '.join(NAMES)}, got {name!r}."
        if entry is not None:
            message += f' A rule alone fits it: Repair(k=7, rule="{name}"), or --rule {name}.'
        raise InvalidInput(message)
    unknown = [option for option in options if option not in OPTIONS]
    if unknown:
        raise InvalidInput(f"options must be among {', '.join(OPTIONS)}, got {unknown[0]!r}.")
    for need in entry.needs:
        if options.get(need) is None:
            raise InvalidInput(
                f"calibrator {name} needs the {need}. Pass {need}=..., or --{need} in a shell."
            )
    arguments = {option: value for option, value in options.items() if option in entry.takes}
    calibrator: Calibrator = getattr(calibrators, entry.maker)(**arguments, **entry.settles)
    return calibrator
