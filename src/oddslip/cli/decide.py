"""`oddslip decide`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import oddslip
from oddslip.cli import options
from oddslip.cli.inputs import Inputs, pick, read_names
from oddslip.cli.outputs import check_outputs, console, print_json, write_figure
from oddslip.errors import InvalidInput

Output = Annotated[
    Path, typer.Option("-o", "--output", help="Where the repair is saved with the decision.")
]
RuleName = Annotated[
    str,
    typer.Option(
        "--rule",
        help="threshold (of each label), common_threshold, row (a length of each row) or length.",
    ),
]
Goal = Annotated[
    str,
    typer.Option(
        help="f1, micro_f1, precision, recall or cost; missed or wrong: a guarantee; with --rule "
        "length also map, ndcg and hit_rate."
    ),
]
Target = Annotated[
    float | None, typer.Option(help="Of precision, recall, missed and wrong: between 0 and 1.")
]
CostWrong = Annotated[float, typer.Option(help="Cost of a wrong label that is shown.")]
CostMissed = Annotated[float, typer.Option(help="Cost of a true label that is not shown.")]
KMax = Annotated[int | None, typer.Option("--k-max", help="Never show more labels; default: all.")]
Shrinkage = Annotated[
    float, typer.Option(help="Positives that the threshold by probabilities alone weighs.")
]
Figure = Annotated[
    Path | None,
    typer.Option(
        "--figure",
        help="Draw precision and recall by length, raw and repaired (.png, .svg or .pdf); with "
        "--rule length.",
    ),
]


def decide(
    context: typer.Context,
    repair: options.Repair,
    scores: options.Scores,
    labels: options.Labels = None,
    *,
    output: Output,
    rule: RuleName = "threshold",
    goal: Goal = "f1",
    target: Target = None,
    cost_wrong: CostWrong = 1.0,
    cost_missed: CostMissed = 1.0,
    k_max: KMax = None,
    shrinkage: Shrinkage = 10.0,
    groups: options.Groups = None,
    kind: options.RepairKind = None,
    exclude: options.Exclude = None,
    nan: options.Nan = "refuse",
    columns: options.Columns = None,
    label_names: options.Names = None,
    engine: options.EngineOption = "local",
    master: options.Master = "local[*]",
    row_id: options.RowId = None,
    threads: options.Threads = None,
    html: options.Html = None,
    json: options.Json = False,
    figure: Figure = None,
) -> None:
    """How many labels to show: fit thresholds or list lengths, and save them with the repair.

    Use rows that the repair was not fitted on.

    Examples:

      oddslip decide repair.oddslip scores.npy labels.npz --goal f1 -o decision.oddslip

      oddslip decide repair.oddslip scores.npy --goal precision --target 0.8 -o decision.oddslip

      oddslip decide repair.oddslip s.npy y.npz --rule row --goal missed --target 0.1 -o d.oddslip

      oddslip decide repair.oddslip s.npy y.npz --rule length --html page.html -o d.oddslip
    """
    check_outputs(output, html, figure=figure)
    if figure is not None and (rule != "length" or goal in ("missed", "wrong")):
        raise InvalidInput("--figure compares lengths: pass --rule length, and no guarantee.")
    fitted = oddslip.load_repair(repair)
    source = Inputs.of(context).open_for(fitted)
    decision = oddslip.Decision(
        fitted,
        costs=(cost_wrong, cost_missed),
        **pick(context, "rule", "goal", "target", "k_max", "shrinkage"),
    )
    decision.fit(source, groups=read_names(groups), threads=threads)
    decision.save(output)
    if html is not None:
        _write_page(decision, html, context)
    if figure is not None:
        write_figure(figure, decision.plot())
    if json:
        return print_json(decision.fitted_.to_dict())
    from oddslip.reports.text import show_decision

    out = console()
    for part in show_decision(decision.fitted_):
        out.print(part)
    return out.print(
        f"Saved to {output}. Apply it: oddslip apply {output} scores.npy --lists -o lists.parquet"
    )


def _write_page(decision: oddslip.Decision, path: Path, context: typer.Context) -> None:
    from oddslip.core.provenance import describe_run
    from oddslip.reports.html.decision import write_page

    names = ("repair", "scores", "labels", "groups", "exclude", "label_names")
    inputs = {name.replace("_", " "): context.params[name] for name in names}
    provenance = describe_run(context.obj, inputs, seed=oddslip.DEFAULT_SEED)
    write_page(decision, path, provenance=provenance)
