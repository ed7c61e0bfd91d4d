"""XGBoost: one quantised matrix for all labels and arms, one Booster for a group of labels.

XGBoost's multi-label mode has no weight per label, so a custom objective carries it. The objective
repeats the arithmetic of ``binary:logistic`` with ``scale_pos_weight``, float32 operation by
operation, and the trees of a label do not depend on the other labels. A group is therefore
bit-identical to a loop of ``binary:logistic`` models with the same ``base_score`` and the same
float32 weight, however the labels are grouped. (XGBoost parses ``scale_pos_weight`` from text and
misses the last bit of one float64 in fifty.)

By default XGBoost 3 starts from the weighted label mean, so that a weighted arm starts higher than
its twin. Here both arms start from the unweighted mean, unless ``start="weighted"`` asks for
XGBoost's default: then each label is a ``binary:logistic`` Booster of its own.

Where every feature has two values, as words of a text do, only the cells with the rarer value are
stored. The trees are then rewritten to split where those of all cells would. The fewer cells are
stored, the faster the training.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray
from scipy import sparse

from oddslip.core.types import Array, FeaturesLike, Floats
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.json import parse_json
from oddslip.kernels.trees import fill_gradients
from oddslip.learners.backends.base import Backend, Parameters, refusals
from oddslip.learners.model_validation.head import cut_parts
from oddslip.learners.model_validation.xgboost import check_booster

_BYTES_PER_CELL = 32  # margins twice, gradients twice, XGBoost's copies, the label
_ROWS_AT_ONCE = 4_096
_MAX_STORED_SHARE = 0.25  # above this share of cells, storing few cells saves nothing
_LABELS_PER_GROUP = 8  # larger groups save nothing and leave cores idle
_SAMPLERS = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")
_ALIASES = {"eta": "learning_rate", "lambda": "reg_lambda", "num_boost_round": "n_estimators"}
# Set by OneVsRest: the loss, its weights, the start, the threads and the seed.
_RESERVED = {
    *("objective", "scale_pos_weight", "base_score", "num_target", "num_class", "multi_strategy"),
    *("tree_method", "device", "nthread", "n_jobs", "seed", "random_state"),
}
_STARTS = ("mean", "weighted")
_MANY = b"oddslip-boosters\n"
_ZEROS = "oddslip_zeros"


class Prepared(NamedTuple):
    """The quantised rows, and whether cells that are not stored count as missing.

    ``high`` is the upper of two values of each feature, if the matrix only stores those cells.
    """

    matrix: xgb.QuantileDMatrix
    zeros_missing: bool
    high: NDArray[np.float32] | None = None


class BoosterGroup(NamedTuple):
    """Models of a group: one Booster of all its labels, or one for each."""

    boosters: list[xgb.Booster]
    zeros_missing: bool


class XGBoostBackend(Backend):
    """One-vs-rest boosting with XGBoost. Further parameters go to XGBoost as they are.

    In a sparse X the cells that are not stored are missing values, as everywhere in XGBoost; rows
    to be scored are brought into the form that was trained on. With row or column sampling each
    label has a Booster of its own, so that its draws do not depend on its neighbours.
    """

    name = "xgboost"
    extension = ".ubj"

    def defaults(self) -> Parameters:
        """Parameters and their default values."""
        return {
            "n_estimators": 200,
            "learning_rate": 0.05,
            "max_depth": 6,
            "min_child_weight": 1.0,
            "reg_lambda": 1.0,
            "max_bin": 256,
            "max_delta_step": 0.0,
            "start": "mean",
        }

    def canonical(self, parameters: Parameters) -> Parameters:
        """Parameters unchanged, since XGBoost has more than `defaults`."""
        return dict(parameters)

    def versions(self) -> dict[str, str]:
        """Versions of the packages on which the trained bits depend."""
        return {"numpy": np.__version__, "xgboost": xgb.__version__}

    def prepare(self, X: FeaturesLike, parameters: Parameters) -> Prepared:
        """The quantised matrix, without labels, so that threads can share it."""
        _canonical(parameters)
        rows, high = _rows(X), None
        # Other parameters may treat left and right, or present and missing cells, differently.
        if not sparse.issparse(X) and parameters.keys() <= self.defaults().keys():
            present = _find_present(rows)
            if present is not None:
                rows, high = present
        with refusals("XGBoost", xgb.core.XGBoostError):
            matrix = xgb.QuantileDMatrix(rows, max_bin=parameters["max_bin"], nthread=1)
        return Prepared(matrix, bool(sparse.issparse(X)), high)

    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels per group: limited by memory, with enough groups for several threads."""
        fits = memory_bytes // (_BYTES_PER_CELL * max(1, n_rows))
        return int(max(1, min(fits, _LABELS_PER_GROUP, -(-n_labels // 4))))

    def workers(self, parameters: Parameters, threads: int) -> int:
        """Groups in parallel, one thread each, so that results do not depend on the threads."""
        # Boosters of one label each set their label in the shared matrix, one at a time.
        return threads if parameters["start"] == "mean" else 1

    @refusals("XGBoost", xgb.core.XGBoostError)
    def train(
        self,
        prepared: Prepared,
        Y: NDArray[np.uint8],
        weights: Floats,
        parameters: Parameters,
        seed: int,
    ) -> BoosterGroup:
        """Train a group; ``Y`` has shape (n_rows, g), no label all 0 or all 1."""
        n_labels = Y.shape[1]
        if parameters["start"] == "weighted":
            boosters = [
                _boost_alone(prepared, Y[:, j], float(weights[j]), parameters, seed)
                for j in range(n_labels)
            ]
            return BoosterGroup(boosters, prepared.zeros_missing)
        separately = any(float(parameters.get(name, 1)) < 1 for name in _SAMPLERS)
        separately |= parameters.get("booster") == "dart"
        parts = [slice(j, j + 1) for j in range(n_labels)] if separately else [slice(0, n_labels)]
        boosters = [
            _boost(prepared, np.ascontiguousarray(Y[:, part]), weights[part], parameters, seed)
            for part in parts
        ]
        return BoosterGroup(boosters, prepared.zeros_missing)

    def predict_margin(self, model: BoosterGroup, X: FeaturesLike) -> Floats:
        """Raw log-odds of a block of rows, shape (rows, g)."""
        return _sum_rounds(model, X, (0, 0))

    def n_rounds(self, model: BoosterGroup) -> int:
        """Rounds of boosting."""
        return max(booster.num_boosted_rounds() for booster in model.boosters)

    def stage(self, model: BoosterGroup, X: FeaturesLike, start: int, stop: int) -> Floats:
        """Log-odds added by some rounds, in XGBoost's float32."""
        sums = _sum_rounds(model, X, (start, stop))
        # XGBoost adds the initial margin to any range of rounds; it belongs to the first.
        return sums - (_starts(model) if start else 0)

    def cut(self, model: BoosterGroup, n_rounds: int) -> BoosterGroup:
        """The same model with only its first rounds."""
        boosters = []
        for booster in model.boosters:
            short = booster[:n_rounds]
            short.set_param({"nthread": 1})
            boosters.append(_mark(short, model.zeros_missing))
        return BoosterGroup(boosters, model.zeros_missing)

    def predict_stored(self, model: BoosterGroup, X: FeaturesLike) -> NDArray[np.float32]:
        """Probabilities in float32, by XGBoost's own sigmoid."""
        return _predict(model, X, (0, 0), "value")

    def dump(self, model: BoosterGroup) -> bytes:
        """XGBoost's UBJSON of the Booster; several follow a line with their lengths."""
        raws = [bytes(booster.save_raw("ubj")) for booster in model.boosters]
        if len(raws) == 1:
            return raws[0]
        lengths = json.dumps([len(raw) for raw in raws]).encode()
        return b"".join([_MANY, lengths, b"\n", *raws])

    def load(
        self, data: bytes, n_labels: int | None = None, n_features: int | None = None
    ) -> BoosterGroup:
        """The dumped model."""
        raws = [data]
        if data.startswith(_MANY):
            at = data.index(b"\n", len(_MANY)) + 1
            raws = cut_parts(data[at:], parse_json(data[len(_MANY) : at]))
        labels = sum(check_booster(raw, n_features) for raw in raws)
        if n_labels is not None and labels != n_labels:
            raise UnreadableFile(f"a group must have trees for {n_labels} labels, got {labels}.")
        boosters = [_from_raw(raw) for raw in raws]
        return BoosterGroup(boosters, boosters[0].attr(_ZEROS) == "missing")


def _boost(
    prepared: Prepared,
    labels: NDArray[np.uint8],
    weights: Floats,
    parameters: Parameters,
    seed: int,
) -> xgb.Booster:
    """One Booster of all these labels; each starts from its unweighted mean."""
    settings, rounds = _boosting(parameters, seed)
    settings |= {
        "multi_strategy": "one_output_per_tree",
        # Set explicitly, since the matrix has no labels.
        "num_target": labels.shape[1],
        "base_score": [float(mean) for mean in labels.mean(axis=0)],
    }
    gradients = np.empty(labels.shape, np.float32)
    hessians = np.empty(labels.shape, np.float32)
    float32_weights = weights.astype(np.float32)

    def objective(margins: Array, _: object) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        cells = np.ascontiguousarray(margins, np.float32).reshape(labels.shape)
        fill_gradients(cells, labels, float32_weights, gradients, hessians)
        return gradients, hessians

    return _grow(settings, prepared, rounds, obj=objective)


def _boost_alone(
    prepared: Prepared,
    labels: NDArray[np.uint8],
    weight: float,
    parameters: Parameters,
    seed: int,
) -> xgb.Booster:
    """A Booster of one label, as ``XGBClassifier`` trains it: it starts from the weighted mean."""
    settings, rounds = _boosting(parameters, seed)
    settings["scale_pos_weight"] = weight
    prepared.matrix.set_label(np.ascontiguousarray(labels, np.float32))
    return _grow(settings, prepared, rounds)


def _boosting(parameters: Parameters, seed: int) -> tuple[Parameters, int]:
    """Parameters for XGBoost that are common to all labels, and the rounds."""
    settings = _canonical(parameters)
    rounds = int(settings.pop("n_estimators"))
    del settings["start"]
    fixed = {"seed": seed, "nthread": 1, "tree_method": "hist", "objective": "binary:logistic"}
    return settings | fixed, rounds


def _find_present(X: Array) -> tuple[sparse.csr_matrix, NDArray[np.float32]] | None:
    """Cells at the upper of two values, if no feature has more and these cells are few."""
    if not X.size or X.dtype.kind not in "fiub":
        return None
    # XGBoost uses float32.
    low, high = (edge.astype(np.float32) for edge in (X.min(axis=0), X.max(axis=0)))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    blocks = []
    for start in range(0, len(X), _ROWS_AT_ONCE):
        block = X[start : start + _ROWS_AT_ONCE].astype(np.float32, copy=False)
        is_high = block == high
        if not (is_high | (block == low)).all():
            return None
        is_high &= high > low
        if is_high.mean() > _MAX_STORED_SHARE:
            return None
        blocks.append(sparse.csr_matrix(is_high))
    present = sparse.vstack(blocks, format="csr")
    stored = high[present.indices]
    return sparse.csr_matrix((stored, present.indices, present.indptr), shape=X.shape), high


def _split_between(booster: xgb.Booster, high: NDArray[np.float32]) -> xgb.Booster:
    """Trees that split on stored cells, rewritten to split below the upper value."""
    model = json.loads(booster.save_raw("json"))
    for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
        left, right = tree["left_children"], tree["right_children"]
        for node, child in enumerate(left):
            if child < 0:  # a leaf
                continue
            if not tree["default_left"][node]:  # cells that are not stored have the lower value
                left[node], right[node] = right[node], left[node]
                tree["default_left"][node] = 1
            tree["split_conditions"][node] = float(high[tree["split_indices"][node]])
    return _from_raw(json.dumps(model).encode())


def _from_raw(raw: bytes) -> xgb.Booster:
    booster = xgb.Booster()
    booster.load_model(bytearray(raw))
    booster.set_param({"nthread": 1})
    return booster


def _mark(booster: xgb.Booster, zeros_missing: bool) -> xgb.Booster:
    booster.set_attr(**{_ZEROS: "missing" if zeros_missing else "zero"})
    return booster


def _grow(settings: Parameters, prepared: Prepared, rounds: int, **options: Any) -> xgb.Booster:
    booster = xgb.train(settings, prepared.matrix, rounds, **options)
    if prepared.high is not None:
        booster = _split_between(booster, prepared.high)
    return _mark(booster, prepared.zeros_missing)


def _sum_rounds(model: BoosterGroup, X: FeaturesLike, rounds: tuple[int, int]) -> Floats:
    """Margins by a range of rounds, (0, 0) for all."""
    return _predict(model, X, rounds, "margin").astype(np.float64)


def _predict(
    model: BoosterGroup, X: FeaturesLike, rounds: tuple[int, int], what: str
) -> NDArray[np.float32]:
    """XGBoost's predictions; rows are brought into the form of training, sparse or dense."""
    rows = _rows(X)
    if model.zeros_missing and not sparse.issparse(rows):
        rows = sparse.csr_matrix(rows)
    elif not model.zeros_missing and sparse.issparse(rows):
        rows = rows.toarray()
    blocks = [
        np.asarray(
            booster.inplace_predict(rows, predict_type=what, iteration_range=rounds), np.float32
        ).reshape(rows.shape[0], -1)
        for booster in model.boosters
    ]
    return np.hstack(blocks)


def _starts(model: BoosterGroup) -> Floats:
    """Initial log-odds of each label."""
    means = []
    for booster in model.boosters:
        config = json.loads(booster.save_config())["learner"]["learner_model_param"]
        means += [float(mean) for mean in config["base_score"].strip("[]").split(",")]
    probabilities = np.array(means)
    return np.asarray(np.log(probabilities) - np.log1p(-probabilities))


def _canonical(parameters: Parameters) -> Parameters:
    """Parameters under their canonical names; the user's alias overrides a default."""
    settings = {name: value for name, value in parameters.items() if name not in _ALIASES}
    for name in parameters.keys() & _ALIASES.keys():
        settings[_ALIASES[name]] = parameters[name]
    reserved = sorted(settings.keys() & _RESERVED)
    if reserved:
        raise InvalidInput(
            f"parameters must not set {reserved[0]!r}, which OneVsRest sets itself. Leave it out."
        )
    rounds = settings["n_estimators"]
    if not isinstance(rounds, int | np.integer) or rounds < 0:
        raise InvalidInput(f"n_estimators must be at least 0, got n_estimators={rounds!r:.60}.")
    if settings["start"] not in _STARTS:
        raise InvalidInput(
            f"start must be one of {', '.join(_STARTS)}, got start={settings['start']!r:.60}."
        )
    return settings


def _rows(X: FeaturesLike) -> FeaturesLike:
    # XGBoost accepts scipy's matrices and not all of its arrays; nothing is copied here.
    return sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X)


BACKEND = XGBoostBackend()
