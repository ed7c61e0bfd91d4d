"""Maps from raw scores to probabilities, the dead-label policy, and saved repairs.

Names are imported lazily, so that the command line can read the catalogue for its help quickly.
"""

from typing import TYPE_CHECKING

from oddslip.core.lazy import lazy_names

if TYPE_CHECKING:
    from oddslip.calibrators.catalogue import build_calibrator
    from oddslip.calibrators.fixed import Inversion, Popularity, Raw
    from oddslip.calibrators.hierarchical import Hierarchical, HierarchicalIsotonic
    from oddslip.calibrators.isotonic import Ceiling, Isotonic, PooledIsotonic
    from oddslip.calibrators.label_free import LabelFree
    from oddslip.calibrators.logistic.estimators import Beta, Offset, Platt, Temperature
    from oddslip.repairs.fingerprint import Fingerprint
    from oddslip.repairs.fitted_repair import FittedRepair, load_repair
    from oddslip.repairs.prior_shift import PriorShift

_PUBLIC = {
    "Beta": "oddslip.calibrators.logistic.estimators",
    "Ceiling": "oddslip.calibrators.isotonic",
    "Fingerprint": "oddslip.repairs.fingerprint",
    "FittedRepair": "oddslip.repairs.fitted_repair",
    "Hierarchical": "oddslip.calibrators.hierarchical",
    "HierarchicalIsotonic": "oddslip.calibrators.hierarchical",
    "Inversion": "oddslip.calibrators.fixed",
    "Isotonic": "oddslip.calibrators.isotonic",
    "LabelFree": "oddslip.calibrators.label_free",
    "Offset": "oddslip.calibrators.logistic.estimators",
    "Platt": "oddslip.calibrators.logistic.estimators",
    "PooledIsotonic": "oddslip.calibrators.isotonic",
    "Popularity": "oddslip.calibrators.fixed",
    "PriorShift": "oddslip.repairs.prior_shift",
    "Raw": "oddslip.calibrators.fixed",
    "Temperature": "oddslip.calibrators.logistic.estimators",
    "build_calibrator": "oddslip.calibrators.catalogue",
    "load_repair": "oddslip.repairs.fitted_repair",
}

__all__ = [
    "Beta",
    "Ceiling",
    "Fingerprint",
    "FittedRepair",
    "Hierarchical",
    "HierarchicalIsotonic",
    "Inversion",
    "Isotonic",
    "LabelFree",
    "Offset",
    "Platt",
    "PooledIsotonic",
    "Popularity",
    "PriorShift",
    "Raw",
    "Temperature",
    "build_calibrator",
    "load_repair",
]


__getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
