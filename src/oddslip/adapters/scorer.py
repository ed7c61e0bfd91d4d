"""`Scorer`: the common form of every adapted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from oddslip.adapters.forest import Forests
from oddslip.core.panel import Kind
from oddslip.core.types import Array, FeaturesLike, ScoresLike
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from lightgbm import Booster

T = TypeVar("T")
CLIP = 1e-12  # probabilities are clipped to [CLIP, 1 - CLIP] before taking log-odds
LIBRARIES = ("lightgbm", "xgboost", "catboost", "sklearn", "torch", "onnxruntime", "oddslip")
_ADVICE = 'Compute its scores yourself and pass them to Panel(scores, labels, kind="margin").'
_NARROW = {"float16": 3, "bfloat16": 2}  # decimal digits of precision

# Kind of a model's output: a constant probability converts to either; some models do not declare.
Returned = Kind | Literal["constant", "unsaid"]


class Scores(NamedTuple):
    """Cells of a block and their kind. A scorer may return this to declare the kind itself."""

    cells: ScoresLike
    kind: Returned


@dataclass(frozen=True)
class Scorer:
    """A function from a block of rows to scores of shape (rows, labels) or (rows,)."""

    score: Callable[[FeaturesLike], ScoresLike]
    kind: Returned = "margin"
    n_features: int | None = None
    names: Sequence[str] | None = None
    trees: Booster | None = None  # a LightGBM Booster of one label, if that is all it is
    free: bool = False  # whether rows may be other than a table: texts, images, tables by name
    parts: tuple[Scorer, ...] = ()  # scorers of the columns, if several

    def block(self, rows: FeaturesLike, kind: Kind) -> Scores:
        """Scores in this kind with a column per label; scores of unsaid kind are not converted."""
        if self.parts:
            return self._columns(rows, kind)
        scored = self.score(rows)
        if not isinstance(scored, Scores):
            scored = Scores(scored, self.kind)
        cells = as_cells(scored.cells)
        cells = cells.reshape(cells.shape[0], -1)
        if scored.kind in (kind, "unsaid"):
            return Scores(cells, scored.kind)
        if kind == "probability":
            from scipy.special import expit

            return Scores(cells if scored.kind == "constant" else expit(cells), kind)
        return Scores(clipped_log_odds(cells), kind)

    @cached_property
    def _forests(self) -> Forests:
        trees = {at: part.trees for at, part in enumerate(self.parts) if part.trees is not None}
        return Forests(trees)

    def _columns(self, rows: FeaturesLike, kind: Kind) -> Scores:
        sums = self._forests.sum_rows(rows) if kind == "margin" else {}
        blocks = [
            Scores(sums[at], kind) if at in sums else part.block(rows, kind)
            for at, part in enumerate(self.parts)
        ]
        unsaid = any(block.kind == "unsaid" for block in blocks)
        cells = np.column_stack([block.cells for block in blocks])
        return Scores(cells, "unsaid" if unsaid else kind)


def clipped_log_odds(probabilities: Array) -> Array:
    """Log-odds of probabilities, clipped at `CLIP` so that they are finite, in float64."""
    # In float32 the largest clipped probability would be 1.
    inside = np.clip(np.asarray(probabilities, np.float64), CLIP, 1 - CLIP)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def side_by_side(parts: Sequence[Scorer], names: Sequence[str] | None = None) -> Scorer:
    """One scorer of all columns. If one label has no margins, all become probabilities."""
    if not parts:
        raise InvalidInput("model must be at least one fitted model, got an empty list.")
    widths = [part.n_features for part in parts]
    n_features = next((width for width in widths if width is not None), None)
    for at, width in enumerate(widths):
        if width not in (None, n_features):
            raise InvalidInput(
                f"models in a list must have the same number of features, "
                f"got {n_features} and, at place {at}, {width}."
            )
    kinds = {part.kind for part in parts}
    kind: Returned = "unsaid" if "unsaid" in kinds else "margin"
    if "probability" in kinds and kind == "margin":
        kind = "probability"
    free = all(part.free or part.kind == "constant" for part in parts)
    score = parts[0].score  # not called: the parts are
    return Scorer(score, kind, n_features, names, free=free, parts=tuple(parts))


def constant(probability: float, n_features: int | None) -> Scorer:
    """Scorer of a label that was always or never true."""
    return Scorer(lambda rows: np.full(count_rows(rows), probability), "constant", n_features)


def check_classes(model: object) -> Scorer | None:
    """Reject more than two classes; a single class becomes a constant scorer."""
    classes = getattr(model, "classes_", None)
    for values in classes if isinstance(classes, list) else [] if classes is None else [classes]:
        if len(values) > 2:
            raise refusal(model, f"{len(values)} classes")
        if len(values) == 1 and values[0] not in (0, 1):
            raise refusal(model, f"the single class {values[0]!r}")
    if classes is None or isinstance(classes, list) or len(classes) == 2:
        return None
    return constant(float(classes[0]), getattr(model, "n_features_in_", None))


def of_library(entries: Mapping[str, T], model: object) -> T | None:
    """The entry of the library of a model, by its class or one that it inherits from."""
    roots = (kind.__module__.split(".")[0] for kind in type(model).__mro__)
    return next((entries[root] for root in roots if root in entries), None)


def refusal(model: object, what: str = "") -> InvalidInput:
    """The error for a model without odds, or for an object that is no model."""
    actual = type(model).__name__ + (f" with {what}" if what else "")
    return InvalidInput(
        f"model must give log-odds or probabilities of 0/1 labels and come from one of "
        f"{', '.join(LIBRARIES)}, or be a callable; got {actual}. {_ADVICE}"
    )


def count_rows(rows: FeaturesLike) -> int:
    """Rows of a block in any form."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def as_cells(scores: ScoresLike) -> Array:
    """Scores as float32 or float64, with a warning if they come in a narrower type."""
    cells: Array
    if hasattr(scores, "detach"):  # a torch tensor
        name = str(scores.dtype).removeprefix("torch.")
        cells = (scores.float() if name in _NARROW else scores).detach().cpu().numpy()
    else:
        cells = np.asarray(scores)
        name = cells.dtype.name
        if name in _NARROW:
            cells = cells.astype(np.float32)
    if name in _NARROW:
        warnings.warn(
            f"scores come in {name}, which tells apart {_NARROW[name]} digits: labels with nearly "
            "the same score are tied, and ties go to the lower label. Score in float32 if you can; "
            "oddslip.evaluate says in how many rows ties decide.",
            UserWarning,
            stacklevel=2,
        )
    return cells
