"""`reproduce_pairs`: the paper's section 3 on product data, as one resumable command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.datasets.recommendation import Recommendation
from experiments.pairs.arms import AGAIN, ON_SCORES, PARTS, Arm, plan_arms
from experiments.pairs.cells import describe_data, measure_arm, measure_part
from experiments.pairs.training import Bench
from experiments.store import RESULTS, CellStore, Stages, stage
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar

MEASURES = 2  # raised when what a cell measures changes, so that cells are measured again

Cells = dict[str, dict[str, Any]]
Reader = Callable[[int | None], Recommendation]


@dataclass(eq=False)
class Variant:
    """One label set of a study: its data, read when first needed, and its finished cells."""

    read: Callable[[], Recommendation] | None
    store: CellStore
    work: Path
    command: str
    suffix: str = ""
    rediagnose: bool = False
    bench: Bench | None = None
    configuration: dict[str, Any] | None = None

    def open(self) -> Cells:
        """The cell that describes the data; without a reader, the one that is kept."""
        key = f"data{self.suffix}"
        if self.read is None:
            self.configuration = self.store.read_configuration(key, "data")
            return {} if self.configuration is None else self._cell(key, {}, None, "")
        stages: Stages = {}
        with stage(stages, "read"):
            data = self.read()
        self.bench = Bench(data, self.work)
        self.configuration = self.bench.configuration
        return self._cell(key, {}, lambda: describe_data(data) | {"stages": stages}, "")

    def arm_cell(self, part: str, arm: Arm) -> Cells:
        """The cell of an arm, or of what a part finds in its scores."""
        bench = self.bench
        key = f"{part}-{arm.key}" if part in ON_SCORES else arm.key
        rediagnose = self.rediagnose and part not in ON_SCORES

        def measure() -> dict[str, Any]:
            assert bench is not None
            scores = bench.scores(arm)
            if rediagnose:
                self._check_scores(key, arm, scores.hashes())
            if part == AGAIN:
                again = bench.scores(replace(arm, variant=AGAIN))
                return measure_part(part, bench.data, scores, again)
            if part in ON_SCORES:
                return measure_part(part, bench.data, scores)
            twin = bench.scores(arm.twin) if arm.weighted else None
            return measure_arm(bench.data, arm, scores, twin)

        options = f"--part {part} {arm.options}" if part in ON_SCORES else arm.options
        can_measure = bench is not None and (
            not self.rediagnose or (rediagnose and bench.has_scores(arm))
        )
        compute = measure if can_measure else None
        return self._cell(key, {"arm": arm.configuration()}, compute, options, rediagnose)

    def _check_scores(self, key: str, arm: Arm, hashes: dict[str, str]) -> None:
        """Refuse other scores than those that the parts of a finished cell rest on."""
        stored = self.store.read_values(key, arm=arm.configuration())
        if stored is not None and stored["sha256"] != hashes:
            raise InvalidInput(
                f"scores of {key} must be those of its finished cell to diagnose them again, got "
                "others by their hash. Delete the cell to measure all parts of it anew."
            )

    def _cell(
        self,
        key: str,
        arm: dict[str, Any],
        compute: Callable[[], Any] | None,
        options: str,
        again: bool = False,
    ) -> Cells:
        configuration = {"data": self.configuration, "measures": MEASURES} | arm
        command = f"{self.command} {options}".strip() + " --rediagnose" * again
        cell = self.store.find(key, configuration, compute, command=command, again=again)
        return {} if cell is None else {key: dict(cell)}


def reproduce_pairs(
    study: str,
    read: Reader | None,
    *,
    command: str | None = None,
    n_labels: int | None = None,
    parts: Sequence[str] = PARTS,
    learners: Collection[str] | None = None,
    weights: Collection[str] | None = None,
    caps: Collection[float | None] | None = None,
    draws: Collection[int] | None = None,
    results: Any = None,
    work: Any = None,
    finished: bool = False,
    rediagnose: bool = False,
) -> Cells:
    """Train, measure and keep every cell asked for; returns all of them by key.

    Parameters
    ----------
    study : str
        Its name: that of the file of its results, and of the default folder of its scores.
    read : callable, optional
        Gives the data for a number of labels; None as its argument asks for all of them.
    command : str, optional
        What runs the study, kept in its cells.
    n_labels : int, optional
        Labels of all parts but "all-products".
    parts : sequence of str
        Of `PARTS`: "ladder", "caps", "splits", "choices", "doses", "draws", "earlier" (the
        supplement's earlier configuration), "again" (every arm of the ladder trained a second
        time), "all-products".
    learners, weights, caps, draws : collections, optional
        Only these arms of the parts. A cap of None is no cap, a draw of 0 all training rows.
    results, work : path
        Where finished cells and trained scores are kept. Both are used again.
    finished : bool
        Only read the cells that are finished, without the data; train and measure nothing.
    rediagnose : bool
        Measure the cells of arms whose scores are kept again, finished or not; train nothing.

    Examples
    --------
    >>> from experiments.datasets.baskets.tafeng import read_tafeng  # doctest: +SKIP
    >>> cells = reproduce_pairs(
    ...     "tafeng", lambda n: read_tafeng(n_labels=n), n_labels=1000, parts=["ladder"]
    ... )  # doctest: +SKIP
    """
    if read is None and not finished:
        raise InvalidInput("read must give the data unless only finished cells are read.")
    if finished and rediagnose:
        raise InvalidInput("rediagnose measures arms again, finished measures none. Pass one.")
    planned = plan_arms(parts, learners=learners, weights=weights, caps=caps, draws=draws)
    store = CellStore(results or RESULTS, study)
    folder = Path(work or f".work/{study}")
    ran = command or f"python -m experiments {study}"
    if n_labels is not None:
        ran += f" --labels {n_labels}"

    def make(labels: int | None, suffix: str) -> Variant:
        reader = None if finished or read is None else (lambda: read(labels))
        return Variant(reader, store, folder, ran, suffix, rediagnose)

    variants = {False: make(n_labels, ""), True: make(None, "-all-products")}
    cells: Cells = {}
    with progress_bar("cells", len(planned)) as advance:
        for part, arm in planned:
            variant = variants[arm.all_products]
            if variant.configuration is None:
                cells |= variant.open()
            if variant.configuration is not None:
                cells |= variant.arm_cell(part, arm)
            advance(1)
    return cells
