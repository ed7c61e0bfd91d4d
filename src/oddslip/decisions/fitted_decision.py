"""`FittedDecision`: a repair and the rule that says which labels to show; saved in one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.results import html_table, label_frame, name_ranking, plain
from oddslip.core.row_ids import row_names
from oddslip.core.types import FilePath, Floats, Ints, JsonObject, LabelsLike, ScoresLike
from oddslip.decisions.list_rule import ListRule, read_rule
from oddslip.decisions.lists import Columns, ListTotals, list_block, list_cells
from oddslip.errors import InvalidInput
from oddslip.repairs.fitted_repair import FittedRepair, repair_of, save_repair
from oddslip.repairs.repair_file import RepairFile, read_repair_file
from oddslip.repairs.row_aware import reject_stage
from oddslip.sources import Source
from oddslip.sources.open import Nan

if TYPE_CHECKING:
    from oddslip.serving.export import Export


@dataclass(frozen=True, eq=False)
class LabelThresholds:
    """The thresholds of each label; inf shows nothing.

    Attributes
    ----------
    plug_in, fitted, used : ndarray of shape (n_labels,)
        By probabilities alone, by true labels (NaN without any), and the one that is used.
    n_positives : ndarray of shape (n_labels,)
        True cells of the rows that thresholds were fitted on.
    """

    plug_in: Floats
    fitted: Floats
    used: Floats
    n_positives: Ints

    def take(self, labels: Ints) -> LabelThresholds:
        """The thresholds of some labels, in this order."""
        return LabelThresholds(
            self.plug_in[labels], self.fitted[labels], self.used[labels], self.n_positives[labels]
        )


@dataclass(frozen=True, eq=False)
class FittedDecision:
    """A repair with the rule by which its labels are shown.

    Attributes
    ----------
    repair : FittedRepair
        Turns scores into probabilities.
    rule : ListRule
        Which labels are shown.
    goal, target : str, float or None
        What the rule is for.
    summary : dict
        What its lists reached on the rows of the fit, the labels or groups that miss the target
        ("unmet"), and the guarantee of each group ("guarantee").
    thresholds : LabelThresholds or None
        The thresholds of each label, where they were fitted.
    """

    repair: FittedRepair
    rule: ListRule
    goal: str
    target: float | None
    summary: JsonObject
    thresholds: LabelThresholds | None = None

    def lists(
        self,
        scores: ScoresLike,
        *,
        groups: Any = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        names: bool = False,
        threads: int | None = None,
    ) -> Any:
        """The labels to show of each row, best first.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        groups : array-like of shape (n_rows,), optional
            Group of each row, if the decision was fitted with groups.
        exclude, nan
            Cells to ignore, as in `oddslip.rank`.
        names : bool
            Whether to return the names of labels instead of their indices, as in `oddslip.rank`.
        threads : int, optional
            Threads to use; default: all available cores.

        Returns
        -------
        ndarray of int32, shape (n_rows, k_max)
            Label indices; -1 in the slots after a list. With ``names``, an array of names, or a
            frame if a pandas frame was given. Of a Spark table, a table as `oddslip.rank` gives.
        """
        source, order = self._open(scores, None, groups, exclude, nan, threads)
        if not source.ordered:
            maps, rule = self.repair._maps(order), in_order(self.rule, order)
            return source.show(list_cells, maps=maps, rule=rule)
        out = np.empty((source.n_rows, self.rule.k_max), np.int32)
        for first, block in self._blocks(source, order, groups):
            out[first : first + len(block)] = block
        if not names:
            return out
        return name_ranking(out, self.repair._names(source, order), scores)

    def list_blocks(
        self,
        scores: ScoresLike,
        *,
        groups: Any = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> Iterator[tuple[int, Columns]]:
        """Yield (first row, lists of the block) in row order, for panels larger than memory.

        Parameters
        ----------
        scores, groups, exclude, nan, threads
            As in `lists`.
        """
        source, order = self._open(scores, None, groups, exclude, nan, threads)
        return self._blocks(source, order, groups)

    def evaluate(
        self,
        scores: ScoresLike,
        labels: LabelsLike = None,
        *,
        groups: Any = None,
        exclude: LabelsLike = None,
        nan: Nan = "refuse",
        threads: int | None = None,
    ) -> JsonObject:
        """What the lists of these rows reach.

        Parameters
        ----------
        scores, labels, groups, exclude, nan, threads
            As in `Decision.fit`.

        Returns
        -------
        dict
            Mean length, share of empty lists, expected precision and recall; with labels precision
            and recall over all cells, and the mean share of missed labels of rows with a true one
            and of wrong slots.
        """
        source, order = self._open(scores, labels, groups, exclude, nan, threads)
        return self._total(source, order, groups).result()

    def _open(
        self,
        scores: ScoresLike,
        labels: LabelsLike,
        groups: Any,
        exclude: LabelsLike,
        nan: Nan,
        threads: int | None,
    ) -> tuple[Source, Ints | None]:
        by_group = groups is not None or self.rule.groups is not None
        return open_for_lists(self.repair, scores, labels, exclude, nan, threads, by_group)

    def _total(self, source: Source, order: Ints | None, groups: Any = None) -> ListTotals:
        places = read_places(self.rule, groups, source)
        maps = self.repair._maps(order)
        totals = ListTotals(maps, in_order(self.rule, order), places, source.has_labels)
        return source.run(totals, what="making lists")

    def _blocks(
        self, source: Source, order: Ints | None, groups: Any
    ) -> Iterator[tuple[int, Columns]]:
        places = read_places(self.rule, groups, source)
        maps, rule = self.repair._maps(order), in_order(self.rule, order)

        def show(panel: Panel) -> Columns:
            return list_block(panel, maps, rule, places).columns

        return source.map(show, what="making lists")

    def save(self, path: FilePath) -> None:
        """Save the repair and the rule to one file, atomically.

        Parameters
        ----------
        path : str or path
            Read by `oddslip.load_decision`, and by `oddslip.load_repair` without the rule.
        """
        rule, table = self.rule, self.thresholds
        header = {
            "form": rule.form,
            "k_max": rule.k_max,
            "groups": None if rule.groups is None else list(rule.groups),
            "costs": list(rule.costs),
            "goal": self.goal,
            "target": self.target,
            "summary": plain(self.summary),
        }
        none = np.empty(0)
        arrays = {
            "level": rule.levels,
            "threshold": none if rule.thresholds is None else rule.thresholds,
            "plug_in": none if table is None else table.plug_in,
            "fitted": none if table is None else table.fitted,
            "n_true": none if table is None else table.n_positives,
        }
        save_repair(self.repair, path, (header, arrays))

    def to_onnx(self, path: FilePath, **options: Any) -> Export:
        """Write the repair with thresholds, or lists of one length, as an ONNX graph.

        Parameters
        ----------
        path : path
        **options
            ``scores`` and ``precision`` of `FittedRepair.to_onnx`.

        Returns
        -------
        Export
            Beside ``probabilities`` the graph has ``top_labels``, with -1 in empty slots, and
            ``top_probabilities``.
        """
        from oddslip.serving.onnx import export_onnx

        return export_onnx(self.repair, path, rule=self.rule, **options)

    def to_sql(self, path: FilePath, **options: Any) -> Export:
        """Write the repair with thresholds, or lists of one length, as SQL.

        Parameters
        ----------
        path : path
        **options
            ``dialect``, ``name``, ``table`` and ``columns`` of `FittedRepair.to_sql`.

        Returns
        -------
        Export
        """
        from oddslip.serving.sql import export_sql

        return export_sql(self.repair, path, rule=self.rule, **options)

    def to_json(self, path: FilePath) -> Export:
        """Write the maps and the rule as a documented JSON file, for any other language.

        Parameters
        ----------
        path : path

        Returns
        -------
        Export
        """
        from oddslip.serving.json import export_json

        return export_json(self.repair, path, rule=self.rule)

    def __repr__(self) -> str:
        target = "" if self.target is None else f" {self.target:g}"
        return f"FittedDecision({self.rule.form} for {self.goal}{target}, {self.repair!r})"

    def __str__(self) -> str:
        """The table that `oddslip decide` prints."""
        from oddslip.reports.text import as_text, show_decision

        return as_text(show_decision(self))

    def to_dict(self) -> JsonObject:
        """The rule, what it reached, and the thresholds, in built-in types; None for inf."""
        labels = {} if self.thresholds is None else {"labels": self._label_columns()}
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.decision/1",
                "form": self.rule.form,
                "goal": self.goal,
                "target": self.target,
                "k_max": self.rule.k_max,
                "levels": self.rule.levels,
                "groups": self.rule.groups,
                "costs": self.rule.costs,
                **self.summary,
                **labels,
            }
        )

    def to_frame(self) -> Any:
        """A pandas data frame with the thresholds of each label."""
        if self.thresholds is None:
            raise InvalidInput(
                f"to_frame() shows thresholds, and this decision has none: {self.rule.form}."
            )
        columns = self._label_columns()
        columns.pop("label")
        return label_frame(columns, self.repair.label_names)

    def _label_columns(self) -> dict[str, Any]:
        assert self.thresholds is not None
        names = self.repair.label_names or tuple(map(str, range(self.repair.maps.n_labels)))
        columns = {name: getattr(self.thresholds, name) for name in ("plug_in", "fitted", "used")}
        return {"label": names, **columns, "n_positives": self.thresholds.n_positives}

    def _repr_html_(self) -> str:
        rows = [
            [name.replace("_", " "), f"{value:.4g}"]
            for name, value in self.summary.items()
            if isinstance(value, int | float)
        ]
        return html_table(["lists", "of the fitted rows"], rows, repr(self))


def in_order(rule: ListRule, order: Ints | None) -> ListRule:
    """The rule with thresholds in another order of labels."""
    if order is None or rule.thresholds is None:
        return rule
    return replace(rule, thresholds=rule.thresholds[order])


def read_places(rule: ListRule, groups: Any, source: Source) -> Ints | None:
    """Place of the group of every row; None without groups, which counts no rows of a table."""
    if rule.groups is None and groups is None:
        return None
    return rule.read_groups(groups, source.n_rows, ids_beside(groups, source))


def ids_beside(groups: Any, source: Source) -> Any:
    """Ids of the rows, where groups are a series that has some too."""
    return None if row_names(groups) is None else source.row_ids()


def open_for_lists(
    repair: FittedRepair,
    scores: ScoresLike,
    labels: LabelsLike,
    exclude: LabelsLike,
    nan: Nan,
    threads: int | None,
    by_group: bool,
) -> tuple[Source, Ints | None]:
    """The rows, and the position of their labels among those of the repair."""
    source, order = repair._open(scores, exclude, nan, threads, labels)
    if not source.ordered:
        reject_stage(repair.maps, "a table")
        if by_group:
            raise InvalidInput(
                "groups go with rows of this machine, got a Spark table, whose rows have no "
                "order. Fit a decision on the rows of each group."
            )
    if source.sample_weight is not None:
        raise InvalidInput("decisions need rows that count alike, got rows with a sample_weight.")
    return source, order


def load_decision(path: FilePath) -> FittedDecision:
    """Read a decision with its repair, saved by `save`.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    FittedDecision

    Examples
    --------
    >>> load_decision("decision.oddslip").lists("scores.npy")  # doctest: +SKIP
    """
    return _decision_of(path, read_repair_file(path))


def load_served(path: FilePath) -> FittedRepair | FittedDecision:
    """Read a saved repair, or a decision if the file holds one."""
    stored = read_repair_file(path)
    return repair_of(stored) if stored.decision is None else _decision_of(path, stored)


def _decision_of(path: FilePath, stored: RepairFile) -> FittedDecision:
    rule = read_rule(path, stored)
    header, arrays = stored.decision, stored.arrays
    assert header is not None
    table = None
    if arrays["plug_in"].size:
        names = ("plug_in", "fitted", "threshold", "n_true")
        table = LabelThresholds(*(arrays[name] for name in names))
    return FittedDecision(
        repair_of(stored), rule, header["goal"], header["target"], header["summary"], table
    )
