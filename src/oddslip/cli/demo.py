"""`oddslip demo`: train a matched pair, plan, diagnose, repair and report, on embedded data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oddslip.cli.outputs import console
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from oddslip.core.types import Array
    from oddslip.datasets.synthetic import SyntheticRows
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.learners import MatchedPair, OneVsRest
    from oddslip.metrics.evaluation import Evaluation
    from oddslip.planning.plan import Plan
    from oddslip.selection.repair import Repair

K, ROUNDS, LEARNING_RATE, SEED = 7, 60, 0.1, 7
N_LABELS, N_FEATURES, PREVALENCE = 40, 6, (0.004, 0.3)
PARTS = {"training": 15_000, "calibration": 5_000, "evaluated": 5_000, "fresh": 5_000}
FILES = {
    "scores": "evaluated-weighted.npy",
    "labels": "evaluated-labels.npz",
    "weights": "weights.npy",
    "unweighted": "evaluated-unweighted.npy",
    "calibration": "calibration-weighted.npy",
    "calibration labels": "calibration-labels.npz",
    "prior": "prior.npy",
    "label names": "names.txt",
}


@dataclass(frozen=True)
class _Run:
    pair: MatchedPair
    plan: Plan
    diagnosis: Diagnosis
    repair: Repair
    fresh: dict[str, Evaluation]  # MAP and AUC of the fresh rows, arm by arm


def demo(
    context: typer.Context,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the report and the files behind it.")
    ] = Path("demo-report"),
) -> None:
    """Train two small models, see what a weight per label does to a top 7, and repair it.

    Everything is embedded: data with known marginals, a weighted and an unweighted LightGBM,
    plan, diagnosis, repair, and the report. Needs LightGBM; takes about ten seconds on two idle
    cores.

    Examples:

      oddslip demo

      oddslip demo --output somewhere
    """
    if output.exists() and not output.is_dir():
        raise InvalidInput(f"{output} must be a folder, got a file. Name another with --output.")
    if not output.absolute().parent.is_dir():
        raise InvalidInput(f"{output} must lie in an existing folder. Make that first.")
    from oddslip.learners.backends.base import get_backend

    get_backend("lightgbm")  # fail before any work is done
    out = console()
    out.print(
        f"Training {2 * N_LABELS} small LightGBM models on {PARTS['training']:,} embedded rows, "
        f"then diagnosing and repairing them, in about ten seconds. Files go to {output}/.\n"
    )
    run = _run(output, context.obj)
    for piece in _show(run, output):
        out.print(piece, crop=False)


def _run(folder: Path, command: list[str] | None) -> _Run:
    """Train, plan, diagnose, repair and report; scores pass through files."""
    import oddslip
    from oddslip.datasets.synthetic import synthetic_rows
    from oddslip.learners import MatchedPair, OneVsRest

    n_rows = sum(PARTS.values())
    data = synthetic_rows(n_rows, N_LABELS, n_features=N_FEATURES, prevalence=PREVALENCE, seed=SEED)
    rows = dict(_cut())
    X, labels = data.X[rows["training"]], data.labels[rows["training"]]
    parameters = {"num_iterations": ROUNDS, "learning_rate": LEARNING_RATE, "num_leaves": 4}
    template = OneVsRest("lightgbm", parameters=parameters, seed=SEED)
    plan = oddslip.plan(labels, rounds=ROUNDS, learning_rate=LEARNING_RATE)
    pair = MatchedPair(template).fit(X, labels, label_names=data.label_names)
    files = _write_files(folder, pair, data, rows)
    diagnosis = _diagnose(pair, files, data.label_names)
    repair = oddslip.Repair(k=K, prior=pair.weighted_.prevalence_).fit(
        files["calibration"], files["calibration labels"], label_names=data.label_names
    )
    repair.save(folder / "repair.oddslip")
    _write_report(diagnosis, folder / "report.html", command, files)
    last = rows["fresh"]
    scores = _score(pair.weighted_, data.X[last])
    arms = {
        "unweighted": _score(pair.unweighted_, data.X[last]),
        "weighted": scores,
        "weighted, repaired": repair.transform(oddslip.Panel(scores, label_names=data.label_names)),
    }
    truth = data.labels[last]
    fresh = {name: oddslip.evaluate(arm, truth, k=K, auc=True) for name, arm in arms.items()}
    return _Run(pair, plan, diagnosis, repair, fresh)


def _diagnose(pair: MatchedPair, files: dict[str, Path], names: Sequence[str]) -> Diagnosis:
    import oddslip

    return oddslip.diagnose(
        files["scores"],
        files["labels"],
        k=K,
        weights=pair.weights_,
        unweighted=files["unweighted"],
        calibration=(files["calibration"], files["calibration labels"]),
        prior=pair.weighted_.prevalence_,
        rounds=ROUNDS,
        learning_rate=LEARNING_RATE,
        max_delta_step=0,
        label_names=names,
    )


def _write_report(
    diagnosis: Diagnosis, page: Path, command: list[str] | None, files: dict[str, Path]
) -> None:
    from oddslip.core.provenance import describe_run
    from oddslip.diagnosis.summary import CommandFiles
    from oddslip.reports.html.page import write_page

    names = {part: str(path) for part, path in files.items()}
    write_page(
        diagnosis,
        page,
        provenance=describe_run(command, files, seed=diagnosis.seed),
        files=CommandFiles(
            scores=names["scores"],
            labels=names["labels"],
            calibration=(names["calibration"], names["calibration labels"]),
            weights=names["weights"],
            unweighted=names["unweighted"],
            options={"--prior": names["prior"], "--label-names": names["label names"]},
        ),
    )


def _cut() -> Iterator[tuple[str, slice]]:
    start = 0
    for name, n_rows in PARTS.items():
        yield name, slice(start, start + n_rows)
        start += n_rows


def _score(model: OneVsRest, X: Array) -> Array:
    """Probabilities in float32, the form in which most people store scores."""
    return model.predict_proba(X).astype("float32")


def _write_files(
    folder: Path, pair: MatchedPair, data: SyntheticRows, rows: dict[str, slice]
) -> dict[str, Path]:
    """The input files of `oddslip diagnose`."""
    import numpy as np
    import scipy.sparse as sp

    from oddslip.io.files import atomic_write

    evaluated, calibration = rows["evaluated"], rows["calibration"]
    contents: dict[str, Array | str] = {
        "scores": _score(pair.weighted_, data.X[evaluated]),
        "labels": data.labels[evaluated],
        "weights": pair.weights_,
        "unweighted": _score(pair.unweighted_, data.X[evaluated]),
        "calibration": _score(pair.weighted_, data.X[calibration]),
        "calibration labels": data.labels[calibration],
        "prior": pair.weighted_.prevalence_,
        "label names": "\n".join(data.label_names) + "\n",
    }
    folder.mkdir(exist_ok=True)
    for part, content in contents.items():
        with atomic_write(folder / FILES[part]) as unfinished:
            if isinstance(content, str):
                unfinished.write_text(content, encoding="utf-8")
            elif unfinished.suffix == ".npz":
                sp.save_npz(unfinished, sp.csr_array(content.astype(np.int8)))
            else:
                np.save(unfinished, content)
    return {part: folder / name for part, name in FILES.items()}


def _show(run: _Run, folder: Path) -> Iterator[RenderableType]:
    """One screen: the verdict, its causes, and what to do."""
    from oddslip.diagnosis.summary import summarize
    from oddslip.reports import text

    fresh, weights = run.fresh, run.pair.weights_
    summary = summarize(run.diagnosis)
    yield summary.harm
    yield summary.repair
    yield ""
    yield (
        f"What happened: {2 * N_LABELS} LightGBM models were trained, one per label, once without "
        f"weights and once with negatives / positives as weight ({weights.min():.0f} to "
        f"{weights.max():.0f}). {PARTS['evaluated']:,} other rows were diagnosed, and "
        f"{PARTS['calibration']:,} more fitted the repair, {run.repair.chosen_}."
    )
    yield ""
    yield f"{PARTS['fresh']:,} fresh rows, ranked by each model:"
    yield text.ladder_table(fresh, metric="map")
    raw, twin = fresh["weighted"], fresh["unweighted"]
    cost = twin["map"].value - raw["map"].value
    returned = fresh["weighted, repaired"]["map"].value - raw["map"].value
    yield (
        f"The weights cost {cost / twin['map'].value:.0%} of MAP@{K}, and the repair returns "
        f"{returned / cost:.0%} of the loss. Within labels rows keep their order (AUC "
        f"{raw.mean_auc:.3f} against {twin.mean_auc:.3f}): what broke is the order between labels."
    )
    yield ""
    yield f"Known before training: {run.plan.recommendation}"
    yield ""
    yield f"Report: {text.printable(folder / 'report.html')} (open it in a browser)"
    yield "On your own scores:"
    yield text.CodeLine("oddslip diagnose scores.npy labels.npz -k 7 --html report.html")
