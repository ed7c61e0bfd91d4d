"""LightGBM, one-vs-rest, in two modes on one binned Dataset.

``grouped`` trains a group of labels as one Booster, since creating a Booster costs more than
growing the trees of a label. Gradients equal those of LightGBM's binary objective to the last bit,
so the trees are the same. ``exact`` is the plain loop over labels. Either way every arm starts from
the unweighted mean of its label, as LightGBM does.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from oddslip.adapters.forest import LAY_AFTER, Forest, lay_forest
from oddslip.core.arguments import check_whole
from oddslip.core.types import FeaturesLike, Floats
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.json import parse_json
from oddslip.kernels.trees import weigh_gradients
from oddslip.learners.backends.base import Backend, Parameters, refusals
from oddslip.learners.model_validation.head import cut_parts
from oddslip.learners.model_validation.lightgbm import check_model_text

_DEFAULTS: Parameters = {
    "num_iterations": 200,
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "max_delta_step": 0.0,
    "mode": "grouped",
    "threads": 1,
    "seed": 42,
}
_ALIASES = {
    "num_iterations": "num_iteration n_iter num_tree num_trees num_round num_rounds nrounds "
    "num_boost_round n_estimators max_iter",
    "learning_rate": "shrinkage_rate eta",
    "num_leaves": "num_leaf max_leaves max_leaf max_leaf_nodes",
    "min_data_in_leaf": "min_data_per_leaf min_data min_child_samples min_samples_leaf",
    "max_delta_step": "max_tree_output max_leaf_output",
}
_CANONICAL = {alias: name for name, text in _ALIASES.items() for alias in text.split()}
# Set by OneVsRest: the loss, its weights, the threads and the seed.
_RESERVED = {
    *("objective", "objective_type", "app", "application", "loss", "num_class", "num_classes"),
    *("scale_pos_weight", "is_unbalance", "unbalance", "unbalanced_sets", "sigmoid"),
    *("num_threads", "num_thread", "nthread", "nthreads", "n_jobs"),
    *("seed", "random_seed", "random_state", "verbosity", "verbose"),
    *("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change"),
}
# Values that are safe in groups. Others draw at random per tree, or use all labels of a Booster.
_SAFE_IN_GROUPS = {
    "boosting": ("gbdt", "gbrt"),
    "data_sample_strategy": ("bagging",),
    "feature_fraction": (1, 1.0),
    "colsample_bytree": (1, 1.0),
    "feature_fraction_bynode": (1, 1.0),
    "extra_trees": (False,),
    "pos_bagging_fraction": (1, 1.0),
    "neg_bagging_fraction": (1, 1.0),
    "use_quantized_grad": (False,),
    "linear_tree": (False,),
}
_CELL_BYTES = 40  # per label and row in training: score, its copy, derivatives, label
_MAX_GROUP_SIZE = 64  # larger groups save little, and a checkpoint stores whole groups

_FORKED = Event()  # set in a process that was forked after this import
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_FORKED.set)

_LAYOUT_LOCK = Lock()  # global, since a model that holds a lock cannot be copied


@dataclass
class GroupModel:
    """Trees and initial margins of a group of labels.

    There is one Booster for all labels, one for each, or none if no feature can be split.
    """

    boosters: tuple[lgb.Booster, ...]
    starts: Floats  # added to the Booster's sums; zero if its trees include it
    forest: Forest | None = None  # the layout of the trees, once enough rows were scored
    n_scored: int = 0
    unsupported: bool = False  # whether the layout does not support these trees

    def sum_rows(self, rows: FeaturesLike) -> Floats:
        """Sums of the trees, by LightGBM or by the layout, with the same bits."""
        self.n_scored += rows.shape[0]
        if self.boosters and self.n_scored >= LAY_AFTER and not (self.forest or self.unsupported):
            with _LAYOUT_LOCK:
                if not (self.forest or self.unsupported):
                    self.forest = lay_forest([b.model_to_string() for b in self.boosters])
                    self.unsupported = self.forest is None
        if self.forest is not None:
            return self.forest.sum_rows(rows)
        return self.sum_rounds(rows)

    def sum_rounds(self, rows: FeaturesLike, **rounds: Any) -> Floats:
        """Sums of the trees by LightGBM: of all, or of some rounds."""
        if not self.boosters:
            return np.zeros((rows.shape[0], self.starts.size))
        sums = [
            np.asarray(booster.predict(rows, raw_score=True, num_threads=1, **rounds), np.float64)
            for booster in self.boosters
        ]
        return np.column_stack(sums)


class LightGBM(Backend):
    """The backend. See `oddslip.learners.backends.base.Backend`."""

    name = "lightgbm"
    extension = ".lgb.txt"

    def defaults(self) -> Parameters:
        """The paper's default LightGBM (its section 4)."""
        return dict(_DEFAULTS)

    def versions(self) -> dict[str, str]:
        """Versions of the packages on which the trained bits depend."""
        return {"lightgbm": lgb.__version__, "numpy": np.__version__}

    def canonical(self, parameters: Parameters) -> Parameters:
        """Parameters under LightGBM's main names; those that `OneVsRest` sets are an error."""
        result = {}
        for key, value in parameters.items():
            if key in _RESERVED:
                raise InvalidInput(
                    f"parameters must not hold {key!r}: OneVsRest sets it. "
                    "See its arguments weights, seed and threads."
                )
            result[_CANONICAL.get(key, key)] = value
        return result

    def workers(self, parameters: Parameters, threads: int) -> int:
        """Groups in parallel, one thread each; the exact loop uses all threads for one label."""
        return threads if parameters["mode"] == "grouped" else 1

    def prepare(self, X: FeaturesLike, parameters: Parameters) -> lgb.Dataset:
        """The binned Dataset that all labels and arms share."""
        _check_mode(parameters)
        _check_constraints(parameters, X.shape[1])
        shared = {**_booster_parameters(parameters), "objective": "none"}
        with refusals("LightGBM", lgb.basic.LightGBMError):
            return lgb.Dataset(
                _as_floats(X), np.zeros(X.shape[0], np.float32), params=shared
            ).construct()

    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels that fit into the memory, at most `_MAX_GROUP_SIZE`."""
        fitting = memory_bytes // (_CELL_BYTES * max(1, n_rows))
        return int(max(1, min(n_labels, fitting, _MAX_GROUP_SIZE)))

    @refusals("LightGBM", lgb.basic.LightGBMError)
    def train(
        self,
        prepared: lgb.Dataset,
        Y: NDArray[np.uint8],
        weights: Floats,
        parameters: Parameters,
        seed: int,
    ) -> GroupModel:
        """Grow the trees of a group."""
        _check_mode(parameters)
        settings = _booster_parameters({**parameters, "seed": seed})
        rounds = check_whole("num_iterations", parameters["num_iterations"])
        if parameters["mode"] == "exact":
            boosters = [
                _grow_alone(prepared, Y[:, j], float(weights[j]), settings, rounds)
                for j in range(Y.shape[1])
            ]
            return GroupModel(tuple(boosters), np.zeros(Y.shape[1]))
        means = np.array([start_margin(Y[:, j]) for j in range(Y.shape[1])])
        if not _can_split(prepared):
            return GroupModel((), means)
        starts = (
            means.copy() if parameters.get("boost_from_average", True) else np.zeros(means.size)
        )
        booster = _grow_together(prepared, Y, starts, weights, settings, rounds, unsplit=means)
        return GroupModel((booster,), starts)

    def predict_margin(self, model: GroupModel, X: FeaturesLike) -> Floats:
        """Log-odds of every label of the group, on one thread."""
        with refusals("LightGBM", lgb.basic.LightGBMError):
            return model.sum_rows(_as_floats(X)) + model.starts

    def n_rounds(self, model: GroupModel) -> int:
        """Rounds of boosting."""
        return max((booster.current_iteration() for booster in model.boosters), default=0)

    def stage(self, model: GroupModel, X: FeaturesLike, start: int, stop: int) -> Floats:
        """Log-odds added by some rounds."""
        sums = model.sum_rounds(_as_floats(X), start_iteration=start, num_iteration=stop - start)
        return sums + model.starts if start == 0 else sums

    def cut(self, model: GroupModel, n_rounds: int) -> GroupModel:
        """The same model with only its first rounds."""
        texts = [booster.model_to_string(num_iteration=n_rounds) for booster in model.boosters]
        return GroupModel(tuple(_from_text(text) for text in texts), model.starts)

    def dump(self, model: GroupModel) -> bytes:
        """A line of JSON, then the Boosters as LightGBM writes them."""
        texts = [booster.model_to_string().encode() for booster in model.boosters]
        head = {"starts": model.starts.tolist(), "lengths": [len(text) for text in texts]}
        return json.dumps(head).encode() + b"\n" + b"".join(texts)

    def load(
        self, data: bytes, n_labels: int | None = None, n_features: int | None = None
    ) -> GroupModel:
        """The dumped group."""
        head, _, rest = data.partition(b"\n")
        try:
            stored = parse_json(head)
            starts, lengths = np.array(stored["starts"], np.float64), stored["lengths"]
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableFile("a group of labels is not one of LightGBM's.") from error
        texts = [part.decode("latin-1") for part in cut_parts(rest, lengths)]
        n_trained = sum(check_model_text(text, n_features) for text in texts)
        labels = starts.size if n_labels is None else n_labels
        if starts.shape != (labels,) or not np.isfinite(starts).all():
            raise UnreadableFile(f"a group of labels must start from {labels} finite margins.")
        if texts and n_trained != labels:
            raise UnreadableFile(f"a group must have trees for {labels} labels, got {n_trained}.")
        return GroupModel(tuple(_from_text(text) for text in texts), starts)


BACKEND = LightGBM()


def _as_floats(X: FeaturesLike) -> FeaturesLike:
    """Rows in a dtype that LightGBM reads."""
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def start_margin(truth: NDArray[np.uint8]) -> float:
    """Log-odds of the mean of a label, where both arms start whatever the weight.

    Examples
    --------
    >>> start_margin(np.array([1, 0, 0, 0], np.uint8))
    -1.0986122886681098
    """
    mean = int(np.count_nonzero(truth)) / truth.size
    mean = max(min(mean, 1.0 - 1e-15), 1e-15)  # LightGBM's bounds
    return math.log(mean / (1.0 - mean))


def _booster_parameters(parameters: Parameters) -> Parameters:
    settings = {key: value for key, value in parameters.items() if key not in ("mode", "threads")}
    # OpenMP's threads do not exist in a forked process, which would wait for them forever.
    # The trees are the same with one thread.
    threads = 1 if _FORKED.is_set() else int(parameters["threads"])
    settings |= {"num_threads": threads, "verbosity": -1}
    if not (settings.get("force_row_wise") or settings.get("force_col_wise")):
        settings["force_col_wise"] = True  # else every Booster measures both
    return settings


def _check_mode(parameters: Parameters) -> None:
    mode = parameters["mode"]
    if mode not in ("grouped", "exact"):
        raise InvalidInput(f'mode must be "grouped" or "exact", got {mode!r}.')
    if mode == "exact":
        return
    for key, safe in _SAFE_IN_GROUPS.items():
        if key in parameters and parameters[key] not in safe:
            raise InvalidInput(
                f'mode="grouped" must not be used with {key}={parameters[key]!r}: labels of a '
                'group would not get the trees they get alone. Use mode="exact".'
            )


def _check_constraints(parameters: Parameters, n_features: int) -> None:
    """Raise for a missing feature, at which LightGBM would abort the process."""
    for key in ("interaction_constraints", "interaction_constraint"):
        numbers = re.findall(r"-?\d+", str(parameters.get(key, "")))
        unknown = [number for number in numbers if not 0 <= int(number[:18]) < n_features]
        if unknown:
            raise InvalidInput(
                f"{key} must name features from 0 to {n_features - 1}, got {unknown[0][:20]}."
            )


def _can_split(prepared: lgb.Dataset) -> bool:
    """Whether any feature has bins; with none, LightGBM fails to train a group."""
    return any(prepared.feature_num_bin(j) > 0 for j in range(prepared.num_feature()))


def _grow_alone(
    prepared: lgb.Dataset,
    truth: NDArray[np.uint8],
    weight: float,
    settings: Parameters,
    rounds: int,
) -> lgb.Booster:
    prepared.set_label(truth.astype(np.float32))
    objective = {"objective": "binary", "scale_pos_weight": weight}
    booster = lgb.Booster({**settings, **objective}, prepared)
    for _ in range(rounds):
        booster.update()
    return _without_training(booster)


def _grow_together(
    prepared: lgb.Dataset,
    Y: NDArray[np.uint8],
    starts: Floats,
    weights: Floats,
    settings: Parameters,
    rounds: int,
    *,
    unsplit: Floats,
) -> lgb.Booster:
    """One Booster for all labels. A label whose first tree has no split starts at ``unsplit``."""
    n_rows, n_labels = Y.shape
    truths = np.ascontiguousarray(Y.T)
    weights = np.ascontiguousarray(weights, np.float64)
    gradients = np.empty((n_labels, n_rows), np.float32)
    hessians = np.empty_like(gradients)

    def objective(sums: Floats, _: lgb.Dataset) -> tuple[Any, Any]:
        # The Booster's sums and derivatives are in label-major order, so nothing is copied.
        by_label = sums.reshape(n_rows, n_labels, order="F").T
        weigh_gradients(by_label, truths, starts, weights, gradients, hessians)
        return (gradients.T, hessians.T) if n_labels > 1 else (gradients[0], hessians[0])

    # The start is added to the sums and not set in the Dataset, which Boosters on other threads
    # share.
    booster = lgb.Booster({**settings, "objective": "none", "num_class": n_labels}, prepared)
    for number in range(rounds):
        booster.update(fobj=objective)
        if number == 0 and not np.array_equal(starts, unsplit):
            # As LightGBM itself does: without a split, a start from zero becomes the mean.
            trees = booster.dump_model(num_iteration=1)["tree_info"]
            has_no_split = np.array([tree["num_leaves"] == 1 for tree in trees])
            starts[has_no_split] = unsplit[has_no_split]
    return _without_training(booster)


def _without_training(booster: lgb.Booster) -> lgb.Booster:
    """The same trees without the training rows, scores and bins that a Booster holds."""
    return _from_text(booster.model_to_string())


def _from_text(text: str) -> lgb.Booster:
    try:
        return lgb.Booster(model_str=text)
    except (lgb.basic.LightGBMError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(f"a group of labels is damaged ({error}).") from error
