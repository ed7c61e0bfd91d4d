"""Maps from raw scores to probabilities, the dead-label policy, and the saved repair.

May import kernels, panels, weights, tallies, sources and counting; knows nothing of metrics or
shifts. Nothing is loaded before it is asked for, so that the catalogue can be read for a help text.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oddslip.calibrators.catalogue import build_calibrator
    from oddslip.calibrators.fitted import FittedRepair
    from oddslip.calibrators.isotonics import Ceiling, Isotonic, PooledIsotonic
    from oddslip.calibrators.logistics import Beta, Offset, Platt, Temperature
    from oddslip.calibrators.saving import load_repair
    from oddslip.calibrators.simple import Inversion, Popularity, Raw

_HOMES = {
    "Beta": "logistics",
    "Ceiling": "isotonics",
    "FittedRepair": "fitted",
    "Inversion": "simple",
    "Isotonic": "isotonics",
    "Offset": "logistics",
    "Platt": "logistics",
    "PooledIsotonic": "isotonics",
    "Popularity": "simple",
    "Raw": "simple",
    "Temperature": "logistics",
    "build_calibrator": "catalogue",
    "load_repair": "saving",
}

__all__ = [
    "Beta",
    "Ceiling",
    "FittedRepair",
    "Inversion",
    "Isotonic",
    "Offset",
    "Platt",
    "PooledIsotonic",
    "Popularity",
    "Raw",
    "Temperature",
    "build_calibrator",
    "load_repair",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
