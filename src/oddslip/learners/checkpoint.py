"""Trained groups on disk: in a folder during training, in one file when it is done."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from oddslip.core.types import FilePath, Ints, JsonObject
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.io.arrays import check_archive
from oddslip.io.container import older_kind, read_container, read_start, write_container
from oddslip.io.files import atomic_write, hash_bytes, lock
from oddslip.io.inputs import input_path, read_bytes
from oddslip.io.json import parse_json, read_json, verify_checksum, with_checksum
from oddslip.io.paths import check_path
from oddslip.learners.backends.base import Backend
from oddslip.learners.model_validation.head import DAMAGED, check_groups, load_group

CHECKPOINT_FORMAT = 2  # since 2 the plan has a checksum
_MANIFEST = "training.json"
ZIP_FORMAT = 1  # of models up to version 0.2
_HEAD = "model.json"
OLD_EXTENSION = (
    "a model must be saved as .oddmodel, got {path}. The ending .oddslip is for repairs; "
    "a later version will refuse it here."
)


@contextmanager
def lock_checkpoint(folder: FilePath | None) -> Iterator[None]:
    """Be the only training that writes a folder of finished groups; does nothing for None."""
    if folder is None:
        yield
        return
    folder = check_path("checkpoint", folder)
    _make_folder(folder)
    with lock(folder / _MANIFEST):
        yield


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableFile(
            f"checkpoint {folder} must be a folder that can be written ({error.strerror})."
        ) from error


class Checkpoint:
    """A folder of finished groups.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    configuration : dict
        Everything that the result depends on, as plain JSON values: learner, parameters, seed,
        versions, fingerprints of features, labels and weights.
    groups : list of ndarray
        The plan. A plan that the folder already has takes precedence.
    backend : Backend
        Writes and reads a group.
    """

    def __init__(
        self,
        folder: FilePath,
        configuration: JsonObject,
        groups: list[Ints],
        backend: Backend,
    ) -> None:
        self.folder, self.backend = check_path("checkpoint", folder), backend
        _make_folder(self.folder)
        configuration = json.loads(json.dumps(configuration))
        manifest = self._read_manifest()
        if manifest is None:
            self.groups = groups
            self._write_manifest(configuration)
            return
        self._check_same(manifest["configuration"], configuration)
        try:
            self.groups = check_groups(manifest["groups"], np.sort(np.concatenate([[], *groups])))
        except ValueError as error:
            raise UnreadableFile(
                f"{self.folder / _MANIFEST} was altered ({error}). "
                "Remove the folder to start again."
            ) from error
        if manifest["format"] != CHECKPOINT_FORMAT:
            self._write_manifest(configuration)  # with a checksum
        for leftover in self.folder.glob(".group-*"):  # of a write that was killed
            leftover.unlink(missing_ok=True)

    def _read_manifest(self) -> JsonObject | None:
        path = self.folder / _MANIFEST
        if not path.exists():
            return None
        try:
            document = read_json(path)
            if document["format"] not in (1, CHECKPOINT_FORMAT):
                raise ValueError(f"format {document['format']}, not {CHECKPOINT_FORMAT}")
            manifest = verify_checksum(document, required=document["format"] != 1)
            _ = manifest["groups"], manifest["configuration"].items()
            # Checkpoints of 0.1 list the version of Python's json, which does not matter.
            manifest["configuration"].get("versions", {}).pop("json", None)
        except UnreadableFile:
            raise
        except DAMAGED as error:
            raise UnreadableFile(
                f"{path} is not a checkpoint of this version, or was altered "
                f"({first_line(error)}). "
                "Choose an empty folder, or remove this one to start again."
            ) from error
        return manifest

    def _write_manifest(self, configuration: JsonObject) -> None:
        manifest = {
            "format": CHECKPOINT_FORMAT,
            "configuration": configuration,
            "groups": [group.tolist() for group in self.groups],
        }
        with atomic_write(self.folder / _MANIFEST) as unfinished:
            unfinished.write_text(json.dumps(with_checksum(manifest), indent=1), encoding="utf-8")

    def _check_same(self, earlier: JsonObject, configuration: JsonObject) -> None:
        differences = sorted(
            key
            for key in earlier.keys() | configuration.keys()
            if earlier.get(key) != configuration.get(key)
        )
        if differences:
            raise InvalidInput(
                f"checkpoint {self.folder} must belong to this training, got one with other "
                f"{', '.join(differences)}. Choose an empty folder, or remove this one."
            )

    def finished_models(self, n_features: int) -> dict[int, object]:
        """Load the models of finished groups, by number."""
        models = {}
        for number in range(len(self.groups)):
            path = group_path(self.folder, number, self.backend)
            if path.exists():
                body = read_group(path)
                try:
                    models[number] = load_group(
                        self.backend, body, self.groups[number].size, n_features
                    )
                except UnreadableFile as error:
                    raise UnreadableFile(f"{path}: {error} Remove it to train it again.") from error
        return models

    def keep(self, number: int, model: object) -> None:
        """Write a finished group."""
        write_group(group_path(self.folder, number, self.backend), self.backend.dump(model))


def is_checkpoint(folder: Path) -> bool:
    """Whether a training stores its groups in this folder."""
    return (folder / _MANIFEST).exists()


def group_path(folder: Path, number: int, backend: Backend) -> Path:
    """The path of a finished group."""
    return folder / f"group-{number:05d}{backend.extension}"


def write_group(path: Path, body: bytes) -> None:
    """Write the bytes of a finished group, atomically."""
    write_container(path, "group", {}, {"model": body})


def read_group(path: Path) -> bytes:
    """Read the bytes of a finished group, of this version or an older one."""
    if older_kind(read_start(path)) != "group":
        container = read_container(path, "group")
        if set(container.blobs) != {"model"}:
            raise UnreadableFile(f"{path} holds no model. Remove it to train it again.")
        return container.blobs["model"]
    digest, _, body = read_bytes(path).partition(b"\n")
    if hash_bytes(body).encode() != digest:
        raise UnreadableFile(
            f"{path} was altered since it was written. Remove it to train it again."
        )
    return body


def write_model(path: FilePath, head: JsonObject, groups: dict[str, bytes]) -> None:
    """Write the head and the named groups of a model, atomically.

    Parameters
    ----------
    path : path
        Ends in ``.oddmodel``. A model saved as ``.oddslip``, as up to version 0.2, gets a warning.
    head : dict
        JSON values: what the model was trained on, and which labels are in which group.
    groups : dict of str to bytes

    Examples
    --------
    >>> write_model("m.oddmodel", {"seed": 1}, {"group-00000.npz": b"..."})  # doctest: +SKIP
    """
    if check_path("an output", path).suffix == ".oddslip":
        warnings.warn(OLD_EXTENSION.format(path=path), FutureWarning, stacklevel=3)
    texts = [name for name in groups if name.endswith((".json", ".txt"))]
    write_container(path, "model", head, groups, compress=texts)


def read_model(path: FilePath) -> tuple[JsonObject, list[bytes]]:
    """Read the head and the groups of a model, in their order, of this version or an older one.

    Parameters
    ----------
    path : path

    Returns
    -------
    head : dict
    groups : list of bytes

    Examples
    --------
    >>> read_model("m.oddmodel")[0]["n_rows"]  # doctest: +SKIP
    240
    """
    path = input_path(path)
    if read_start(path)[:2] == b"PK":
        return _read_zip(path)
    container = read_container(path, "model")
    return container.meta, list(container.blobs.values())


def _read_zip(path: Path) -> tuple[JsonObject, list[bytes]]:
    """A model of version 0.1 or 0.2: a ZIP archive whose head lists the SHA-256 of each group."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_archive(archive, path)
            head: JsonObject = parse_json(archive.read(_HEAD))
            if head["format"] != ZIP_FORMAT:
                raise UnreadableFile(
                    f"{path} has format {head['format']!r:.30}, this version reads {ZIP_FORMAT}. "
                    "Update oddslip."
                )
            groups = []
            for name, digest in head["sha256"].items():
                body = archive.read(name)
                if hash_bytes(body) != digest:
                    raise UnreadableFile(f"{path} was altered: {name} does not match its checksum.")
                groups.append(body)
    except UnreadableFile:
        raise
    except DAMAGED as error:
        raise UnreadableFile(
            f"{path} is cut short or not a saved model ({first_line(error)})."
        ) from error
    return head, groups
