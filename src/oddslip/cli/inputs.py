"""Values of options: rows in files or in Spark, weights, priors, names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from oddslip.cli.options import WEIGHTS
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.core.types import PerLabel
    from oddslip.repairs.fitted_repair import FittedRepair
    from oddslip.sources.base import Source
    from oddslip.spark.session import SparkSession


@dataclass(frozen=True)
class Inputs:
    """The rows that a command reads, by the options that all commands share."""

    scores: Path
    labels: Path | None = None
    kind: str | None = None
    label_names: Sequence[str] | None = None
    exclude: Path | None = None
    nan: str = "refuse"
    columns: str | None = None
    engine: str = "local"
    master: str = "local[*]"
    row_id: str | None = None

    @classmethod
    def of(cls, context: typer.Context) -> Inputs:
        """The inputs of a command line."""
        names = [field.name for field in fields(cls) if field.name in context.params]
        values = pick(context, *names)
        return cls(**values | {"label_names": read_names(values["label_names"])})

    def arguments(self, *, labelled: bool = True) -> dict[str, Any]:
        """Arguments of a verb: local files, or one source that is open."""
        from oddslip.sources.open import open_source

        check_engine(self.engine)
        if self.engine == "spark":
            return {"scores": self._open_spark(labelled)}
        if self.row_id is not None:
            raise InvalidInput("--row-id names a column for --engine spark, got --engine local.")
        names = ("scores", "labels", "kind", "label_names", "exclude", "nan")
        files = {name: getattr(self, name) for name in names}
        if self.columns is None:
            return files
        return {"scores": open_source(**files, columns=_read_columns(self.columns))}

    def open(self, *, labelled: bool = True) -> Source:
        """The rows as one source."""
        from oddslip.sources.open import open_source

        return open_source(**self.arguments(labelled=labelled))

    def open_for(self, repair: FittedRepair, *, labelled: bool = True) -> Source:
        """The rows as one source of the repair's kind."""
        from oddslip.repairs.fitted_repair import check_kind, match_kind

        if self.kind is not None:
            match_kind(repair, self.kind)
        source = replace(self, kind=repair.maps.kind).open(labelled=labelled)
        check_kind(repair, source, declared=self.kind is not None)
        return source

    def _open_spark(self, labelled: bool) -> Source:
        from oddslip.sources.open import is_parquet, open_source

        if self.columns is not None:
            raise InvalidInput("--columns is for --engine local, got --engine spark.")
        if self.labels is not None:
            raise InvalidInput(
                f"with --engine spark labels are a column of {self.scores}, got the file "
                f"{self.labels}."
            )
        if self.exclude is not None or self.nan != "refuse":
            raise InvalidInput("--exclude and --nan are for --engine local, got --engine spark.")
        if not is_parquet(self.scores):
            raise InvalidInput(
                f"with --engine spark scores must be Parquet files, got {self.scores}."
            )
        return open_source(
            self.scores,
            "labels" if labelled else None,
            scores="scores",
            kind=self.kind,  # type: ignore[arg-type]
            label_names=self.label_names,
            row_id=self.row_id,
            engine=start_engine(self.engine, self.master),
        )


def pick(context: typer.Context, *names: str) -> dict[str, Any]:
    """Values of options by name, for a verb whose arguments have the same names."""
    return {name: context.params[name] for name in names}


def check_engine(engine: str) -> None:
    """Reject an unknown engine."""
    if engine not in ("local", "spark"):
        raise InvalidInput(f"--engine must be local or spark, got {engine!r:.60}.")


def start_engine(engine: str, master: str) -> SparkSession | None:
    """A Spark session; None for the local engine."""
    check_engine(engine)
    if engine == "local":
        return None
    from oddslip.spark.session import start_session

    return start_session(master)


def _read_columns(text: str) -> dict[str, str]:
    """Value of --columns: names of columns by their roles."""
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    roles = dict(pairs)
    if len(roles) < len(pairs) or not all(role and name for role, name in pairs):
        raise InvalidInput(
            f"--columns must be such as row=user_id,label=item_id, got {text!r:.60}."
        )
    return roles


def read_names(path: Path | None) -> list[str] | None:
    """Label names from a text file, one per line."""
    if path is None:
        return None
    from oddslip.errors import UnreadableFile
    from oddslip.io.inputs import read_bytes

    try:
        return read_bytes(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} cannot be read as a list of label names.") from error


def read_numbers(path: Path | None, each: str = "label") -> PerLabel:
    """One number per label or row, from a file where there is one."""
    from oddslip.core.weights import read_numbers as read

    return None if path is None else read(path, each)


def read_weights(text: str | None) -> PerLabel:
    """Value of --weights: a name or a multiple, a number, or the numbers of a file."""
    if text is None:
        return None
    path = weights_file(text)
    if path is not None:
        return read_numbers(path)
    from oddslip.core.weights import is_weight_name

    return text if is_weight_name(text) else float(text)


def read_propensities(text: str | None) -> PerLabel:
    """Value of --propensities: weights, or the numbers of a file."""
    return read_numbers(propensities_file(text)) if text != "weights" else text


def propensities_file(text: str | None) -> Path | None:
    """The file that --propensities names."""
    return None if text in (None, "weights") else Path(text)


def weights_file(text: str | None) -> Path | None:
    """The file that --weights names; None for a name or a number."""
    from oddslip.core.weights import is_weight_name

    if text is None or is_weight_name(text) or _is_number(text):
        return None
    path = Path(text)
    if not path.exists():
        raise InvalidInput(f"weights must be {WEIGHTS}, got {text!r}, and there is no such file.")
    return path


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
