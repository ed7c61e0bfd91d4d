"""What runs elsewhere: a saved repair with NumPy alone, and exports to ONNX, SQL and JSON.

May import calibrators, metrics, shifts, diagnosis and below. Nothing is loaded before it is asked
for: `oddslip.serving.runtime` brings NumPy and nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oddslip.serving.export import Export
    from oddslip.serving.onnx import repair_graph
    from oddslip.serving.runtime import Runtime, load_runtime
    from oddslip.serving.trees import trees_graph

_HOMES = {
    "Export": "oddslip.serving.export",
    "Runtime": "oddslip.serving.runtime",
    "load_runtime": "oddslip.serving.runtime",
    "repair_graph": "oddslip.serving.onnx",
    "trees_graph": "oddslip.serving.trees",
}

__all__ = ["Export", "Runtime", "load_runtime", "repair_graph", "trees_graph"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
