"""`oddslip demo`: train a matched pair, plan, diagnose, repair and report, on embedded data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oddslip.cli.options import console

if TYPE_CHECKING:
    from oddslip.datasets.synthetic import SyntheticRows
    from oddslip.diagnosis.plan import Plan
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.learners import MatchedPair
    from oddslip.metrics.evaluation import Evaluation
    from oddslip.selection.repair import Repair

K, ROUNDS, LEARNING_RATE, SEED = 7, 60, 0.1, 7
N_LABELS, N_FEATURES, PREVALENCE = 40, 6, (0.004, 0.3)
PARTS = {"training": 15_000, "calibration": 5_000, "evaluated": 5_000, "fresh": 5_000}
FINDINGS = 2  # of the diagnosis, on the screen; the report has all
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
class _Story:
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
    from oddslip.errors import InvalidInput

    if output.exists() and not output.is_dir():
        raise InvalidInput(f"{output} must be a folder, got a file. Name another with --output.")
    if not output.absolute().parent.is_dir():
        raise InvalidInput(f"{output} must lie in an existing folder. Make that first.")
    from oddslip.learners.backends.base import get_backend

    get_backend("lightgbm")  # what is needed is asked for before anything is done
    out = console()
    out.print(
        f"Training {2 * N_LABELS} small LightGBM models on {PARTS['training']:,} embedded rows, "
        "then diagnosing and repairing them: ten seconds, or up to a minute where cores are busy. "
        f"Nothing is fetched; files go to {output}/.\n"
    )
    story = _tell(output, context.obj)
    for piece in _show(story, output):
        out.print(piece)


def _tell(folder: Path, typed: list[str] | None) -> _Story:
    """All of the work. Scores go through files, as they would in earnest."""
    import oddslip
    from oddslip.core.provenance import describe_run
    from oddslip.datasets.synthetic import synthetic_rows
    from oddslip.learners import MatchedPair, OneVsRest
    from oddslip.reports.html.page import write_page

    drawn = synthetic_rows(
        sum(PARTS.values()),
        N_LABELS,
        n_features=N_FEATURES,
        prevalence=PREVALENCE,
        seed=SEED,
    )
    rows = dict(_cut())
    booster: dict[str, Any] = {"rounds": ROUNDS, "learning_rate": LEARNING_RATE}
    parameters = {"num_iterations": ROUNDS, "learning_rate": LEARNING_RATE, "num_leaves": 4}
    template = OneVsRest("lightgbm", parameters=parameters, seed=SEED)
    training = rows["training"]
    planned = oddslip.plan(drawn.labels[training], **booster)
    pair = MatchedPair(template).fit(
        drawn.X[training], drawn.labels[training], label_names=drawn.label_names
    )
    files = _write_files(folder, pair, drawn, rows)
    held_out = (files["calibration"], files["calibration labels"])
    diagnosis = oddslip.diagnose(
        files["scores"],
        files["labels"],
        k=K,
        weights=pair.weights_,
        unweighted=files["unweighted"],
        calibration=held_out,
        prior=pair.weighted_.prevalence_,
        max_delta_step=0,
        label_names=drawn.label_names,
        **booster,
    )
    repair = oddslip.Repair(k=K, prior=pair.weighted_.prevalence_).fit(
        *held_out, label_names=drawn.label_names
    )
    repair.save(folder / "repair.oddslip")
    write_page(
        diagnosis,
        folder / "report.html",
        provenance=describe_run(typed, files, seed=diagnosis.seed),
    )
    last = rows["fresh"]
    arms = {
        "unweighted": _score(pair.unweighted_, drawn.X[last]),
        "weighted": (scores := _score(pair.weighted_, drawn.X[last])),
        "weighted, repaired": repair.transform(
            oddslip.Panel(scores, label_names=drawn.label_names)
        ),
    }
    truth = drawn.labels[last]
    fresh = {name: oddslip.evaluate(arm, truth, k=K, auc=True) for name, arm in arms.items()}
    return _Story(pair, planned, diagnosis, repair, fresh)


def _cut() -> Iterator[tuple[str, slice]]:
    start = 0
    for name, n_rows in PARTS.items():
        yield name, slice(start, start + n_rows)
        start += n_rows


def _score(arm: Any, X: Any) -> Any:
    """Stored as most people store scores: float32 probabilities."""
    return arm.predict_proba(X).astype("float32")


def _write_files(
    folder: Path, pair: MatchedPair, drawn: SyntheticRows, rows: dict[str, slice]
) -> dict[str, Path]:
    """What `oddslip diagnose` would be given, as files."""
    import numpy as np
    import scipy.sparse as sp

    from oddslip.io.files import atomic_write

    evaluated, calibration = rows["evaluated"], rows["calibration"]
    holding = {
        "scores": _score(pair.weighted_, drawn.X[evaluated]),
        "labels": drawn.labels[evaluated],
        "weights": pair.weights_,
        "unweighted": _score(pair.unweighted_, drawn.X[evaluated]),
        "calibration": _score(pair.weighted_, drawn.X[calibration]),
        "calibration labels": drawn.labels[calibration],
        "prior": pair.weighted_.prevalence_,
        "label names": "\n".join(drawn.label_names) + "\n",
    }
    folder.mkdir(exist_ok=True)
    for part, held in holding.items():
        with atomic_write(folder / FILES[part]) as unfinished:
            if isinstance(held, str):
                unfinished.write_text(held, encoding="utf-8")
            elif unfinished.suffix == ".npz":
                sp.save_npz(unfinished, sp.csr_array(held.astype(np.int8)))
            else:
                np.save(unfinished, held)
    return {part: folder / name for part, name in FILES.items()}


def _show(story: _Story, folder: Path) -> Iterator[Any]:
    """One screen: the verdict first, then how it came about, then what to do."""
    from oddslip.reports import text
    from oddslip.reports.text import finding_lines, loss_sentence

    diagnosis, fresh, parts = story.diagnosis, story.fresh, PARTS
    weights = story.pair.weights_
    yield diagnosis.verdict.sentence
    yield ""
    yield (
        f"What happened: {2 * N_LABELS} small LightGBM models were trained just now, one per label "
        f"and arm, on {parts['training']:,} embedded rows. The arms differ only in the weight of "
        f"positives: 1, or negatives / positives of each label, {weights.min():.0f} to "
        f"{weights.max():.0f}. {parts['calibration']:,} other rows calibrate, "
        f"{parts['evaluated']:,} are diagnosed, {parts['fresh']:,} fresh ones are below."
    )
    yield ""
    yield f"Before training, plan: {story.plan.recommendation}"
    yield ""
    if diagnosis.decomposition is not None:
        loss = loss_sentence(diagnosis, diagnosis.decomposition)
        yield f"After training, diagnose: {loss}"
    for finding in diagnosis.findings[:FINDINGS]:
        yield from finding_lines(finding)
    yield ""
    yield f"Repair, chosen by 5-fold cross-validation: {story.repair.why_}"
    yield ""
    yield text.ladder_table(fresh, metric="map")
    raw, twin = fresh["weighted"], fresh["unweighted"]
    cost = twin["map"].value - raw["map"].value
    returned = fresh["weighted, repaired"]["map"].value - raw["map"].value
    yield (
        f"On fresh rows the weight costs {cost / twin['map'].value:.0%} of MAP@{K}; within labels "
        f"the weighted model orders rows about as well (AUC {raw.mean_auc:.3f} against "
        f"{twin.mean_auc:.3f}). What broke is the order between labels, and the repair returns "
        f"{returned / cost:.0%} of the loss."
    )
    yield ""
    yield f"Report: {text.printable(folder / 'report.html')} (open it in a browser)"
    yield "On your own scores:  oddslip diagnose scores.npy labels.npz -k 7 --html report.html"
