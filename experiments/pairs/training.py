"""Where arms are trained and scored: features prepared once, scores streamed to files.

Nothing of size rows x labels is held in memory. A killed run continues with the groups of labels
and the blocks of rows that are missing, and ends with the same files.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.recommendation import Recommendation
from experiments.pairs.arms import DRAWN_SHARE, EARLIER, LEARNERS, SEED, Arm
from experiments.store import WEIGHTS, Stages, stage
from oddslip.adapters.features import hash_features
from oddslip.core.provenance import digest_of
from oddslip.core.results import plain
from oddslip.core.weights import resolve_weights
from oddslip.errors import UnreadableFile, first_line
from oddslip.io.files import atomic_write, hash_file
from oddslip.io.json import read_json, verify_checksum, with_checksum
from oddslip.learners import OneVsRest, score_to_file


@dataclass(frozen=True, slots=True, eq=False)
class ArmScores:
    """Files of an arm's probabilities (float32), and what it knew of its training rows."""

    validation: Path
    test: Path
    weights: NDArray[np.float64]
    prior: NDArray[np.float64]
    stages: Stages

    def hashes(self) -> dict[str, str]:
        """SHA-256 of the files."""
        return {name: hash_file(getattr(self, name)) for name in ("validation", "test")}


def data_configuration(data: Recommendation) -> dict[str, Any]:
    """All that depends on the data: which files, read with which choices."""
    return {
        "name": data.name,
        "inputs": data.sha256,
        "settings": data.settings,
        "n_labels": data.n_labels,
        "rows": data.describe()["rows"],
        # Readers change too: the same file may become other features.
        "features": hash_features(data.train.X),
    }


def draw_rows(n_rows: int, draw: int) -> NDArray[np.int64] | None:
    """Training rows of a draw, in order; None for all of them.

    Every row is drawn by chance, with the seeds 0, 1 and 2. So drawn, the paper's two data sets
    have just the numbers of rows that its supplement prints.

    Examples
    --------
    >>> draw_rows(131_209, 1).size
    118219
    """
    if draw == 0:
        return None
    mask = np.random.default_rng(draw - 1).random(n_rows) < DRAWN_SHARE
    return np.flatnonzero(mask)


def _read_stages(path: Path) -> Stages:
    try:
        stages: Stages = verify_checksum(read_json(path), required=False)["stages"]
    except (ValueError, KeyError) as error:
        raise UnreadableFile(
            f"{path} is damaged or was altered ({first_line(error)}). Remove its folder to train "
            "that arm again."
        ) from error
    return stages


class Bench:
    """Trains and scores the arms of one data set.

    Examples
    --------
    >>> scores = Bench(data, Path(".work/tafeng")).scores(Arm("mlp", "r"))  # doctest: +SKIP
    """

    def __init__(self, data: Recommendation, folder: Path) -> None:
        self.data, self.folder = data, folder
        self.configuration = data_configuration(data)
        self._ready: tuple[tuple[str, int, str], Any] | None = None

    def _folder_of(self, arm: Arm) -> tuple[Path, dict[str, Any]]:
        configuration = {"data": self.configuration, "arm": arm.configuration()}
        return self.folder / digest_of(configuration), configuration

    def has_scores(self, arm: Arm) -> bool:
        """Whether the scores of an arm, and of its twin where it is weighted, are on disk."""
        return all(
            (self._folder_of(each)[0] / "finished.json").exists() for each in {arm, arm.twin}
        )

    def scores(self, arm: Arm) -> ArmScores:
        """Scores of an arm: from disk if they are there, else trained."""
        folder, configuration = self._folder_of(arm)
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: folder / f"{name}.npy" for name in ("validation", "test")}
        marker = folder / "finished.json"
        if not marker.exists():
            log = self._train(arm, folder / "training", files)
            with atomic_write(marker) as unfinished:
                note = with_checksum(plain(configuration | {"stages": log}))
                unfinished.write_text(json.dumps(note, indent=1), "utf-8")
        # Trained models have done their work; of thousands of labels they fill the disk.
        shutil.rmtree(folder / "training", ignore_errors=True)
        stages = _read_stages(marker)
        Y = self._labels(arm.draw)
        positives = np.bincount(Y.indices, minlength=self.data.n_labels)
        return ArmScores(
            **files,
            weights=resolve_weights(WEIGHTS[arm.weight], positives, Y.shape[0]),
            prior=positives / Y.shape[0],
            stages=stages,
        )

    def _train(self, arm: Arm, checkpoint: Path, files: dict[str, Path]) -> Stages:
        log: Stages = {}
        model = OneVsRest(
            arm.learner,
            weights=WEIGHTS[arm.weight],
            max_delta_step=arm.cap or 0.0,
            preset=LEARNERS[arm.learner],
            parameters=EARLIER if arm.variant == "earlier" else None,
            mode=arm.mode,
            seed=SEED,
            checkpoint=checkpoint,
        )
        with stage(log, "prepare"):
            prepared = self._prepare(arm, model)
        with stage(log, "train"):
            model.fit(prepared, self._labels(arm.draw))
        with stage(log, "score"):
            for name, path in files.items():
                if not path.exists():
                    score_to_file(model, getattr(self.data, name).X, path)
        return log

    def _prepare(self, arm: Arm, model: OneVsRest) -> Any:
        """Features made ready for a learner and a draw; kept until another is asked for."""
        key = (arm.learner, arm.draw, arm.variant)
        if self._ready is None or self._ready[0] != key:
            self._ready = None  # let go of the last before the next is made
            rows = draw_rows(self.data.train.n_rows, arm.draw)
            X = self.data.train.X if rows is None else self.data.train.X[rows]
            self._ready = (key, model.prepare(X))
        return self._ready[1]

    def _labels(self, draw: int) -> Any:
        rows = draw_rows(self.data.train.n_rows, draw)
        return self.data.train.Y if rows is None else self.data.train.Y[rows]
