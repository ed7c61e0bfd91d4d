"""A repair in production: with NumPy alone, as ONNX, SQL or JSON, and checked day by day.

May import calibrators, metrics, shifts, diagnosis and below. Nothing is loaded before it is asked
for: `oddslip.serving.runtime` brings NumPy and nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oddslip.serving.check_log import append_check, read_checks
    from oddslip.serving.export import Export
    from oddslip.serving.onnx import repair_graph
    from oddslip.serving.onnx_trees import trees_graph
    from oddslip.serving.runtime import Runtime, load_runtime

_HOMES = {
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
