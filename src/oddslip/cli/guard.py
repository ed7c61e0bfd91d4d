"""No output of a command may be one of its inputs, or another output.

Both are known by the names of their parameters, which mean the same in every command. So a new
command is guarded without a line of its own; a new name has to be listed here.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

# Options that name a file to write. The log that `trend` reads is an argument.
OUTPUTS = ("output", "html", "figure", "json_file", "junit", "log", "page", "regimes")
INPUTS = (
    "scores", "labels", "repair", "model", "features", "log", "against", "baseline", "exclude",
    "label_names", "sample_weight", "weights", "propensities", "prior", "unweighted", "calibration",
    "calibration_labels", "calibration_exclude", "validation", "check",
)  # fmt: skip
# Folders of a run: what is written there has names of its own.
FOLDERS = ("checkpoint", "data", "results", "work", "others", "figures", "tables")


def guard(command: Any) -> None:
    """Have every command of a group check its files before it begins."""
    for inner in getattr(command, "commands", {}).values():
        guard(inner)
    if hasattr(command, "commands"):
        return
    invoke = command.invoke

    def checked(context: Any) -> Any:
        outputs, inputs = _files_of(command.params, context.params)
        check_apart(outputs, inputs)
        return invoke(context)

    command.invoke = checked


def _files_of(
    parameters: list[Any], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs and inputs that were given, by what the command line calls them."""
    outputs: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    for parameter in parameters:
        given = values.get(parameter.name)
        is_option = parameter.param_type_name == "option"
        if given is None:
            continue
        if is_option and parameter.name in OUTPUTS:
            outputs[max(parameter.opts, key=len)] = given
        elif parameter.name in INPUTS:
            several = given if isinstance(given, list | tuple) else [given]
            for at, each in enumerate(several):
                if not isinstance(each, str | os.PathLike):  # --labels of a study is a number
                    continue
                called = max(parameter.opts, key=len) if is_option else parameter.name
                inputs[called if len(several) == 1 else f"{called} ({at + 1})"] = each
    return outputs, inputs


def check_apart(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Refuse an output that is an input, or that is written twice.

    Parameters
    ----------
    outputs, inputs : mapping of str to path
        Paths by what errors call them. An input may be a folder, a pattern or an address.
    """
    from oddslip.errors import InvalidInput

    for at, (called, output) in enumerate(outputs.items()):
        path = Path(output)
        others = list(outputs.items())[:at]
        for other, given in [*inputs.items(), *others]:
            read = other in inputs
            if any(_is_same(path, each) for each in _files(given)) or (
                read and _would_be_read(path, given)
            ):
                what = "would be written over" if read else "would be written twice"
                raise InvalidInput(
                    f"{called} must be another file than {other}, got {output}, which {what}. "
                    "Pass another path."
                )


def _local(given: Any) -> Path | None:
    """The path that is given; None for an address of another machine."""
    from oddslip.io.paths import as_address

    address = as_address(given)
    if address is None:
        return Path(given)
    return Path(address.removeprefix("file://")) if address.startswith("file://") else None


def _files(given: Any) -> Iterator[Path]:
    """Files that a path, a folder or a pattern names now."""
    path = _local(given)
    if path is None:
        return
    yield path
    try:
        if path.is_dir():
            yield from path.iterdir()
        elif not path.exists() and glob.has_magic(str(path)):
            yield from map(Path, glob.iglob(str(path)))
    except (OSError, ValueError):  # who opens it says what is wrong
        return


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths are one file: by their real paths, or as links to the same bytes."""
    try:
        if os.path.realpath(one) == os.path.realpath(other):
            return True
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def _would_be_read(output: Path, given: Any) -> bool:
    """Whether an input would hold the output once it is there: in its folder, or by its pattern."""
    path = _local(given)
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
