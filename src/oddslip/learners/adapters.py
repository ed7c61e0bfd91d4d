"""The old place of `oddslip.adapters`."""

from oddslip.core.lazy import moved_names

__getattr__ = moved_names(
    __name__, dict.fromkeys(("ModelReader", "panel_from"), "oddslip.adapters")
)
