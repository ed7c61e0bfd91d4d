"""Single numbers of the paper's section 3, beside the same numbers from our cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oddslip.studies.pair_arms import LEARNERS, Arm
from oddslip.studies.pair_cells import rung_values
from oddslip.studies.pair_tables import Cells, cap_rows, draw_rows, markdown


def quoted_numbers(cells: Cells, printed: Mapping[str, float]) -> str:
    """What the text of the paper prints, ours, and the difference, as Markdown."""
    ours = dict(_find(cells))
    rows = [
        [name, f"{ours[name]:.4g}", f"{value:g}", f"{ours[name] - value:+.3f}"]
        for name, value in printed.items()
        if name in ours
    ]
    return markdown(["", "ours", "paper", "difference"], rows)


def _find(cells: Cells) -> Iterator[tuple[str, float]]:
    """Our numbers under the names of `oddslip.studies.pair_paper.NUMBERS`."""
    for learner in LEARNERS:
        cell = cells.get(Arm(learner, "r").key)
        if cell is None:
            continue
        told = cell["test-split"]["decomposition"]
        shares = {
            "odds share": told["shares"]["odds"],
            "inversion returns": told["returned"].get("inversion"),
            "isotonic returns": told["returned"].get("isotonic"),
            "re-ordered by the twin": cell["reordered"]["by_twin"]["share"],
            "re-ordered by the oracle": cell["reordered"]["by_oracle"]["share"],
        }
        for name, share in shares.items():
            if share is not None:
                yield f"{name}, {learner} (%)", 100 * share
        ratio = cell["deployment"]["shifts"]["median_ratio"]
        if ratio is not None:
            yield f"median realized over intended shift, {learner}", ratio
        yield f"isotonic, deployment, {learner}", rung_values(cell, "deployment")["isotonic"]
    for weight, said in (("sqrt", "sqrt r"), ("10r", "10 r")):
        cell = cells.get(Arm("lightgbm", weight).key)
        for rung in ("raw", "isotonic") if cell else ():
            yield f"{rung} at {said}, lightgbm", rung_values(cell, "test-split")[rung]
    for row in cap_rows(cells):
        names = ("raw", "inversion", "isotonic", "largest shift", "twin raw", "twin isotonic")
        for name in names if row["cap"] is not None else ():
            value = row[name]
            if value is not None:
                yield f"{name} at cap {row['cap']:g}", value
    for name, drawn in draw_rows(cells).items():
        scale, unit = (100, " (%)") if name == "odds share" else (1, "")
        yield f"{name.removeprefix('w=r ')} over draws{unit}", scale * drawn["mean"]
    cell = cells.get(Arm("mlp", "r", all_products=True).key)
    if cell is not None:
        values = rung_values(cell, "test-split")
        yield "isotonic, all products, mlp", values["isotonic"]
        yield "isotonic with identity, all products, mlp", values["isotonic, identity"]
        yield "popularity, all products", values["popularity"]
