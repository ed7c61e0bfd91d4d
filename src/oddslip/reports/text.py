"""Results on a terminal. Names and paths are untrusted text: see `printable`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oddslip.core.formatting import (
    count_of,
    estimated,
    interval,
    level_name,
    nat,
    percent,
    score,
    share_of,
    signed,
    signed_interval,
    small_percent,
    times,
    value_text,
)
from oddslip.metrics.at_k import metric_name
from oddslip.reports.decision_text import describe_decision, describe_lists

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.padding import Padding
    from rich.table import Table

    from oddslip.decisions.fitted_decision import FittedDecision
    from oddslip.diagnosis.decomposition import Decomposition
    from oddslip.diagnosis.findings import Finding
    from oddslip.diagnosis.ladder import Ladder
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.diagnosis.summary import CommandFiles
    from oddslip.metrics.evaluation import Comparison, Evaluation
    from oddslip.planning.plan import Plan
    from oddslip.planning.rounds import Rounds
    from oddslip.repairs.fitted_repair import FittedRepair
    from oddslip.selection.repair import SelectionTable


def printable(text: object) -> str:
    """One line without control characters, which could move the cursor or change colours."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def brief(name: object) -> str:
    """The name of a label, printable and cut where it would fill a screen."""
    text = printable(name)
    return text if len(text) <= MAX_BRIEF else f"{text[: MAX_BRIEF - 1]}…"


def new_table(*columns: str) -> Table:
    """A plain table: first column left, numbers right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


class Reader(NamedTuple):
    """Where a text is read, which decides how it refers to the details."""

    details: str
    labels: str


TERMINAL = Reader("--verbose", "--json holds all")
PYTHON = Reader(".findings, .ladder", ".to_dict() has all")
PIPED = 100  # columns where there is no terminal


def as_text(pieces: Iterable[RenderableType]) -> str:
    """Texts and tables as plain lines, for `print` of a result."""
    import io

    from rich.console import Console

    output = io.StringIO()
    console = Console(
        file=output, width=PIPED, highlight=False, markup=False, color_system=None, emoji=False
    )
    for piece in pieces:
        if isinstance(piece, str):
            piece = "\n".join(map(printable, piece.split("\n")))
        console.print(piece, crop=False)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


# -------------------------------------------------------------------------------------- evaluations


def show_evaluation(evaluation: Evaluation) -> Iterator[RenderableType]:
    """What to print, piece by piece: a table and two sentences."""
    yield evaluation_table(evaluation)
    yield rows_sentence(evaluation)
    yield ties_sentence(evaluation)


def show_comparison(comparison: Comparison) -> Iterator[RenderableType]:
    """Paired differences, first minus second."""
    table = new_table("metric", "difference", "interval")
    for name, estimate in comparison.differences.items():
        cells = signed(estimate.value), signed_interval(estimate)
        table.add_row(metric_name(name, comparison.k), *cells)
    yield table


def evaluation_table(evaluation: Evaluation) -> Table:
    """Metrics of one ranking with their intervals."""
    table = new_table("metric", "value", f"{level_name(evaluation.level)} interval")
    for name, estimate in evaluation.metrics.items():
        table.add_row(metric_name(name, evaluation.k), score(estimate.value), interval(estimate))
    if evaluation.mean_auc is not None:
        table.add_row("within-label AUC", score(evaluation.mean_auc), "-")
    return table


def comparison_table(
    first: Evaluation, second: Evaluation, comparison: Comparison, names: tuple[str, str]
) -> Table:
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
            metric_name(name, first.k),
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
    """How much of the result depends on ties."""
    e = evaluation
    of = f" of {what}" if what else ""
    if not e.n_tied:
        return f"No top {e.k}{of} is decided by ties."
    return (
        f"Ties decide the top {e.k}{of} in {e.n_tied:,} of {e.n_evaluated:,} rows "
        f"({share_of(e.n_tied, e.n_evaluated)}). Depending on how they are broken, "
        f"MAP@{e.k} lies between {score(e.map_worst)} and {score(e.map_best)}."
    )


def ladder_table(results: Mapping[str, Evaluation], metric: str) -> Table:
    """Rungs of a repair ladder: one metric with its interval, and the within-label AUC."""
    first = next(iter(results.values()))
    table = new_table(
        "", metric_name(metric, first.k), f"{level_name(first.level)} interval", "AUC"
    )
    for name, evaluation in results.items():
        estimate = evaluation[metric]
        auc = "-" if evaluation.mean_auc is None else f"{evaluation.mean_auc:.3f}"
        table.add_row(printable(name), score(estimate.value), interval(estimate), auc)
    return table


# ------------------------------------------------------------------------------------------ repairs


def repair_table(fitted: FittedRepair) -> Table:
    """What a fitted repair did to the labels."""
    table = new_table("what was done", "labels", "calibration positives")
    record = fitted.record
    for action in sorted(set(record.action), key=record.action.index):
        positives = [
            int(n)
            for n, label_action in zip(record.n_positives, record.action, strict=True)
            if label_action == action
        ]
        low, high = min(positives), max(positives)
        count = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        name = f"dead: {action}" if action in ("prior", "identity", "exclude") else action
        table.add_row(name, f"{len(positives):,}", count)
    table.caption = f"{fitted.calibrator} on {fitted.n_rows:,} rows; prior: {record.prior_source}"
    table.caption_justify = "left"
    return table


def show_decision(decision: FittedDecision) -> Iterator[RenderableType]:
    """What the lists of a decision reach on the rows of the fit, and what it guarantees."""
    table = new_table("lists", "on the rows of the fit")
    for name, value in describe_lists(decision):
        table.add_row(name, value)
    yield table
    yield from describe_decision(decision)


def show_selection(table: SelectionTable) -> Iterator[RenderableType]:
    """The table of a choice, and why it was made."""
    yield selection_table(table)
    if table.note:
        yield table.note
    yield table.why


def selection_table(table: SelectionTable) -> Table:
    """Out-of-fold means of all candidates, and their differences to raw."""
    rows = new_table(
        "candidate",
        f"out-of-fold {metric_name(table.metric, table.k)}",
        "minus raw",
        f"{level_name(table.level)} interval",
    )
    for line in table.lines:
        mark = " <- chosen" if line.candidate == table.chosen else ""
        rows.add_row(
            f"{table.mark(line)}{mark}",
            score(line.mean),
            signed(line.difference.value),
            signed_interval(line.difference),
        )
    return rows


# ---------------------------------------------------------------------------------------- diagnoses


MAX_FINDINGS = 3  # on the first screen


def show_diagnosis(
    diagnosis: Diagnosis,
    *,
    verbose: bool = False,
    reader: Reader = TERMINAL,
    files: CommandFiles | None = None,
) -> Iterator[RenderableType]:
    """What to print, piece by piece: three sentences, the ladder and the findings.

    Parameters
    ----------
    diagnosis : Diagnosis
    verbose : bool
        Every rung and every finding, and the details.
    reader : Reader
        Whether a command or a line of Python comes next.
    files : CommandFiles, optional
        What the command is to name.
    """
    from oddslip.diagnosis.summary import summarize
    from oddslip.reports.numbers import main_rungs

    d = diagnosis
    summary = summarize(d, files)
    yield printable(summary.harm)
    yield printable(summary.repair)
    yield f"{printable(summary.next_step)}:"
    yield CodeLine(summary.command if reader is TERMINAL else summary.python)
    yield ""
    rungs = list(d.ladder) if verbose else main_rungs(d)
    yield rung_table(d.ladder, d.rung_name("chosen"), rungs)
    yield protocol_sentence(d)
    yield ""
    findings = d.findings if verbose else d.findings[:MAX_FINDINGS]
    for finding in findings:
        yield from finding_lines(finding, verbose=verbose)
    if verbose:
        yield from _details(d, reader)
    more = {
        "more finding": len(d.findings) - len(findings),
        "more rung": len(d.ladder.rungs) - len(rungs),
    }
    counts = [count_of(n, noun) for noun, n in more.items() if n]
    rest = f"{' and '.join(counts)}: {reader.details}. " if counts else ""
    yield f"{rest}What the words mean: docs/glossary.md."


class CodeLine(NamedTuple):
    """Code on a line of its own, to copy: print it with ``crop=False``."""

    code: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        yield Segment(f"  {printable(self.code)}")
        yield Segment.line()


def rung_table(
    ladder: Ladder, chosen_name: str = "chosen", rungs: Iterable[str] | None = None
) -> Table:
    """Rungs, all by default, with their metric and their paired difference to raw."""
    level = f"{level_name(ladder.level)} interval"
    table = new_table("rung", ladder.metric_name, level, "minus raw", level)
    table.padding = (0, 1, 0, 0)  # five columns in 80 characters
    table.columns[0].no_wrap = False  # if that is not enough, names wrap, not numbers
    for name in ladder if rungs is None else rungs:
        estimate, difference = ladder.estimate(name), ladder.gain(name)
        cells = [
            chosen_name if name == "chosen" else name,
            score(estimate.value),
            interval(estimate),
        ]
        if name != "raw":
            cells += [signed(difference.value), signed_interval(difference)]
        table.add_row(*cells)
    return table


def protocol_sentence(d: Diagnosis) -> str:
    """Which rows were calibrated on and evaluated."""
    if d.optimistic:
        return f"{d.n_rows:,} rows, cross-fitted. Rows of a later period will gain less."
    return f"{d.n_rows:,} rows evaluated, {d.n_calibration_rows:,} calibrated on."


def loss_sentence(d: Diagnosis, parts: Decomposition) -> str:
    """The loss, its parts, and what the repair returns of it, in one line."""
    from oddslip.reports.numbers import repair_of

    loss = f"Loss against the twin: {score(parts.loss)} {d.metric_name}"
    if parts.loss <= 0:
        return f"{loss}: none."
    shares = {"odds shift": parts.share("odds"), "slippage": parts.share("slippage")}
    if repair := repair_of(d):
        shares[f"{printable(repair.name)} returns"] = repair.share
    if parts.tie_residue > 0:
        shares["ties keep"] = parts.share("tie_residue")
    parts_text = [f"{name} {percent(share)}" for name, share in shares.items() if share is not None]
    return f"{loss}: {', '.join(parts_text)}."


def finding_lines(finding: Finding, *, verbose: bool = False) -> Iterator[RenderableType]:
    """A finding in two lines; with its evidence if verbose."""
    yield f"{finding.code} {finding.severity}: {printable(finding.sentence)}"
    yield _indented(f"-> {finding.advice}")
    if verbose:
        evidence = ", ".join(
            f"{name}={_evidence(value)}" for name, value in finding.evidence.items()
        )
        yield _indented(f"{evidence} (docs/{finding.anchor})")


def _indented(text: str) -> Padding:
    """A paragraph that keeps its indent where it wraps."""
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(printable(text)), (0, 0, 0, 2), expand=False)


def _evidence(value: object) -> str:
    """A value of evidence; a mapping is put in braces, to separate it from its neighbours."""
    text = value_text(value)
    return f"{{{text}}}" if isinstance(value, Mapping) else text


def _details(d: Diagnosis, reader: Reader) -> Iterator[RenderableType]:
    from oddslip.reports.numbers import (
        finite_budget,
        label_columns,
        tell_likeness,
        tell_residual,
        tell_shown,
        tell_signal,
    )

    yield ""
    yield f"Verdict: {printable(d.verdict.sentence)}"
    if d.decomposition is not None:
        yield loss_sentence(d, d.decomposition)
    yield tell_signal(d)
    yield tell_shown(d)
    shifts = d.shifts
    if shifts.median_ratio is not None:
        yield (
            f"Realized shift: median {times(shifts.median_ratio)} of ln w over {shifts.n_known:,} "
            f"labels."
        )
    if shifts.median_direct_ratio is not None:
        yield f"Direct shift: median {times(shifts.median_direct_ratio)} of ln w."
    if (budget := finite_budget(shifts)) is not None:
        yield f"Step budget: {nat(budget)} nat."
    yield from tell_residual(shifts)
    if d.overlap is not None:
        yield (
            f"Top {d.k}: {d.overlap.mean:.2f} labels in common with the twin; "
            f"{small_percent(d.overlap.share_changed)} of the rows differ."
        )
    if likeness := tell_likeness(d):
        yield likeness
    for missing in d.missing:
        yield f"Not computed: {missing.what}. Needs: {missing.needs}."
    yield ""
    yield from label_lines(label_columns(d), d.n_labels, reader)


# -------------------------------------------------------------------------------------------- plans


def show_plan(plan: Plan, *, verbose: bool = False) -> Iterator[RenderableType]:
    """What to print, piece by piece: texts and tables."""
    from oddslip.shifts.flood import FLOOD_THRESHOLD

    yield printable(plan.recommendation)
    yield ""
    table = new_table("before training", "value")
    low, high = float(plan.intended.min()), float(plan.intended.max())
    beyond = int(plan.unrealizable.sum())
    rows = {
        "labels, rows": f"{plan.n_labels:,}, {plan.n_rows:,}",
        "ln w, nat": f"{low:.2f} to {high:.2f}",
        "step budget, nat": nat(plan.budget) if plan.capped else "no cap, no bound",
        "labels beyond the budget": f"{beyond:,}",
        "smallest cap that admits every shift": nat(plan.admitting_cap),
        "largest cap that rules out saturation": nat(plan.unsaturating_cap),
        "inverting by ln w": plan.inversion.sentence,
        f"leaf with 1 positive in {plan.rows_in_leaf}, driven to": _leaf(plan),
        f"flood (rankers collapse from {FLOOD_THRESHOLD:g} on)": score(plan.flood),
    }
    what_if = plan.what_if
    if what_if is not None:
        rows[f"rows whose top {plan.k} would change"] = small_percent(what_if.share_changed)
        if what_if.loss is not None:
            rows[f"what-if loss in MAP@{plan.k}"] = estimated(what_if.loss)
    for name, value in rows.items():
        table.add_row(name, value)
    yield table
    if low < high:  # nothing is measured yet: the effect of the inversion is a prediction
        from oddslip.reports.numbers import count_regimes, read_regimes, tell_association

        yield " ".join(tell_association(count_regimes(read_regimes().points)))
    if verbose:
        yield ""
        yield from label_lines(plan.label_columns(), plan.n_labels)


def _leaf(plan: Plan) -> str:
    low, high = float(plan.leaf_value.min()), float(plan.leaf_value.max())
    return f"{score(low)} to {score(high)}"


# ------------------------------------------------------------------------------------------- labels


MAX_LABELS = 20
MAX_NAME = 24  # characters of a label's name on one line
MAX_BRIEF = 3 * MAX_NAME
HEADINGS = {
    "label": "label",
    "n_positives": "true",
    "calibration_positives": "true (cal)",
    "evaluation_positives": "true (eval)",
    "prior": "prior",
    "intended_shift": "ln w",
    "realized_shift": "realized",
    "direct_shift": "direct",
    "over_correction": "beyond",
    "auc": "AUC",
    "saturated_cells": "at 1.0",
    "takeover_slots": "slots if dead",
    "leaf_value": "leaf",
}


class LabelTable:
    """A table that repeats its first column where the others need more than one block."""

    def __init__(self, headings: list[str], rows: list[list[str]]) -> None:
        self.headings = headings
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len

        columns = zip(self.headings, *self.rows, strict=True)
        widths = [max(map(cell_len, column)) + 3 for column in columns]  # with their padding
        first = min(widths[0], MAX_NAME + 3)
        blocks: list[list[int]] = [[]]
        for number in range(1, len(widths)):
            width = first + sum(widths[each] for each in blocks[-1])
            if blocks[-1] and width + widths[number] > options.max_width:
                blocks.append([])
            blocks[-1].append(number)
        for block in blocks:
            if block is not blocks[0]:
                yield ""
            table = new_table(*(self.headings[number] for number in (0, *block)))
            table.columns[0].no_wrap = False
            table.columns[0].overflow = "fold"
            table.columns[0].max_width = MAX_NAME
            for row in self.rows:
                table.add_row(*(row[number] for number in (0, *block)))
            yield table


def label_lines(
    columns: dict[str, Any], n_labels: int, reader: Reader = TERMINAL
) -> Iterator[RenderableType]:
    """The labels with the most positives, with all their columns."""
    n_lines = min(n_labels, MAX_LABELS)
    headings = {name: short for name, short in HEADINGS.items() if name in columns}
    positives = columns.get("evaluation_positives", columns.get("n_positives"))
    order = np.argsort(-np.asarray(positives), kind="stable")[:n_lines]
    yield LabelTable(
        list(headings.values()),
        [[brief(value_text(columns[name][at])) for name in headings] for at in order],
    )
    if n_lines < n_labels:
        yield f"{n_lines} of {n_labels:,} labels shown; {reader.labels}."


def show_rounds(rounds: Rounds) -> Iterator[Any]:
    """A metric by rounds, and where it is best."""
    name = metric_name(rounds.metric, rounds.k)
    with_shift = rounds.shift_ratio is not None
    table = new_table(
        "rounds",
        f"raw {name}",
        f"repaired {name}",
        "cells at 1.0",
        *(["realized shift"] if with_shift else []),
    )
    for at, number in enumerate(rounds.rounds):
        cells = [f"{number:,}", score(rounds.raw[at]), score(rounds.repaired[at])]
        cells.append(small_percent(rounds.saturated[at]))
        if rounds.shift_ratio is not None:
            cells.append(f"{rounds.shift_ratio[at]:.2f}")
        table.add_row(*cells)
    yield table
    cost = score(rounds.cost_of_stopping_by_raw)
    yield (
        f"Raw is best after {rounds.best_raw:,} rounds, repaired after {rounds.best_repaired:,}. "
        f"Stopping where raw is best costs {cost} of repaired {name}."
    )
    if with_shift:
        yield "Realized shift: median over labels, as a share of the intended one, ln w."
