"""Panels from fitted models of other libraries; no library is imported that the model did not."""

from oddslip.adapters.panel import ModelReader, panel_from

__all__ = ["ModelReader", "panel_from"]
