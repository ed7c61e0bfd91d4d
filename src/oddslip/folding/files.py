"""`fold_files`: saved models of other libraries with a repair inside, as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from oddslip.core.row_ids import match_labels
from oddslip.core.types import FilePath
from oddslip.errors import InvalidInput, MissingDependency, UnreadableFile, first_line
from oddslip.folding.affine import Affine, affine_of
from oddslip.folding.boosters import fold_lightgbm_text, fold_xgboost, fold_xgboost_document
from oddslip.folding.networks import fold_onnx
from oddslip.io.files import output_folder, write_bytes
from oddslip.io.inputs import read_bytes
from oddslip.io.json import parse_json
from oddslip.io.paths import natural
from oddslip.io.progress import progress_bar
from oddslip.repairs.fitted_repair import FittedRepair


def fold_files(repair: FittedRepair, models: Sequence[FilePath], folder: FilePath) -> list[Path]:
    """Write a repair into saved models: one file per label, or one of all labels.

    Parameters
    ----------
    repair : FittedRepair
    models : sequence of paths
        LightGBM text (``.txt``), XGBoost (``.json``, ``.ubj``) or ONNX (``.onnx``) files. Where the
        repair has names, the name of a file without its ending is that of its label. Else files
        are in the order of the labels.
    folder : path
        Where the folded models are written, under the same names.

    Returns
    -------
    list of Path
        The files that were written.
    """
    affine = affine_of(repair)
    paths = natural(Path(model) for model in models)
    for path in paths:
        if path.suffix not in _FOLDERS:
            raise InvalidInput(
                f"models must be files of {', '.join(_FOLDERS)}, got {path}. "
                "Fold other models in Python: oddslip.fold(model, repair)."
            )
    if len({path.name for path in paths}) < len(paths):
        raise InvalidInput("models must have different file names, got one of them twice.")
    if len(paths) > 1:
        affine = _in_file_order(affine, repair, paths)
    destination = output_folder(folder)
    if any(path.resolve().parent == destination.resolve() for path in paths):
        raise InvalidInput(f"output must be another folder than that of the models, got {folder}.")
    destination.mkdir(parents=True, exist_ok=True)
    targets = []
    with progress_bar("folding models", len(paths)) as advance:
        for at, path in enumerate(paths):
            part = affine.take([at]) if len(paths) > 1 else affine
            raw = _fold_file(path, part, repair.maps.kind)
            target = destination / path.name
            write_bytes(target, raw)
            targets.append(target)
            advance(1)
    return targets


def _in_file_order(affine: Affine, repair: FittedRepair, paths: Sequence[Path]) -> Affine:
    affine.check_labels(len(paths), "model files")
    if repair.label_names is None:
        return affine
    counts = len(paths), affine.n_labels
    names = [path.stem for path in paths]
    order = match_labels(names, repair.label_names, ("models", "repair"), n_labels=counts)
    return affine if order is None else affine.take(order)


def _fold_file(path: Path, affine: Affine, kind: str) -> bytes:
    raw = read_bytes(path)
    try:
        return _FOLDERS[path.suffix](raw, affine, kind)
    except MissingDependency:
        raise
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    except Exception as error:  # of a parser: whatever a damaged file makes it raise
        raise UnreadableFile(
            f"{path} is not a model that can be folded ({first_line(error)})."
        ) from error


def _fold_text(raw: bytes, affine: Affine, _: str) -> bytes:
    return fold_lightgbm_text(raw.decode(), affine).encode()


def _fold_json(raw: bytes, affine: Affine, _: str) -> bytes:
    document = parse_json(raw)
    fold_xgboost_document(document, affine)
    return json.dumps(document, allow_nan=False).encode()


def _fold_ubj(raw: bytes, affine: Affine, _: str) -> bytes:
    try:
        import xgboost
    except ImportError as error:
        raise MissingDependency(
            'Folding .ubj files needs xgboost. Run: pip install "oddslip[xgboost]"'
        ) from error
    booster = xgboost.Booster()
    booster.load_model(bytearray(raw))
    return bytes(fold_xgboost(booster, affine).save_raw("ubj"))


def _fold_onnx(raw: bytes, affine: Affine, kind: str) -> bytes:
    from oddslip.serving.onnx import load_onnx

    model = load_onnx().load_from_string(raw)
    return bytes(fold_onnx(model, affine, kind).SerializeToString())


_FOLDERS: dict[str, Callable[[bytes, Affine, str], bytes]] = {
    ".txt": _fold_text,
    ".json": _fold_json,
    ".ubj": _fold_ubj,
    ".onnx": _fold_onnx,
}
