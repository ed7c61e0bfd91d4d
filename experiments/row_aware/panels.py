"""Panels of the study: MULAN, Corel16k, GoEmotions, and scores that others published."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.cache import hash_inputs
from experiments.datasets.mulan.files import search_path
from experiments.datasets.mulan.reader import MulanData, read_mulan, split_rows
from experiments.mulan.arms import LEARNERS, SEED, arm_configuration, train_arm
from experiments.mulan.study import DATASETS as MULAN
from experiments.store import CellStore
from oddslip.core.provenance import digest_of
from oddslip.core.weights import balance_ratios
from oddslip.errors import UnreadableFile
from oddslip.io.arrays import read_arrays
from oddslip.io.files import atomic_write
from oddslip.io.progress import progress_bar

K = 7
WEIGHTS = ("1", "r")
COREL16K_SETS = tuple(f"corel16k-{part}" for part in ("002", "003", "004", "006", "007", "008"))
TEXT = "goemotions"
PUBLISHED = ("jamendo", "chexnet")
DATASETS = (*MULAN, *COREL16K_SETS, TEXT, *PUBLISHED)
# Left out for the time that they take.
SKIPPED = {
    "bibtex": ("lightgbm", "xgboost"),
    "corel5k": ("xgboost",),
    "delicious": ("lightgbm", "lightgbm-regularised", "xgboost"),
    COREL16K_SETS[0]: ("lightgbm", "xgboost"),
} | dict.fromkeys(COREL16K_SETS[1:], ("lightgbm", "lightgbm-regularised", "xgboost", "mlp"))

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
# Scores of other texts, by a model of some texts and their labels.
ScoreText = Callable[[list[str], Bools, Sequence[list[str]], str], list[Floats]]


class Scored(NamedTuple):
    """Scores and truth of calibration and test rows; rows of one group share a fold."""

    k: int
    calibration: Floats
    truth: Bools
    test: Floats
    test_truth: Bools
    prior: Floats | None
    weights: Floats | None
    groups: NDArray[np.int64]


class Panel(NamedTuple):
    """A panel by its key: what its scores depend on, and how to load it."""

    key: str
    configuration: dict[str, Any]
    load: Callable[[], Scored]


def measure_panels(
    store: CellStore,
    panels: Mapping[str, Iterable[Panel]],
    measure: Callable[[Panel, dict[str, float]], dict[str, Any]],
    settings: dict[str, Any],
    *,
    command: str,
    suffix: str = "",
) -> None:
    """Measure every panel of some data sets that is not finished yet.

    Parameters
    ----------
    panels : mapping of str to iterable of Panel
        By data set, whose name ``command`` is formatted with.
    measure : callable
        Gets a panel, and the timings of its cell to fill.
    settings : dict
        What a cell depends on besides its panel.
    suffix : str
        Of the key of a cell, behind that of its panel.
    """
    with progress_bar(f"data sets of the study {store.study}", len(panels)) as advance:
        for dataset, each in panels.items():
            for panel in each:
                timings: dict[str, float] = {}
                store.find(
                    panel.key + suffix,
                    panel.configuration | settings,
                    partial(measure, panel, timings),
                    command=command.format(dataset),
                    timings=timings,
                )
            advance(1)


def list_panels(
    name: str, data: Any, work: Path, skipped: Mapping[str, Sequence[str]] = SKIPPED
) -> Iterator[Panel]:
    """Panels of a data set, without those of the learners that are ``skipped`` there.

    Scores that are missing in ``work`` are trained on loading.
    """
    if name == TEXT:
        yield from _list_text(find_folder(TEXT, data), work)
    elif name in PUBLISHED:
        yield _describe_published(name, find_folder(f"published/{name}", data))
    else:
        yield from _list_arms(name, data, work, skipped.get(name, ()))


def find_folder(name: str, data: Any) -> Path:
    """A folder of the data sets."""
    roots = search_path() if data is None else [Path(data)]
    for root in roots:
        if (root / name).is_dir():
            return root / name
    places = ", ".join(str(root) for root in roots)
    raise UnreadableFile(
        f"{name!r} must be a folder of {places}, got none there. Pass --data, or set ODDSLIP_DATA."
    )


def _list_arms(name: str, data: Any, work: Path, skipped: Sequence[str]) -> Iterator[Panel]:
    where: str | Path = name
    if name.startswith("corel16k"):
        where = find_folder("corel16k", data) / name.replace("corel16k-", "Corel16k")
    loaded = read_mulan(where, data=data)
    for learner in LEARNERS:
        if learner in skipped:
            continue
        for weight in WEIGHTS:
            yield Panel(
                f"{name}-{learner}-{weight}",
                arm_configuration(loaded, learner, weight),
                partial(_load_arm, loaded, learner, weight, work / "mulan" / loaded.protocol),
            )


def _load_arm(data: MulanData, learner: str, weight: str, folder: Path) -> Scored:
    arm = train_arm(data, learner, weight, folder)
    return Scored(
        data.k,
        arm.calibration,
        data.Y_train[data.calibration],
        arm.test,
        data.Y_test,
        data.prevalence,
        None if weight == "1" else arm.weights,
        np.arange(data.calibration.size),
    )


def _list_text(folder: Path, work: Path) -> Iterator[Panel]:
    for weight in WEIGHTS:
        about = describe_text(folder, weight)
        load = partial(load_text, folder, about, work / TEXT)
        yield Panel(f"{TEXT}-logistic-{weight}", about, load)


def describe_text(folder: Path, weight: str) -> dict[str, Any]:
    """What scores of GoEmotions depend on: the logistic regression of tf-idf."""
    names = ("train.tsv", "dev.tsv", "test.tsv", "labels.txt")
    return {
        "data": TEXT,
        "inputs": hash_inputs(folder / name for name in names),
        "learner": "logistic",
        "features": "tf-idf of words and pairs in at least 3 texts, sublinear",
        "weight": "balanced" if weight == "r" else "none",
        "seed": SEED,
    }


def load_text(
    folder: Path, about: dict[str, Any], work: Path, score: ScoreText | None = None
) -> Scored:
    """Scores of the texts for calibration and test, by ``score``; trained where missing."""
    n_labels = len((folder / "labels.txt").read_text().split())
    parts = [_read_text(folder / f"{part}.tsv", n_labels) for part in ("train", "dev", "test")]
    (texts, truth), (dev, dev_truth), (test, test_truth) = parts
    path = work / f"{digest_of(about)}.npz"
    if not path.exists():
        scores = (score or _score_text)(texts, truth, (dev, test), about["weight"])
        work.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as unfinished:
            np.savez(unfinished, calibration=scores[0], test=scores[1])
    arrays = read_arrays(path)
    ratios = balance_ratios(truth.sum(axis=0), len(truth))
    return Scored(
        K,
        arrays["calibration"],
        dev_truth,
        arrays["test"],
        test_truth,
        truth.mean(axis=0),
        ratios if about["weight"] == "balanced" else None,
        np.arange(len(dev)),
    )


def _read_text(path: Path, n_labels: int) -> tuple[list[str], Bools]:
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    truth = np.zeros((len(lines), n_labels), np.bool_)
    for row, line in enumerate(lines):
        truth[row, [int(label) for label in line[1].split(",")]] = True
    return [line[0] for line in lines], truth


def _score_text(
    texts: list[str], truth: Bools, others: Sequence[list[str]], weight: str
) -> list[Floats]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)
    fitted = words.fit_transform(texts)
    rows = [words.transform(each) for each in others]
    scores = [np.empty((len(each), truth.shape[1])) for each in others]
    for label in range(truth.shape[1]):
        model = LogisticRegression(
            class_weight="balanced" if weight == "balanced" else None,
            solver="liblinear",
            random_state=SEED,
        )
        model.fit(fitted, truth[:, label])
        for table, X in zip(scores, rows, strict=True):
            table[:, label] = model.predict_proba(X)[:, 1]
    return scores


def _describe_published(name: str, folder: Path) -> Panel:
    about = {"data": name, "inputs": hash_published(name, folder), "seed": SEED}
    return Panel(f"{name}-published", about, lambda: split_groups(*read_published(name, folder)))


def hash_published(name: str, folder: Path) -> dict[str, str]:
    """Hashes of the files of published scores."""
    return hash_inputs(folder / each for each in {"jamendo": JAMENDO, "chexnet": CHEXNET}[name])


def read_published(name: str, folder: Path) -> tuple[Floats, Bools, list[str]]:
    """Scores, truth, and the artist or patient of each row."""
    return {"jamendo": _read_jamendo, "chexnet": _read_chexnet}[name](folder)


JAMENDO = (
    "baseline_vggish_predictions.npy",
    "groundtruth.npy",
    "autotagging_moodtheme-test.tsv",
)
CHEXNET = ("preds.csv", "train_list.txt", "val_list.txt", "test_list.txt")


def _read_jamendo(folder: Path) -> tuple[Floats, Bools, list[str]]:
    scores, truth = (np.load(folder / name, allow_pickle=False) for name in JAMENDO[:2])
    lines = (folder / JAMENDO[2]).read_text("utf-8").splitlines()[1:]
    return scores, truth, [line.split("\t")[1] for line in lines]  # by artist


def _read_chexnet(folder: Path) -> tuple[Floats, Bools, list[str]]:
    findings = {}
    for name in CHEXNET[1:]:
        for line in (folder / name).read_text().splitlines():
            image, *flags = line.split()
            findings[image] = [flag == "1" for flag in flags]
    with (folder / CHEXNET[0]).open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    scores = np.array([row[1:] for row in rows], np.float64)
    truth = np.array([findings[row[0]] for row in rows], np.bool_)
    return scores, truth, [row[0].split("_")[0] for row in rows]  # by patient


def split_groups(scores: Any, truth: Bools, names: Sequence[str]) -> Scored:
    """Published rows, split like those of MULAN: 30% of the groups calibrate, the rest test."""
    groups = np.unique(names, return_inverse=True)[1]
    calibrating, _ = split_rows(int(groups.max()) + 1, Path("groups"))
    inside = np.isin(groups, calibrating)
    scores = np.asarray(scores, np.float64)
    k = min(K, scores.shape[1])
    sides = scores[inside], truth[inside], scores[~inside], truth[~inside]
    return Scored(k, *sides, None, None, groups[inside])
