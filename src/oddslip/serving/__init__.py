"""A repair in production: with NumPy alone, as ONNX, SQL or JSON, and checked day by day.

May import calibrators, metrics, shifts, diagnosis and below. Nothing is loaded before it is asked
for: `oddslip.serving.runtime` brings NumPy and nothing else.
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
