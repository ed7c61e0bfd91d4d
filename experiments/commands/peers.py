"""The study of peers of the default rule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Data, Finished, Page, Results
from experiments.store import RESULTS
from oddslip.cli.options import Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json, write_text


def peers(
    peer: Annotated[list[str] | None, typer.Option(help="quadratic, mcgrad. Both.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given several times. All twelve.")
    ] = None,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Do MCGrad or quadratic scaling repair better than what `auto` chooses?

    Examples:

      python -m experiments peers --peer quadratic --dataset flags

      python -m experiments peers --finished --page docs/paper/peers.md
    """
    from experiments.mulan.study import DATASETS
    from experiments.selection.page import summarise
    from experiments.selection.peers import PEERS, reproduce_peers
    from experiments.selection.peers_page import CONTENDERS, write_page

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_peers(
        peers=peer or PEERS,
        datasets=dataset or DATASETS,
        data=data,
        results=results,
        work=work,
        finished=finished,
    )
    if page is not None:
        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    from oddslip.reports.text import new_table

    for name, some in cells.items():
        if some:
            table = new_table(f"{name}, {len(some)} cells", "gain over raw", "harmed", "worst")
            for contender in CONTENDERS[name]:
                summary = summarise(some, contender)
                table.add_row(
                    contender, f"{summary.mean:+.4f}", f"{summary.harmed}", f"{summary.worst:+.4f}"
                )
            console().print(table)
    return None
