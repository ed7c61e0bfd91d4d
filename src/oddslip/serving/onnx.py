"""A repair as an ONNX graph of standard operators, opset 18.

A map with knots is an unrolled binary search: each step looks some knots ahead, at most to the last
knot of the label, and moves there if that knot is not above the score. Other maps are formulas. The
values are ranked by TopK, which breaks ties by the lower index, as we do. A row-aware stage gathers
the partners of all labels, one after the other.

Sums, products and comparisons round as ours do, so maps with knots agree to the bit. Exponentials
and logarithms are those of the ONNX runtime, and may differ in the last bit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip.core.arguments import check_k
from oddslip.core.panel import Panel
from oddslip.core.types import Array, FilePath, Floats, Ints
from oddslip.decisions.list_rule import ListRule
from oddslip.errors import InvalidInput, MissingDependency
from oddslip.io.paths import check_path
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.repairs.map_forms import (
    AFFINE,
    BETA,
    CLIP,
    CONSTANT,
    EXCLUDED,
    IDENTITY,
    KNOTS,
    LOWEST,
    Maps,
    compared_constants,
    lay_knots,
)
from oddslip.repairs.row_aware import RowAwareMaps
from oddslip.repairs.row_stage import RowStage
from oddslip.serving.export import Export, describe_repair, names_of, simplify, write_export

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from onnx import ModelProto, NodeProto

OPSET = 18
IR_VERSION = 8  # of opset 18; older readers do not support its operators anyway
PRECISIONS = ("float64", "float32")
N_PROBES = 2001  # scores of each label at which a less precise graph is compared with ours


def export_onnx(
    repair: FittedRepair,
    path: FilePath,
    *,
    k: int | None = None,
    scores: str = "float64",
    precision: str = "float64",
    rule: ListRule | None = None,
) -> Export:
    """Write a repair, or its lists by a rule, as an ONNX graph, atomically.

    See `oddslip.FittedRepair.to_onnx` and `oddslip.FittedDecision.to_onnx`.
    """
    check_path("path", path)
    thresholds = None
    if rule is not None:
        k, thresholds = simplify(rule, "ONNX")
    model = repair_graph(repair, k=k, scores=scores, precision=precision, thresholds=thresholds)
    raw = model.SerializeToString()
    deviation = 0.0 if precision == "float64" else _largest_deviation(repair, model)
    return write_export(path, "ONNX", raw, deviation)


def repair_graph(
    repair: object,
    *,
    k: int | None = None,
    scores: str = "float64",
    precision: str = "float64",
    thresholds: Floats | None = None,
) -> ModelProto:
    """The ONNX graph of a repair, to be joined to the graph of a model.

    Parameters
    ----------
    repair : FittedRepair, Repair or calibrator
        A fitted repair.
    k : int, optional
        Slots per row; without it nothing is ranked.
    scores, precision : {"float64", "float32"}
        Type of the input scores and of the computation.
    thresholds : ndarray of shape (n_labels,), optional
        With ``k``: lowest probability of each label that is ranked. Slots after the last such
        label have -1 and the probability 0.

    Returns
    -------
    onnx.ModelProto
        From ``scores`` to ``probabilities`` and, with ``k``, ``top_labels`` and
        ``top_probabilities``.

    Examples
    --------
    >>> repair_graph(repair, k=7, scores="float32")  # doctest: +SKIP
    """
    repair = getattr(repair, "fitted_", repair)
    if not isinstance(repair, FittedRepair):
        raise InvalidInput(f"repair_graph needs a fitted repair, got {type(repair).__name__}.")
    for name, value in (("scores", scores), ("precision", precision)):
        if value not in PRECISIONS:
            raise InvalidInput(f'{name} must be "float64" or "float32", got {value!r:.60}.')
    onnx = load_onnx()
    from onnx import TensorProto, checker, helper

    maps = repair.maps
    kind = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}
    graph = _Graph(maps, np.dtype(precision))
    start = "scores"
    if scores != precision:
        start = graph.add("Cast", start, to=kind[precision])
    values, probabilities = graph.map_cells(start)
    if isinstance(maps, RowAwareMaps) and not maps.stage.changes_nothing:
        values, probabilities = graph.add_stage(values, probabilities, maps.stage)
    graph.name(probabilities, "probabilities")
    outputs = [("probabilities", kind[precision], ["rows", maps.n_labels])]
    if k is not None:
        k = check_k(k, maps.n_labels)
        graph.rank(values, k, thresholds)
        outputs += [
            ("top_labels", TensorProto.INT64, ["rows", k]),
            ("top_probabilities", kind[precision], ["rows", k]),
        ]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "oddslip",
            [helper.make_tensor_value_info("scores", kind[scores], ["rows", maps.n_labels])],
            [helper.make_tensor_value_info(*output) for output in outputs],
            [onnx.numpy_helper.from_array(array, name) for name, array in graph.used_constants()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="oddslip",
        doc_string="Calibrated probabilities and the top K of scores, by oddslip.",
    )
    helper.set_model_props(model, _properties(repair, k))
    checker.check_model(model, full_check=True)
    return model


def _properties(repair: FittedRepair, k: int | None) -> dict[str, str]:
    """Metadata of the model: texts, and JSON for other values."""
    properties = describe_repair(repair) | {"label_names": names_of(repair), "k": k}
    return {
        f"oddslip:{name}": value if isinstance(value, str) else json.dumps(value)
        for name, value in properties.items()
    }


def load_onnx() -> Any:
    """The onnx package, or an error with the install command."""
    try:
        import onnx
    except ImportError as error:
        raise MissingDependency(
            'an ONNX graph needs onnx. Run: pip install "oddslip[onnx]"'
        ) from error
    return onnx


class _Graph:
    """Nodes and constants of the graph, added one by one."""

    def __init__(self, maps: Maps, dtype: np.dtype) -> None:
        self.maps, self.dtype = maps, dtype
        self.margin, self.odds = maps.kind == "margin", maps.scale == "log_odds"
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        from onnx import helper

        output = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def name(self, output: str, name: str) -> None:
        """Give the output of a node another name."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [output], [name]))

    def rank(self, values: str, k: int, thresholds: Floats | None = None) -> None:
        """Add the top K of the values, and their probabilities."""
        from onnx import helper

        slots = self.constant(np.array([k], np.int64))
        if thresholds is not None:
            return self._rank_shown(values, slots, thresholds)
        self.nodes += [
            helper.make_node("TopK", [values, slots], ["top_values", "top_labels"], axis=1),
            helper.make_node(
                "GatherElements", ["probabilities", "top_labels"], ["top_probabilities"], axis=1
            ),
        ]
        return None

    def _rank_shown(self, values: str, slots: str, thresholds: Floats) -> None:
        """Add the top K of the values whose probability reaches the threshold of its label."""
        from onnx import helper

        mask = self.add("LessOrEqual", self.number(thresholds), "probabilities")
        # Hidden labels come after all others, also after those that a repair ranks last.
        finite = self.add("Max", values, self.number(np.finfo(self.dtype).min))
        masked = self.add("Where", mask, finite, self.number(-np.inf))
        node = helper.make_node("TopK", [masked, slots], ["top_values", "ranked"], axis=1)
        self.nodes.append(node)
        is_shown = self.add("Less", self.number(-np.inf), "top_values")
        none = self.constant(np.array(-1, np.int64))
        self.name(self.add("Where", is_shown, "ranked", none), "top_labels")
        probabilities = self.add("GatherElements", "probabilities", "ranked", axis=1)
        self.name(self.add("Where", is_shown, probabilities, self.number(0.0)), "top_probabilities")

    def used_constants(self) -> list[tuple[str, Array]]:
        """Constants that are inputs of a node, with their names."""
        names = {each for node in self.nodes for each in node.input}
        return [(each, array) for each, array in self.constants.items() if each in names]

    def constant(self, array: Array) -> str:
        """Add an array; returns its name."""
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(array)
        return name

    def number(self, values: ArrayLike) -> str:
        """Add numbers in the precision of the graph, clipped to its range; returns their name."""
        limits = np.finfo(self.dtype)
        finite = np.isfinite(values)
        inside = np.clip(values, limits.min, limits.max)
        return self.constant(np.where(finite, inside, values).astype(self.dtype))

    def map_cells(self, cells: str) -> tuple[str, str]:
        """Names of the values to compare and of the probabilities."""
        maps = self.maps
        groups: list[tuple[Ints, str, str]] = []
        flat = np.flatnonzero((maps.code == CONSTANT) | (maps.code == EXCLUDED))
        if flat.size:
            groups.append((flat, *self._flat(cells, flat)))
        builders = {
            KNOTS: self._knots,
            AFFINE: self._affine,
            BETA: self._beta,
            IDENTITY: self._identity,
        }
        for form, build in builders.items():
            labels = np.flatnonzero(maps.code == form)
            if labels.size:
                groups.append((labels, *build(self._columns(cells, labels), labels)))
        order = np.argsort(np.concatenate([labels for labels, _, _ in groups]))
        values = self._join([values for _, values, _ in groups], order)
        if all(value == probability for _, value, probability in groups):
            return values, values
        return values, self._join([probability for _, _, probability in groups], order)

    def add_stage(self, values: str, probabilities: str, stage: RowStage) -> tuple[str, str]:
        """Names of the log-odds and of the probabilities after a row-aware stage."""
        included = self.number(self.maps.code != EXCLUDED)
        surprise = self.add("Sub", probabilities, self.number(stage.prevalence))
        surprise = self.add("Mul", surprise, included)
        support = self.add("Mul", surprise, self.number(0.0))
        for partner, lift in zip(stage.partners.T, stage.lift.T, strict=True):  # in our order
            column = self.add("Gather", surprise, self.constant(partner.astype(np.int64)), axis=1)
            support = self.add("Add", support, self.add("Mul", column, self.number(lift)))
        log_odds = self.add("Mul", values, self.number(1.0 + stage.slope))
        added = self.add("Mul", support, self.number(stage.support))
        log_odds = self.add("Add", log_odds, self.add("Add", added, self.number(stage.intercept)))
        log_odds = self.add("Max", log_odds, self.number(LOWEST))
        never = self.number(-np.inf)
        log_odds = self.add("Where", self.add("Equal", values, never), never, log_odds)
        return log_odds, self._sigmoid(log_odds)

    def _columns(self, cells: str, labels: Ints) -> str:
        if labels.size == self.maps.code.size:
            return cells
        return self.add("Gather", cells, self.constant(labels), axis=1)

    def _join(self, parts: list[str], order: Ints) -> str:
        if len(parts) == 1:
            return parts[0]
        return self.add("Gather", self.add("Concat", *parts, axis=1), self.constant(order), axis=1)

    def _flat(self, cells: str, labels: Ints) -> tuple[str, str]:
        """Labels whose value does not depend on the score."""
        excluded = self.maps.code[labels] == EXCLUDED
        n_rows = self.add("Shape", cells, start=0, end=1)
        width = self.constant(np.array([labels.size], np.int64))
        shape = self.add("Concat", n_rows, width, axis=0)
        compared = np.where(excluded, -np.inf, compared_constants(self.maps)[labels])
        values = self.add("Expand", self.number(compared[None]), shape)
        if not (self.odds or excluded.any()):
            return values, values
        probabilities = np.where(excluded, 0.0, self.maps.a[labels])
        return values, self.add("Expand", self.number(probabilities[None]), shape)

    def _knots(self, cells: str, labels: Ints) -> tuple[str, str]:
        maps = self.maps
        start, last = maps.start[labels], maps.stop[labels] - 1
        table = lay_knots(maps)
        x = self.number(table[:, 0])
        lasts = self.constant(last)
        at, ahead = self.constant(start), ""
        max_steps = int((last - start).max())  # knots after the first
        for bit in reversed(range(max_steps.bit_length())):
            step_size = 1 << bit
            if not ahead:  # all rows start at the first knot, so this step needs no lookup
                target = np.minimum(start + step_size, last)
                ahead, score = self.constant(target), self.number(table[target, 0])
            else:
                beyond = self.add("Add", at, self.constant(np.array(step_size)))
                ahead = self.add("Min", beyond, lasts)
                score = self.add("Gather", x, ahead)
            at = self.add("Where", self.add("LessOrEqual", score, cells), ahead, at)
        columns = [x, *map(self.number, table.T[1:])]
        score, value, slope, roof = (self.add("Gather", column, at) for column in columns)
        beyond = self.add("Sub", self.add("Max", cells, score), score)
        mapped = self.add("Add", self.add("Mul", slope, beyond), value)
        # NaN, which an infinite slope can give, compares as false: so the value of the knot.
        above = self.add("LessOrEqual", value, mapped)
        values = self.add("Where", above, self.add("Min", mapped, roof), value)
        return values, values

    def _affine(self, cells: str, labels: Ints) -> tuple[str, str]:
        a, b = (self.number(each[labels]) for each in (self.maps.a, self.maps.b))
        line = self.add("Add", self.add("Mul", a, self._log_odds(cells)), b)
        return self._with_probability(line)

    def _beta(self, cells: str, labels: Ints) -> tuple[str, str]:
        a, b, c = (self.number(each[labels]) for each in (self.maps.a, self.maps.b, self.maps.c))
        zero = self.number(0.0)
        if self.margin:
            size = self.add("Abs", cells)
            tail = self._log1p(self.add("Exp", self.add("Neg", size)))
            up = self.add("Add", self.add("Max", cells, zero), tail)
            down = self.add("Add", self.add("Max", self.add("Neg", cells), zero), tail)
            difference = self.add("Sub", self.add("Mul", b, up), self.add("Mul", a, down))
        else:
            inside = self._inside(cells)
            rest = self._log1p(self.add("Neg", inside))
            logs = self.add("Mul", a, self.add("Log", inside))
            difference = self.add("Sub", logs, self.add("Mul", b, rest))
        return self._with_probability(self.add("Add", difference, c))

    def _identity(self, cells: str, labels: Ints) -> tuple[str, str]:
        if self.odds:
            values, probabilities = self._with_probability(self._log_odds(cells))
            return values, probabilities if self.margin else cells
        values = self._sigmoid(cells) if self.margin else cells
        return values, values

    def _with_probability(self, odds: str) -> tuple[str, str]:
        values = self.add("Max", odds, self.number(LOWEST))
        return values, self._sigmoid(values)

    def _inside(self, cells: str) -> str:
        roof = min(1.0 - CLIP, float(np.nextafter(self.dtype.type(1), self.dtype.type(0))))
        above_zero = self.add("Max", cells, self.number(CLIP))
        return self.add("Min", above_zero, self.number(roof))

    def _log_odds(self, cells: str) -> str:
        if self.margin:
            return cells
        inside = self._inside(cells)
        rest = self.add("Sub", self.number(1.0), inside)
        return self.add("Log", self.add("Div", inside, rest))

    def _sigmoid(self, odds: str) -> str:
        one = self.number(1.0)
        small = self.add("Exp", self.add("Neg", self.add("Abs", odds)))
        above = self.add("LessOrEqual", self.number(0.0), odds)
        return self.add("Div", self.add("Where", above, one, small), self.add("Add", one, small))

    def _log1p(self, cells: str) -> str:
        """ln(1 + x), which ONNX lacks: ln(u) x / (u - 1) with u = 1 + x rounded."""
        one = self.number(1.0)
        u = self.add("Add", one, cells)
        is_one = self.add("Equal", u, one)
        rest = self.add("Where", is_one, one, self.add("Sub", u, one))
        ratio = self.add("Div", self.add("Mul", self.add("Log", u), cells), rest)
        return self.add("Where", is_one, cells, ratio)


def _largest_deviation(repair: FittedRepair, model: ModelProto) -> float:
    """Largest difference between a graph's probabilities and ours, over the whole scale."""
    from onnx.reference import ReferenceEvaluator

    maps = repair.maps
    low, high = (0.0, 1.0) if maps.kind == "probability" else (-40.0, 40.0)
    n_labels = maps.n_labels
    element_type = model.graph.input[0].type.tensor_type.elem_type
    dtype = np.float32 if element_type == 1 else np.float64
    grid = np.linspace(low, high, N_PROBES)
    if maps.x.size:  # near the knots
        grid = np.concatenate(
            [grid, np.clip(np.quantile(maps.x, np.linspace(0, 1, 500)), low, high)]
        )
    largest = 0.0
    size = max(1, 1_000_000 // n_labels)
    evaluator = ReferenceEvaluator(model)
    for first in range(0, grid.size, size):
        rows = np.repeat(grid[first : first + size, None], n_labels, axis=1).astype(dtype)
        with np.errstate(all="ignore"):
            (theirs,) = evaluator.run(["probabilities"], {"scores": rows})
        ours = maps.transform_panel(Panel(rows, kind=maps.kind), np.float64)
        largest = max(largest, float(np.abs(theirs - ours).max()))
    return largest
