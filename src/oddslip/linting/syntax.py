"""A syntax tree with what rules ask of it: parents, names and their values, words in names.

Nothing here recurses: source is hostile, and its trees may be deep.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_VALUES = 100  # of a variable: hostile source assigns thousands
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# A variable: the function that binds it and its name. None is the module, "self" any object.
Variable = tuple[ast.AST | str | None, str]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words(name: str) -> set[str]:
    """The words of an identifier, in lower case.

    Examples
    --------
    >>> sorted(words("NUM_CLASSES") | words("yTrain"))
    ['classes', 'num', 'train', 'y']
    """
    return {word.lower() for word in _WORD.findall(name)}


def identifiers(*nodes: ast.AST) -> Iterator[str]:
    """All variables and attributes that are named in the nodes."""
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr


def has_word(name: str, pattern: re.Pattern[str]) -> bool:
    """Whether a whole word of an identifier matches."""
    return any(map(pattern.fullmatch, words(name)))


def mentions(pattern: re.Pattern[str], *nodes: ast.AST) -> bool:
    """Whether any identifier in the nodes has a word that matches."""
    return any(has_word(name, pattern) for name in identifiers(*nodes))


def called_name(node: ast.AST) -> str:
    """The last name of what is called, such as train for ``lgb.train(...)``; else empty."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """An argument by its position or by one of its names."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    return call.args[position] if position < len(call.args) else None


def constant(node: ast.AST | None) -> object:
    """The value of a literal, -1 included; None if it is no literal."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand) if isinstance(node.operand, ast.Constant) else None
        return -value if isinstance(value, int | float) else None
    return node.value if isinstance(node, ast.Constant) else None


class Setting(NamedTuple):
    """A parameter that is set: keyword, entry of a dict, or ``params["name"] = value``."""

    name: str
    value: ast.expr
    node: ast.expr | ast.keyword  # where to report it
    call: ast.Call | None


class Module:
    """A syntax tree, indexed.

    Examples
    --------
    >>> module = Module(ast.parse("w = 3\\nXGBClassifier(scale_pos_weight=w)"))
    >>> [(each.name, module.values(each.value)[0].value) for each in module.settings]
    [('scale_pos_weight', 3)]
    """

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.settings = [each for node in self.nodes for each in _settings(node)]
        self._values: dict[Variable, list[ast.AST]] = defaultdict(list)
        self._bound: set[Variable] = set()
        self._bound_in: dict[ast.AST, set[str]] = {}
        self.containers: set[Variable | None] = set()  # variables whose items are assigned
        self.arguments: set[object] = set()  # variables that callers set
        for node in self.nodes:
            self._bind(node)
        for node in self.nodes:
            self._record(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The node, its parent, and so on up to the module."""
        current: ast.AST | None = node
        while current is not None:
            yield current
            current = self.parents.get(current)

    def variable(self, node: ast.AST) -> Variable | None:
        """What a name or an attribute of an object stands for; None for other nodes."""
        if isinstance(node, ast.Attribute):
            return ("self", node.attr) if getattr(node.value, "id", "") == "self" else None
        name = node.id if isinstance(node, ast.Name) else None
        if name is None:
            return None
        for scope in self.ancestors(node):
            if isinstance(scope, FUNCTIONS) and (scope, name) in self._bound:
                return scope, name
        return None, name

    def values(self, node: ast.AST) -> list[ast.AST]:
        """What is assigned to a variable; a function for its name, an iterable for a loop's."""
        variable = self.variable(node)
        return self._values.get(variable, [])[-MAX_VALUES:] if variable else []

    def bound_in(self, region: ast.AST) -> set[str]:
        """Names that are bound within a loop or a function."""
        names = self._bound_in.get(region)
        if names is None:
            names = self._bound_in[region] = {
                node.arg if isinstance(node, ast.arg) else node.id
                for node in ast.walk(region)
                if isinstance(node, ast.arg)
                or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
            }
        return names

    def _scope(self, node: ast.AST) -> ast.AST | None:
        above = self.ancestors(node)
        next(above)
        return next((each for each in above if isinstance(each, FUNCTIONS)), None)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._bound.add((self._scope(node), node.id))
        elif isinstance(node, ast.arg):
            self._bound.add((self._scope(node), node.arg))
            self.arguments.add((self._scope(node), node.arg))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope = self._scope(node)
            self._bound.add((scope, node.name))
            self._values[scope, node.name].append(node)
            self._values["self", node.name].append(node)

    def _record(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            targets, value = [node.target], node.value
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            targets, value = [node.target], node.iter
        else:
            return
        for target, each in _pairs(targets, value):
            variable = self.variable(target)
            if variable:
                self._values[variable].append(each)
            elif isinstance(target, ast.Subscript) and self.variable(target.value):
                self.containers.add(self.variable(target.value))


def _pairs(targets: Iterable[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with their values; ``a, b = 1, 2`` is two pairs."""
    for target in targets:
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, value
        elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            for each in ast.walk(target):
                if isinstance(each, ast.Name | ast.Attribute):
                    yield each, value


def _settings(node: ast.AST) -> Iterator[Setting]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg:  # clf__estimator__class_weight is class_weight
                yield Setting(keyword.arg.rpartition("__")[2], keyword.value, keyword, node)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            name = constant(key)
            if isinstance(key, ast.Constant) and isinstance(name, str):
                yield Setting(name.rpartition("__")[2], value, key, None)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            name = constant(target.slice) if isinstance(target, ast.Subscript) else None
            if isinstance(name, str):
                yield Setting(name.rpartition("__")[2], node.value, target, None)
