"""Repairs in production: a NumPy runtime, exports to ONNX, SQL and JSON, and checks.

Names are imported lazily, so that `oddslip.serving.runtime` only imports NumPy.
"""

from typing import TYPE_CHECKING

from oddslip.core.lazy import lazy_names

if TYPE_CHECKING:
    from oddslip.serving.check_log import append_check, read_checks
    from oddslip.serving.export import Export
    from oddslip.serving.onnx import repair_graph
    from oddslip.serving.onnx_trees import trees_graph
    from oddslip.serving.runtime import Runtime, load_runtime

_PUBLIC = {
    "Export": "oddslip.serving.export",
    "Runtime": "oddslip.serving.runtime",
    "append_check": "oddslip.serving.check_log",
    "load_runtime": "oddslip.serving.runtime",
    "read_checks": "oddslip.serving.check_log",
    "repair_graph": "oddslip.serving.onnx",
    "trees_graph": "oddslip.serving.onnx_trees",
}

__all__ = [
    "Export",
    "Runtime",
    "append_check",
    "load_runtime",
    "read_checks",
    "repair_graph",
    "trees_graph",
]


__getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
