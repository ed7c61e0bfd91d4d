"""Maps from raw scores to probabilities, the dead-label policy, and the saved repair.

May import kernels, panels, tallies, sources and counting; knows nothing of metrics or shifts.
"""

from oddslip.calibrators.fitted import FittedRepair
from oddslip.calibrators.isotonics import Ceiling, Isotonic, PooledIsotonic
from oddslip.calibrators.logistics import Beta, Offset, Platt, Temperature
from oddslip.calibrators.saving import load_repair
from oddslip.calibrators.simple import Inversion, Popularity, Raw

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
    "load_repair",
]
