"""Torch modules and ONNX graphs with an affine map of their logits."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from oddslip.errors import InvalidInput
from oddslip.folding.affine import Affine


def fold_torch(model: Any, affine: Affine, head: str | None = None) -> Any:
    """A module whose logits come from a ``Linear``: its rows are scaled, its bias moved.

    ``head`` names that layer where several have as many outputs as there are labels.
    """
    import torch

    layers = {
        name: part
        for name, part in model.named_modules()
        if isinstance(part, torch.nn.Linear) and part.out_features == affine.n_labels
    }
    if head is not None and head not in layers:
        raise InvalidInput(
            f"head must name a Linear layer of {affine.n_labels} outputs, got {head!r:.60}. "
            f"There are: {', '.join(map(repr, layers)) or 'none'}."
        )
    if head is None and len(layers) != 1:
        raise InvalidInput(
            f"a torch module must have one Linear layer of {affine.n_labels} outputs, got "
            f"{len(layers)}: {', '.join(map(repr, layers)) or 'none'}. Pass head=... if several."
        )
    folded = deepcopy(model)
    linear = folded.get_submodule(next(iter(layers)) if head is None else head)
    with torch.no_grad():
        weight = linear.weight.to(torch.float64)
        bias = torch.zeros(affine.n_labels, dtype=torch.float64, device=weight.device)
        if linear.bias is not None:
            bias = linear.bias.to(torch.float64)
        slope = torch.as_tensor(affine.slope, device=weight.device)
        intercept = torch.as_tensor(affine.intercept, device=weight.device)
        dtype = linear.weight.dtype
        # New parameters: an embedding may share the old ones.
        linear.weight = torch.nn.Parameter((weight * slope[:, None]).to(dtype))
        linear.bias = torch.nn.Parameter((intercept + slope * bias).to(dtype))
    return folded


def fold_onnx(model: Any, affine: Affine, kind: str) -> Any:
    """A graph that ends in one logit per label, or in the sigmoid of it.

    The tensor of logits is renamed where it is made, and computed under its old name from there.
    """
    from onnx import TensorProto, checker, helper, numpy_helper

    folded = type(model)()
    folded.CopyFrom(model)
    graph = folded.graph
    floats = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64}
    outputs = [each for each in graph.output if each.type.tensor_type.elem_type in floats]
    if len(outputs) != 1:
        raise InvalidInput(
            f"an ONNX graph must have one float output of shape (rows, labels), got {len(outputs)}."
        )
    shape = outputs[0].type.tensor_type.shape.dim
    if shape and shape[-1].dim_value:
        affine.check_labels(shape[-1].dim_value, "an ONNX graph")
    maker = {name: node for node in graph.node for name in node.output}
    logits = outputs[0].name
    if logits in maker and maker[logits].op_type == "Sigmoid":
        logits = maker[logits].input[0]
    elif kind != "margin":
        end = maker[logits].op_type if logits in maker else "an input"
        raise InvalidInput(
            f"an ONNX graph of probabilities must end in a Sigmoid, got {end}. "
            "Export the model with its logits."
        )
    if logits not in maker:
        raise InvalidInput("an ONNX graph must compute its logits, got an input as output.")
    dtype = floats[outputs[0].type.tensor_type.elem_type]
    names = [f"{logits}_{suffix}" for suffix in ("unrepaired", "scaled", "slope", "intercept")]
    clash = set(names) & ({each.name for each in graph.initializer} | set(maker))
    if clash:
        raise InvalidInput(f"the graph holds a tensor {min(clash)!r:.80}: it is folded already.")
    before, scaled, slope, intercept = names
    maker[logits].output[list(maker[logits].output).index(logits)] = before
    place = list(graph.node).index(maker[logits]) + 1
    for name, values in ((slope, affine.slope), (intercept, affine.intercept)):
        graph.initializer.append(numpy_helper.from_array(values.astype(dtype), name))
    graph.node.insert(place, helper.make_node("Mul", [before, slope], [scaled]))
    graph.node.insert(place + 1, helper.make_node("Add", [scaled, intercept], [logits]))
    checker.check_model(folded)
    return folded
