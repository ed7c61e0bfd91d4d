"""Finished groups of a long training, kept in a folder.

The folder holds ``training.json``, which says what is trained, and one file per finished group.
Every file is written whole or not at all, so a killed training continues with the groups that are
missing and ends with the same bits. A folder of another training is refused.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.learners.backends import Backend
from oddslip.sources.sinks import whole_file

FORMAT = 1
_MANIFEST = "training.json"


class Checkpoint:
    """A folder of finished groups.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    configuration : dict
        Everything the outcome depends on, as plain JSON values: learner, parameters, seed,
        versions, fingerprints of features, labels and weights.
    groups : list of ndarray
        The plan. If the folder has one already, that plan is followed.
    backend : Backend
        Who writes and reads a group.
    """

    def __init__(
        self,
        folder: Any,
        configuration: dict[str, Any],
        groups: list[NDArray[np.int64]],
        backend: Backend,
    ) -> None:
        self.folder, self.backend = Path(folder), backend
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnreadableFile(
                f"checkpoint {folder} must be a folder that can be written ({error.strerror})."
            ) from error
        configuration = json.loads(json.dumps(configuration))
        stored = self._read_manifest()
        if stored is None:
            self.groups = groups
            self._write_manifest(configuration)
            return
        self._check_same(stored["configuration"], configuration)
        self.groups = [np.array(group, np.int64) for group in stored["groups"]]
        for leftover in self.folder.glob(".group-*"):  # of a write that was killed
            leftover.unlink(missing_ok=True)

    def _read_manifest(self) -> dict[str, Any] | None:
        path = self.folder / _MANIFEST
        if not path.exists():
            return None
        try:
            stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if stored["format"] != FORMAT:
                raise ValueError(f"format {stored['format']}, not {FORMAT}")
            _ = stored["groups"], stored["configuration"].items()
            # Earlier checkpoints name Python's json too, on which no trained bit depends.
            stored["configuration"].get("versions", {}).pop("json", None)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableFile(
                f"{path} is not a checkpoint of this version ({error}). "
                "Choose an empty folder, or remove this one to start again."
            ) from error
        return stored

    def _write_manifest(self, configuration: dict[str, Any]) -> None:
        told = {
            "format": FORMAT,
            "configuration": configuration,
            "groups": [group.tolist() for group in self.groups],
        }
        with whole_file(self.folder / _MANIFEST) as unfinished:
            unfinished.write_text(json.dumps(told, indent=1), encoding="utf-8")

    def _check_same(self, stored: dict[str, Any], configuration: dict[str, Any]) -> None:
        differing = sorted(
            key
            for key in stored.keys() | configuration.keys()
            if stored.get(key) != configuration.get(key)
        )
        if differing:
            raise InvalidInput(
                f"checkpoint {self.folder} must belong to this training, got one with other "
                f"{', '.join(differing)}. Choose an empty folder, or remove this one."
            )

    def _path(self, number: int) -> Path:
        return self.folder / f"group-{number:05d}{self.backend.extension}"

    def finished(self) -> dict[int, Any]:
        """Models of the groups that are finished, by number."""
        models = {}
        for number in range(len(self.groups)):
            path = self._path(number)
            if path.exists():
                digest, _, body = path.read_bytes().partition(b"\n")
                if hashlib.sha256(body).hexdigest().encode() != digest:
                    raise UnreadableFile(
                        f"{path} was altered since it was written. Remove it to train it again."
                    )
                models[number] = self.backend.load(body)
        return models

    def keep(self, number: int, model: Any) -> None:
        """Write a finished group."""
        body = self.backend.dump(model)
        with whole_file(self._path(number)) as unfinished:
            unfinished.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
