"""Options that several studies share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Finished = Annotated[
    bool, typer.Option("--finished", help="Only read finished cells; no data, no training.")
]

Data = Annotated[Path | None, typer.Option(help="Folder with the data sets.")]
Results = Annotated[Path, typer.Option(help="Folder of finished cells.")]
FirstSeed = Annotated[
    int, typer.Option(min=0, help="Seed of the first draw; thresholds were set below 1000.")
]
Page = Annotated[Path | None, typer.Option(help="Write the page (Markdown).")]
