"""Checks that no output of a command is one of its inputs, or another output.

Both are recognised by the names of their parameters, which mean the same in every command. A new
command needs no code for it; a new parameter name must be added here.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.core.types import FilePath

    Files = dict[str, FilePath]  # by their names in errors

# Options that name a file to write. The log that `trend` reads is an argument.
OUTPUTS = ("output", "html", "figure", "json_file", "junit", "log", "page", "regimes")
INPUTS = (
    *(
        "scores",
        "labels",
        "repair",
        "model",
        "models",
        "features",
        "log",
        "against",
        "baseline",
        *("exclude", "paths"),
    ),
    *("groups", "label_names", "sample_weight", "weights", "propensities", "prior", "unweighted"),
    *("calibration", "calibration_labels", "calibration_exclude", "validation", "check"),
)


def guard(command: Any) -> None:
    """Make every command of a group check its files before it starts."""
    for inner in getattr(command, "commands", {}).values():
        guard(inner)
    if hasattr(command, "commands"):
        return
    invoke = command.invoke

    def check_and_invoke(context: Any) -> Any:
        outputs, inputs = _files_of(command.params, context.params)
        check_apart(outputs, inputs)
        return invoke(context)

    command.invoke = check_and_invoke


def _files_of(parameters: list[Any], values: Mapping[str, Any]) -> tuple[Files, Files]:
    """Output and input files of a command line, by the names of their options."""
    outputs: Files = {}
    inputs: Files = {}
    for parameter in parameters:
        value = values.get(parameter.name)
        is_option = parameter.param_type_name == "option"
        if value is None:
            continue
        if is_option and parameter.name in OUTPUTS:
            outputs[max(parameter.opts, key=len)] = value
        elif parameter.name in INPUTS:
            paths = value if isinstance(value, list | tuple) else [value]
            for at, each in enumerate(paths):
                if not isinstance(each, str | os.PathLike):  # --labels of a study is a number
                    continue
                name = max(parameter.opts, key=len) if is_option else parameter.name
                inputs[name if len(paths) == 1 else f"{name} ({at + 1})"] = each
    return outputs, inputs


def check_apart(outputs: Mapping[str, FilePath], inputs: Mapping[str, FilePath]) -> None:
    """Reject an output that is an input, or that is written twice.

    Parameters
    ----------
    outputs, inputs : mapping of str to path
        Paths by their names in errors. An input may be a folder, a pattern or an address.
    """
    for at, (name, output) in enumerate(outputs.items()):
        path = Path(output)
        others = list(outputs.items())[:at]
        for other, path_or_pattern in [*inputs.items(), *others]:
            is_input = other in inputs
            if any(_is_same(path, each) for each in _files(path_or_pattern)) or (
                is_input and _would_be_read(path, path_or_pattern)
            ):
                what = "would be overwritten" if is_input else "would be written twice"
                raise InvalidInput(
                    f"{name} must be another file than {other}, got {output}, which {what}. "
                    "Pass another path."
                )


def _local(path: FilePath) -> Path | None:
    """The local path; None for an address of another machine."""
    from oddslip.io.paths import as_address

    address = as_address(path)
    if address is None:
        return Path(path)
    return Path(address.removeprefix("file://")) if address.startswith("file://") else None


def _files(pattern: FilePath) -> Iterator[Path]:
    """Existing files of a path, a folder or a pattern."""
    path = _local(pattern)
    if path is None:
        return
    yield path
    try:
        if path.is_dir():
            yield from path.iterdir()
        elif not path.exists() and glob.has_magic(str(path)):
            yield from map(Path, glob.iglob(str(path)))
    except (OSError, ValueError):  # opening it raises a better error
        return


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths are the same file, by real path or by hard link."""
    try:
        if os.path.realpath(one) == os.path.realpath(other):
            return True
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def _would_be_read(output: Path, pattern: FilePath) -> bool:
    """Whether an input folder or pattern would include the output, once written."""
    path = _local(pattern)
    if path is None or output.name[:1] in ("", ".", "_"):
        return False
    folder, name = output.absolute().parent, path.name
    try:
        if path.is_dir():
            return output.suffix in (".parquet", ".pq") and _is_same(folder, path)
        if path.exists() or not glob.has_magic(str(path)):
            return False
        places = map(Path, glob.iglob(str(path.parent)))
    except (OSError, ValueError):
        return False
    return fnmatchcase(output.name, name) and any(_is_same(folder, each) for each in places)
