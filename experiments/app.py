"""The commands of ``python -m experiments``."""

from __future__ import annotations

from experiments.commands.comparisons import peers, row_aware, selection, wild
from experiments.commands.data import archive, generate
from experiments.commands.mulan import mulan
from experiments.commands.pairs import instacart, instacart_baskets, santander, tafeng
from experiments.commands.simulation import monitor_simulation, verdict_simulation
from experiments.commands.supplement import (
    boundary,
    conventions,
    decisions,
    foldable,
    leaf,
    rounds,
    row_rankers,
    schematic,
    screening,
    survey,
    synthetic,
    wgboost,
)
from oddslip.cli.run import new_app, run

app = new_app("Reproduce the paper. A killed run continues where it stopped.")
SECTIONS = (mulan, tafeng, santander, instacart, instacart_baskets)
SUPPLEMENT = (leaf, synthetic, wgboost, conventions, boundary, row_rankers, survey, schematic)
OTHERS = (
    selection,
    foldable,
    screening,
    decisions,
    rounds,
    row_aware,
    peers,
    wild,
    verdict_simulation,
    monitor_simulation,
)
for command in (*SECTIONS, *SUPPLEMENT, *OTHERS, generate, archive):
    app.command()(command)


def main(arguments: list[str] | None = None) -> int:
    """Run a study; by default, the one that was typed. Returns the exit code."""
    return run(app, arguments, name="python -m experiments")
