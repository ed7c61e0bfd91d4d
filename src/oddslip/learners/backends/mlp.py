"""A shared-trunk MLP in torch: one network for all labels, a ``pos_weight`` for each.

The seed fixes the initial weights and the order of the batches, neither of which depends on the
label weights: two arms of one seed differ only in ``pos_weight``. Torch's global state (seed,
threads, default type and device) is neither read nor changed.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch.nn.functional import binary_cross_entropy_with_logits, linear, relu

from oddslip.core.arguments import check_whole, is_number
from oddslip.core.types import FeaturesLike, Floats, LabelsLike
from oddslip.errors import InvalidInput
from oddslip.learners.backends.base import Backend, Parameters
from oddslip.learners.backends.logistic import check_finite, column_moments
from oddslip.learners.model_validation.arrays import check_layers, pack_npz, read_arrays

MAX_HIDDEN = 1 << 20
_PREDICT_BYTES = 16 * 1024 * 1024


class Standardised(NamedTuple):
    """Rows, and the means and deviations that standardise their features."""

    X: FeaturesLike
    means: Floats
    scales: Floats

    def take(self, rows: FeaturesLike) -> Floats:
        """These rows, dense and standardised; a sparse X is only made dense by batches."""
        batch = self.X[rows]
        dense = batch.toarray() if sparse.issparse(batch) else batch
        return np.asarray((dense - self.means) / self.scales, np.float64)


class Network(NamedTuple):
    """Layers as arrays of shape (inputs, outputs), and the standardisation before them."""

    means: Floats
    scales: Floats
    slopes: list[NDArray[np.float32]]
    biases: list[NDArray[np.float32]]


class MLPBackend(Backend):
    """All labels in one network: hidden layers with ReLU, one output per label.

    Parameters are ``hidden`` ([256, 256]), ``epochs`` (20, no early stopping), ``batch_rows``
    (256), ``learning_rate`` (0.001, of Adam), ``weight_decay`` (0, of Adam), and ``constants``
    (False; True gives labels of a single class an output too, whose scores are not used). Layers
    are initialised as in ``torch.nn.Linear``. Features are standardised with the means and
    deviations of the training rows; with ``centre`` False the means are not subtracted, so that
    zeros of a sparse feature stay 0. The loss is the mean over cells of binary cross-entropy, with
    positives of label j weighted by its ``pos_weight``.
    """

    name = "mlp"
    extension = ".npz"
    batches_rows = True  # true labels are made dense by batches of rows

    def defaults(self) -> Parameters:
        """Parameters and their default values."""
        return {
            "hidden": [256, 256],
            "epochs": 20,
            "batch_rows": 256,
            "learning_rate": 1e-3,
            "weight_decay": 0.0,
            "constants": False,
            "centre": True,
        }

    def trains_constants(self, parameters: Parameters) -> bool:
        """Whether labels of a single class have an output."""
        return bool(parameters["constants"])

    def versions(self) -> dict[str, str]:
        """Versions of the packages on which the trained bits depend."""
        return {"numpy": np.__version__, "torch": str(torch.__version__)}

    def prepare(self, X: FeaturesLike, parameters: Parameters) -> Standardised:
        """The rows, and the means and deviations of their features."""
        _check_parameters(parameters)
        rows = _as_rows(X)
        check_finite(rows, "the MLP")
        means, scales = column_moments(rows)
        return Standardised(rows, means if parameters["centre"] else np.zeros_like(means), scales)

    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """All labels, since they share the trunk; memory is needed for one batch only."""
        return max(1, n_labels)

    def train(
        self,
        prepared: Standardised,
        Y: LabelsLike,
        weights: Floats,
        parameters: Parameters,
        seed: int,
    ) -> Network:
        """Train the network of all labels; ``Y`` has shape (n_rows, g), dense or sparse rows."""
        _check_parameters(parameters)
        generator = torch.Generator(device="cpu").manual_seed(seed)
        widths = [prepared.X.shape[1], *parameters["hidden"], Y.shape[1]]
        slopes, biases = _first_layers(widths, generator)
        pos_weight = torch.from_numpy(np.array(weights, np.float32))
        optimiser = torch.optim.Adam(
            [*slopes, *biases],
            lr=float(parameters["learning_rate"]),
            weight_decay=float(parameters["weight_decay"]),
        )
        n_rows, step = Y.shape[0], int(parameters["batch_rows"])
        with torch.enable_grad():
            for _ in range(int(parameters["epochs"])):
                order = torch.randperm(n_rows, generator=generator, device="cpu").numpy()
                for start in range(0, n_rows, step):
                    rows = order[start : start + step]
                    batch = torch.from_numpy(prepared.take(rows).astype(np.float32))
                    true = Y[rows].toarray() if sparse.issparse(Y) else Y[rows]
                    truth = torch.from_numpy(np.ascontiguousarray(true, np.float32))
                    loss = binary_cross_entropy_with_logits(
                        _forward(batch, slopes, biases), truth, pos_weight=pos_weight
                    )
                    optimiser.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
        return Network(
            prepared.means,
            prepared.scales,
            [np.ascontiguousarray(slope.detach().numpy().T) for slope in slopes],
            [bias.detach().numpy() for bias in biases],
        )

    def predict_margin(self, model: Network, X: FeaturesLike) -> Floats:
        """Raw log-odds of a block of rows, shape (rows, g)."""
        # In float64, so that float32 scores do not depend on how rows are cut into blocks.
        rows = Standardised(_as_rows(X), model.means, model.scales)
        layers = [
            (slope.astype(np.float64), bias)
            for slope, bias in zip(model.slopes, model.biases, strict=True)
        ]
        n_rows = rows.X.shape[0]
        margins = np.empty((n_rows, model.biases[-1].size))
        widest = max(rows.X.shape[1], *(bias.size for bias in model.biases))
        step = max(1, _PREDICT_BYTES // (8 * widest))
        for start in range(0, n_rows, step):
            cells = rows.take(slice(start, start + step))
            for slope, bias in layers[:-1]:
                cells = np.maximum(cells @ slope + bias, 0)
            margins[start : start + step] = cells @ layers[-1][0] + layers[-1][1]
        return margins

    def predict_stored(self, model: Network, X: FeaturesLike) -> NDArray[np.float32]:
        """Probabilities of all rows from one pass of the network in float32, as in torch."""
        cells = Standardised(_as_rows(X), model.means, model.scales).take(slice(None))
        slopes = [torch.from_numpy(np.ascontiguousarray(slope.T)) for slope in model.slopes]
        biases = [torch.from_numpy(bias) for bias in model.biases]
        with torch.no_grad():
            margins = _forward(torch.from_numpy(cells.astype(np.float32)), slopes, biases)
            return np.asarray(torch.sigmoid(margins).numpy())

    def dump(self, model: Network) -> bytes:
        """Layers and standardisation as .npz, without pickle."""
        arrays: dict[str, Any] = {"means": model.means, "scales": model.scales}
        for at, (slope, bias) in enumerate(zip(model.slopes, model.biases, strict=True)):
            arrays |= {f"slope{at}": slope, f"bias{at}": bias}
        return pack_npz(arrays)

    def load(
        self, data: bytes, n_labels: int | None = None, n_features: int | None = None
    ) -> Network:
        """The dumped model."""
        arrays = read_arrays(data)
        depth = range(check_layers(arrays, n_labels, n_features))
        return Network(
            arrays["means"],
            arrays["scales"],
            [arrays[f"slope{at}"] for at in depth],
            [arrays[f"bias{at}"] for at in depth],
        )


def _as_rows(X: FeaturesLike) -> FeaturesLike:
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)


def _check_parameters(parameters: Parameters) -> None:
    hidden, rate = parameters["hidden"], parameters["learning_rate"]
    decay = parameters["weight_decay"]
    if not isinstance(hidden, list | tuple):
        raise InvalidInput(f"hidden must list the widths of the layers, got {hidden!r:.60}.")
    for width in hidden:
        check_whole("a width of hidden", width, 1, MAX_HIDDEN)
    check_whole("epochs", parameters["epochs"], 0)
    check_whole("batch_rows", parameters["batch_rows"], 1)
    if not (is_number(rate) and 0 < rate < math.inf):
        raise InvalidInput(f"learning_rate must be above 0, got learning_rate={rate!r:.60}.")
    if not (is_number(decay) and 0 <= decay < math.inf):
        raise InvalidInput(f"weight_decay must be at least 0, got weight_decay={decay!r:.60}.")
    for name in ("constants", "centre"):
        if not isinstance(parameters[name], bool | np.bool_):
            raise InvalidInput(f"{name} must be a bool, got {parameters[name]!r:.60}.")


def _first_layers(
    widths: list[int], generator: torch.Generator
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Layers initialised as by ``torch.nn.Linear``, with this generator."""
    slopes: list[torch.Tensor] = []
    biases: list[torch.Tensor] = []
    for n_inputs, n_outputs in pairwise(widths):
        bound = 1 / math.sqrt(n_inputs)
        for tensors, shape in ((slopes, (n_outputs, n_inputs)), (biases, (n_outputs,))):
            layer = torch.empty(shape, dtype=torch.float32, device="cpu")
            tensors.append(layer.uniform_(-bound, bound, generator=generator).requires_grad_())
    return slopes, biases


def _forward(
    batch: torch.Tensor, slopes: list[torch.Tensor], biases: list[torch.Tensor]
) -> torch.Tensor:
    for slope, bias in zip(slopes[:-1], biases[:-1], strict=True):
        batch = relu(linear(batch, slope, bias))
    return linear(batch, slopes[-1], biases[-1])


BACKEND = MLPBackend()
