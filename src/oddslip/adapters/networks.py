"""Adapters for torch modules, Hugging Face outputs and onnxruntime sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from oddslip.adapters.scorer import Returned, Scorer, Scores, count_rows, refusal
from oddslip.core.panel import Kind
from oddslip.core.types import Array, FeaturesLike, LabelsLike, ScoresLike
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    import torch

# ------------------------------------------------------------------------------------------- torch


def from_torch(model: object) -> Scorer:
    """A module that returns logits, probabilities, or an object with ``logits``.

    If its output comes from a sigmoid, the sigmoid's input is used instead: logits differ where
    probabilities are tied at 1.0. Otherwise the kind of the output is unknown ("unsaid").
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        raise refusal(model)
    problem = getattr(getattr(model, "config", None), "problem_type", None)
    if problem not in (None, "multi_label_classification"):
        raise refusal(model, f"problem_type {problem!r:.40}")
    first = next(model.parameters(), torch.empty(0))
    owner = next((part for part in model.modules() if list(part.parameters(recurse=False))), None)
    by_index = isinstance(owner, torch.nn.Embedding | torch.nn.EmbeddingBag)

    def as_tensor(table: FeaturesLike, as_float: bool) -> torch.Tensor:
        if not isinstance(table, torch.Tensor):
            cells = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
            table = torch.from_numpy(np.array(cells))
        dtype = first.dtype if as_float or table.is_floating_point() else None
        tensor: torch.Tensor = table.to(device=first.device, dtype=dtype)
        return tensor

    def score(rows: FeaturesLike) -> ScoresLike:
        rows, _ = split_batch(rows)
        with _evaluating(model), torch.no_grad(), _watch_sigmoids() as sigmoids:
            if isinstance(rows, Mapping):
                tensors = {name: as_tensor(rows[name], as_float=False) for name in rows}
                output, n_rows = model(**tensors), len(next(iter(tensors.values())))
            else:
                cells = as_tensor(rows, as_float=not by_index)
                output, n_rows = model(cells), len(cells)
        scores = _logits_in(output)
        probabilities, logits = sigmoids.get(id(scores), (None, scores))
        ends_in_sigmoid = probabilities is scores
        scores = logits if ends_in_sigmoid else scores
        tensor = isinstance(scores, torch.Tensor)
        if not tensor or scores.ndim not in (1, 2) or len(scores) != n_rows:
            raise InvalidInput(
                "a torch module must return a tensor of logits of shape (rows, labels), got "
                f"{tuple(scores.shape) if tensor else type(scores).__name__}."
            )
        return Scores(scores, "margin") if ends_in_sigmoid or _has_logits(output) else scores

    return Scorer(score, "unsaid", names=names_of(model), free=True)


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Put every part into evaluation mode, and restore its mode at the end."""
    modes = [(part, part.training) for part in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def _watch_sigmoids() -> Iterator[dict[int, tuple[torch.Tensor, torch.Tensor]]]:
    """Output and input of the last sigmoid, by the id of its output."""
    import torch
    from torch.overrides import TorchFunctionMode

    sigmoids = (torch.sigmoid, torch.Tensor.sigmoid, torch.special.expit)
    last: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            returned = function(*args, **(kwargs or {}))
            if function in sigmoids and args:
                last.clear()
                last[id(returned)] = (returned, args[0])
            return returned

    with Watch():
        yield last


def split_batch(batch: FeaturesLike) -> tuple[FeaturesLike, LabelsLike]:
    """Rows and labels of a batch: a dict with or without ``labels``, (rows, labels), or rows."""
    if isinstance(batch, Mapping):
        return {name: batch[name] for name in batch if name != "labels"}, batch.get("labels")
    if isinstance(batch, tuple | list):
        if len(batch) not in (1, 2):
            raise InvalidInput(
                f"a batch must be rows, (rows, labels) or a dict, got {len(batch)} parts."
            )
        return (batch[0], batch[1] if len(batch) == 2 else None)
    return batch, None


def names_of(model: object) -> list[str] | None:
    """Names of the labels in a Hugging Face model's configuration, if any."""
    id2label = getattr(getattr(model, "config", None), "id2label", None)
    if not isinstance(id2label, Mapping) or not id2label:
        return None
    names = in_order(id2label)
    return None if all(name == f"LABEL_{at}" for at, name in enumerate(names)) else names


def in_order(id2label: Mapping[Any, str]) -> list[str]:
    """Names by number, such as ``id2label``, as a list in the order of the numbers."""
    return [str(id2label[number]) for number in sorted(id2label, key=int)]


# ----------------------------------------------------------------------------------------- outputs


def _has_logits(output: object) -> bool:
    return hasattr(output, "logits") or (isinstance(output, Mapping) and "logits" in output)


def _logits_in(output: Any) -> ScoresLike:
    """The tensor of scores in the output of a module."""
    if hasattr(output, "logits"):
        return output.logits
    return output["logits"] if _has_logits(output) else output


def is_output(thing: object) -> bool:
    """Whether this is the output of a model rather than a model."""
    if hasattr(thing, "predictions") and hasattr(thing, "label_ids"):
        return True
    root = type(thing).__module__.split(".")[0]
    tensor = root == "torch" and hasattr(thing, "detach") and not hasattr(thing, "forward")
    return tensor or (_has_logits(thing) and not callable(thing))


def read_output(output: Any) -> tuple[Scores, LabelsLike]:
    """Scores and, if present, labels in the output of a model or a Trainer."""
    if hasattr(output, "predictions"):
        scores = output.predictions
        scores = scores[0] if isinstance(scores, tuple) else scores
        labels = output.label_ids
        if labels is not None and np.ndim(labels) != 2:
            raise InvalidInput(
                "label_ids must be 0/1 cells of shape (rows, labels), got shape "
                f"{np.shape(labels)}: one class per row is no multi-label model."
            )
        return Scores(scores, "unsaid"), labels
    return Scores(_logits_in(output), "margin" if _has_logits(output) else "unsaid"), None


# ------------------------------------------------------------------------------------------- onnx

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}
_FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
_KIND_BY_NAME: dict[str, Kind] = {
    "probabilities": "probability",
    "output_probability": "probability",
    "logits": "margin",
}


def from_onnxruntime(model: Any) -> Scorer:
    """An ``InferenceSession`` with one output of shape (rows, labels)."""
    if not hasattr(model, "get_inputs"):
        raise refusal(model)
    inputs, outputs = model.get_inputs(), model.get_outputs()
    floats = [out for out in outputs if out.type in _FLOATS]
    if len(floats) != 1:
        listing = ", ".join(f"{out.name}: {out.type}" for out in outputs)
        raise refusal(model, f"outputs {listing[:200]}, of which one must be a table of scores")
    kind: Returned = _KIND_BY_NAME.get(floats[0].name.lower(), "unsaid")
    shape = inputs[0].shape
    n_features = shape[1] if len(inputs) == 1 and len(shape) == 2 else None

    def score(rows: FeaturesLike) -> ScoresLike:
        tables = rows if isinstance(rows, Mapping) else {inputs[0].name: rows}
        types = {each.name: _TYPES.get(each.type) for each in inputs}
        difference = sorted(types.keys() ^ set(tables))
        if difference:
            raise InvalidInput(
                f"X must hold the inputs {', '.join(types)} by name, "
                f"got others or fewer: {difference[0]!r:.60}."
            )
        feed = {name: _as_dense(tables[name], dtype) for name, dtype in types.items()}
        return check_shape(model.run([floats[0].name], feed)[0], rows, "a session")

    return Scorer(
        score, kind, n_features if isinstance(n_features, int) else None, free=n_features is None
    )


def _as_dense(table: FeaturesLike, dtype: DTypeLike | None) -> Array:
    cells = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
    return cells if dtype is None else cells.astype(dtype, copy=False)


def check_shape(scores: ScoresLike, rows: FeaturesLike, origin: str) -> ScoresLike:
    """The scores, if their shape is (rows, labels) or (rows,)."""
    shape: Sequence[int] = getattr(scores, "shape", None) or np.shape(scores)
    first = next(iter(rows.values())) if isinstance(rows, Mapping) else rows
    if len(shape) not in (1, 2) or shape[0] != count_rows(first):
        actual = tuple(shape) if shape else type(scores).__name__
        raise InvalidInput(
            f"{origin} must return scores of shape (rows, labels), got {actual} for "
            f"{count_rows(first)} rows."
        )
    return scores
