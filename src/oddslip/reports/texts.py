"""Results on a terminal. Names and paths are hostile text: see `printable`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oddslip.metrics.evaluations import NAMES
from oddslip.reports.numbers import (
    interval,
    level_name,
    score,
    share_of,
    signed,
    signed_interval,
)

if TYPE_CHECKING:
    from oddslip.calibrators.fitted import FittedRepair
    from oddslip.metrics.evaluations import Comparison, Evaluation
    from oddslip.selection.tables import SelectionTable


def printable(text: object) -> str:
    """One line without control characters, which could move the cursor or change colours."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def new_table(*columns: str) -> Any:
    """A plain table: first column left, numbers right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def evaluation_table(evaluation: Evaluation) -> Any:
    """Metrics of one ranking with their intervals."""
    table = new_table("metric", "value", f"{level_name(evaluation.level)} interval")
    for name, estimate in evaluation.metrics.items():
        table.add_row(f"{NAMES[name]}@{evaluation.k}", score(estimate.value), interval(estimate))
    if evaluation.mean_auc is not None:
        table.add_row("within-label AUC", score(evaluation.mean_auc), "-")
    return table


def comparison_table(
    first: Evaluation, second: Evaluation, comparison: Comparison, names: tuple[str, str]
) -> Any:
    """Two rankings side by side with their paired differences."""
    table = new_table(
        "metric",
        *(printable(name) for name in names),
        "difference",
        f"{level_name(first.level)} interval",
    )
    for name, estimate in first.metrics.items():
        difference = comparison[name]
        table.add_row(
            f"{NAMES[name]}@{first.k}",
            score(estimate.value),
            score(second[name].value),
            signed(difference.value),
            signed_interval(difference),
        )
    return table


def rows_sentence(evaluation: Evaluation) -> str:
    """Which rows were averaged."""
    e = evaluation
    over = "averaged over all rows" if e.rows == "all" else "the others do not count"
    return (
        f"{e.n_evaluated:,} of {e.n_rows:,} rows have a true label; {over}. {e.n_labels:,} labels."
    )


def ties_sentence(evaluation: Evaluation, what: str = "") -> str:
    """How much of the result is owed to ties."""
    e = evaluation
    of = f" of {what}" if what else ""
    if not e.n_tied:
        return f"No top {e.k}{of} is decided by ties."
    return (
        f"Ties decide the top {e.k}{of} in {e.n_tied:,} of {e.n_evaluated:,} rows "
        f"({share_of(e.n_tied, e.n_evaluated)}). Depending on how they are broken, "
        f"MAP@{e.k} lies between {score(e.map_worst)} and {score(e.map_best)}."
    )


def repair_table(fitted: FittedRepair) -> Any:
    """What a fitted repair did to the labels."""
    table = new_table("what was done", "labels", "calibration positives")
    record = fitted.record
    for action in sorted(set(record.action), key=record.action.index):
        positives = [
            int(n)
            for n, done in zip(record.n_positives, record.action, strict=True)
            if done == action
        ]
        low, high = min(positives), max(positives)
        told = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        name = f"dead: {action}" if action in ("prior", "identity", "exclude") else action
        table.add_row(name, f"{len(positives):,}", told)
    table.caption = f"{fitted.calibrator} on {fitted.n_rows:,} rows; prior: {record.prior_source}"
    table.caption_justify = "left"
    return table


def ladder_table(results: Mapping[str, Evaluation], metric: str) -> Any:
    """Rungs of a repair ladder: one metric with its interval, and the within-label AUC."""
    first = next(iter(results.values()))
    table = new_table(
        "", f"{NAMES[metric]}@{first.k}", f"{level_name(first.level)} interval", "AUC"
    )
    for name, evaluation in results.items():
        estimate = evaluation[metric]
        auc = "-" if evaluation.mean_auc is None else f"{evaluation.mean_auc:.3f}"
        table.add_row(printable(name), score(estimate.value), interval(estimate), auc)
    return table


def selection_table(table: SelectionTable) -> Any:
    """Out-of-fold means of all candidates, and their differences to raw."""
    shown = new_table(
        "candidate",
        f"out-of-fold {NAMES[table.metric]}@{table.k}",
        "minus raw",
        f"{level_name(table.level)} interval",
    )
    for line in table.lines:
        mark = " <- chosen" if line.candidate == table.chosen else ""
        shown.add_row(
            f"{line.candidate}{mark}",
            score(line.mean),
            signed(line.difference.value),
            signed_interval(line.difference),
        )
    return shown
