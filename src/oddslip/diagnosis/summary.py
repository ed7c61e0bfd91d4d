"""The first three sentences of a diagnosis: the damage, the repair, and what to run next.

Text, HTML and JSON show the same `Summary`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from oddslip.core.formatting import estimated, percent, score
from oddslip.diagnosis.comparison import (
    chosen_repair,
    fitted_repair,
    holds_labels,
    is_below_popularity,
    loses,
    name_repair,
    popular_list,
    rises_in_vain,
    twin_effect,
    twin_standing,
    weights_are_strange,
)
from oddslip.diagnosis.result import Variable
from oddslip.diagnosis.verdict import Grounds

if TYPE_CHECKING:
    from oddslip.diagnosis.result import Diagnosis


class Summary(NamedTuple):
    """A diagnosis in three sentences.

    Attributes
    ----------
    harm : str
        Whether the ranking is hurt, and by how much.
    repair : str
        What repairs it, and what share of the loss that returns.
    next_step : str
        What to do next, without the full stop: a command follows.
    command, python : str
        The same step on the command line and in Python, ready to paste.
    """

    harm: str
    repair: str
    next_step: str
    command: str
    python: str

    def sentences(self, code: str) -> tuple[str, str, str]:
        """Three sentences, the last of which ends with the code to run."""
        return self.harm, self.repair, f"{self.next_step}: {code}"


@dataclass(frozen=True, slots=True)
class CommandFiles:
    """The files that a command names, by default those of the documentation.

    ``calibration`` holds the scores and labels of the calibration rows, if they have their own
    files, and ``calibration_exclude`` the cells of these rows to ignore. ``options`` are options of
    `oddslip diagnose` that other commands have to repeat.
    """

    scores: str = "scores.npy"
    labels: str | None = "labels.npz"
    calibration: tuple[str, ...] = ()
    calibration_exclude: str | None = None
    weights: str = "weights.npy"
    unweighted: str = "unweighted-scores.npy"
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[str, ...]:
        """The evaluated rows: scores, and labels unless the scores' file holds them."""
        return (self.scores,) if self.labels is None else (self.scores, self.labels)


EVERYWHERE = ("--kind", "--nan", "--columns", "--label-names", "--engine", "--master", "--row-id")
OPTIONS = {
    "fit": (*EVERYWHERE, "--metric", "--propensities", "--prior", "--exclude"),
    "rank": (*EVERYWHERE, "--exclude"),
    "evaluate": (*EVERYWHERE, "--exclude"),
    "diagnose": (*EVERYWHERE, "--metric", "--propensities", "--prior", "--exclude"),
}


def summarize(diagnosis: Diagnosis, files: CommandFiles | None = None) -> Summary:
    """Summarize a diagnosis in three sentences.

    Parameters
    ----------
    diagnosis : Diagnosis
    files : CommandFiles, optional
        What the command is to name.

    Returns
    -------
    Summary

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(2000, 20, noise=0.3, realized=0.6, seed=1)
    >>> summary = summarize(diagnose(pair.weighted, pair.labels, k=5, n_replicates=50))
    >>> summary.command
    'oddslip fit scores.npy labels.npz -k 5 -o repair.oddslip'
    >>> summary.python
    'repair = oddslip.Repair(k=5).fit(scores, labels)'
    """
    grounds = Grounds(diagnosis, chosen_repair(diagnosis), twin_standing(diagnosis))
    step = _next_step(diagnosis, grounds, files or _default_files(diagnosis))
    return Summary(_describe_harm(diagnosis, grounds), _describe_repair(diagnosis, grounds), *step)


def _default_files(d: Diagnosis) -> CommandFiles:
    """Names that say what a file holds, for a diagnosis of arrays."""
    options = {"--metric": d.metric} if d.metric != "map" else {}
    if d.prior_source == "given":
        options["--prior"] = "prior.npy"
    if d.kind != "probability":
        options["--kind"] = d.kind
    if "nan" in d.arguments:
        options["--nan"] = d.arguments["nan"]
    for name, path in (("propensities", "propensities.npy"), ("exclude", "exclude.npz")):
        if name in d.arguments:
            options[f"--{name}"] = path
    rows = () if d.optimistic else ("calibration-scores.npy", "calibration-labels.npz")
    excluded = None if _fitted_rows(d)[1] is None else "calibration-exclude.npz"
    return CommandFiles(
        calibration=rows, calibration_exclude=excluded if rows else None, options=options
    )


# --------------------------------------------------------------------------------- is it hurt?


def _describe_harm(d: Diagnosis, grounds: Grounds) -> str:
    metric, raw = d.metric_name, score(d.ladder.value("raw"))
    if holds_labels(d):
        return f"The scores hold the labels, so a {metric} of {raw} says nothing of a model."
    if d.verdict.code == "no_signal":
        mean = estimated(d.signal.mean)
        if d.signal.standing == "reversed":
            return f"The scores rank rows in reverse: the mean AUC within labels is {mean}."
        return f"The scores carry no signal: the mean AUC within labels is {mean}, about chance."
    if grounds.hurt:
        return _describe_loss(d)
    if is_below_popularity(d):
        popular = score(d.ladder.value(popular_list(d) or "popularity"))
        return (
            "The ranking is worse than one list of popular labels for all rows: "
            f"{metric} is {raw}, that of the list {popular}."
        )
    if d.weighting == "common":
        return f"Healthy: one weight for all labels cannot change their order ({metric} {raw})."
    if d.weighting == "none" and grounds.repair is None:
        return f"Healthy: no label is weighted, and {metric} is {raw}."
    if grounds.twin is not None:
        twin = score(d.ladder.value("unweighted"))
        return f"{twin_effect(d)}: {metric} is {raw} with them and {twin} without."
    if grounds.repair is not None:
        return (
            f"The scores of different labels are not comparable: {metric} is {raw}, and a repair "
            "clearly raises it."
        )
    if d.weighting == "label-specific" and weights_are_strange(d):
        return f"No damage found: {metric} is {raw}, but the weights passed do not fit the scores."
    if d.weighting == "label-specific":
        return (
            f"Whether the label weights cost anything is unknown: {metric} is {raw}, and there is "
            "no unweighted model to compare with."
        )
    return f"No damage found: {metric} is {raw}."


def _describe_loss(d: Diagnosis) -> str:
    raw, twin = d.ladder.value("raw"), d.ladder.value("unweighted")
    lost, metric = percent(1 - raw / twin), d.metric_name
    if weights_are_strange(d):
        return (
            f"The scores lost {lost} of {metric} ({score(raw)}, against {score(twin)} for the "
            "unweighted model), but the weights passed do not fit them."
        )
    return (
        f"The label weights cost {lost} of {metric}: it is {score(raw)} with them and "
        f"{score(twin)} without."
    )


# ---------------------------------------------------------------------------- what repairs it?


def _describe_repair(d: Diagnosis, grounds: Grounds) -> str:
    if holds_labels(d):
        return "What a repair does is unknown until the scores are those of a model on new rows."
    if d.verdict.code == "no_signal":
        return "Nothing can be repaired, because no map per label creates a signal."
    if d.verdict.code == "drift":
        return _describe_drift(d, grounds)
    if grounds.repair is not None:
        return f"{_describe_effect(d, grounds, grounds.repair)}{_describe_rest(d, grounds)}."
    if is_below_popularity(d):
        return "No repair clearly beats that list on these rows."
    if rises_in_vain(d):
        popular = score(d.ladder.value(popular_list(d) or "popularity"))
        return (
            "No repair clearly beats both the raw scores and one list of popular labels for all "
            f"rows, whose {d.metric_name} is {popular}."
        )
    if loses(d, "isotonic"):
        value = score(d.ladder.value("isotonic"))
        return (
            f"Calibration does not pay on these rows: isotonic lowers {d.metric_name} to {value}."
        )
    if grounds.sound:
        return "Nothing needs repair, because no calibrator clearly beats the raw scores."
    return "No repair clearly beats the raw scores on these rows."


def _describe_drift(d: Diagnosis, grounds: Grounds) -> str:
    differ = (
        "the calibration rows differ from the evaluated rows (in labels with "
        f"{percent(d.drift.share)} of the positives)"
    )
    if grounds.repair == "inversion":
        effect = _describe_effect(d, grounds, "inversion")
        return f"{effect}; it needs no calibration rows, and {differ}."
    rung = fitted_repair(d)
    if rung is None:
        return f"No repair is proven, because {differ}."
    return f"{_describe_effect(d, grounds, rung)}, although {differ}."


def _describe_effect(d: Diagnosis, grounds: Grounds, rung: str) -> str:
    name = f"The calibrator {name_repair(d, rung)}"
    if rung == "chosen":
        name += ", which Repair chooses,"
    elif rung == "inversion":
        name = "Subtracting ln w, the logarithm of each weight,"
    share = grounds.share_returned(rung)
    returns = "" if share is None else f" and returns {percent(share)} of the loss"
    return f"{name} raises {d.metric_name} to {score(d.ladder.value(rung))}{returns}"


def _describe_rest(d: Diagnosis, grounds: Grounds) -> str:
    """What the repair does not do, as the end of its sentence."""
    if d.verdict.code == "keep_margins":
        residue = None if d.decomposition is None else d.decomposition.share("tie_residue")
        loss = "may hold more" if residue is None else f"hold {percent(residue)} of it"
        return f"; ties of saturated scores {loss}, which only margins avoid"
    if grounds.returns_less and not weights_are_strange(d):
        return "; only training without weights returns the rest"
    if grounds.takeover:
        return "; labels without calibration positives must get their prior, as they do by default"
    return ""


# ------------------------------------------------------------------------------ what to run next


def _next_step(d: Diagnosis, grounds: Grounds, files: CommandFiles) -> tuple[str, str, str]:
    """The step in words, as a command and as Python."""
    code, repair = d.verdict.code, grounds.repair
    if holds_labels(d):
        return (
            "Check what the model was trained on, and evaluate other rows",
            _command("evaluate", files, *files.rows, "-k", str(d.k), "--auc"),
            _call("oddslip.evaluate", *_rows(d), k=d.k, **_passed(d, "kind", *ROWS), auc=True),
        )
    if code == "no_signal":
        return (
            "Check that the rows of scores and labels belong together, and the sign of the scores",
            _command("evaluate", files, *files.rows, "-k", str(d.k), "--auc"),
            _call("oddslip.evaluate", *_rows(d), k=d.k, **_passed(d, "kind", *ROWS), auc=True),
        )
    if repair == "inversion":
        return "Save this repair", *_fit_fixed(d, files, "inversion")
    if code == "drift":
        names = ("served-scores.npy", "served-labels.npz")[: len(files.rows)]
        excluded = "served-exclude.npz" if "--exclude" in files.options else None
        served = replace(files, calibration=names, calibration_exclude=excluded)
        step = _fit_chosen(d, served, _fit_served(d))
        return "Fit a repair on rows like those you serve", *step
    if repair is not None:
        return "Fit and save this repair", *_fit_chosen(d, files, _fit(d))
    if code == "undecided":
        purpose = "Diagnose again with the scores of the same model trained without weights"
        return purpose, *_diagnose_with_twin(d, files)
    if is_below_popularity(d) and not _twin_beats_popularity(d, grounds):
        return "Show every row the most frequent labels", *_fit_fixed(d, files, "popularity")
    if grounds.hurt:
        step = _rank(d, files, files.unweighted, "unweighted")
        return "Rank with the model trained without weights", *step
    return "Rank with the scores as they are", *_rank(d, files, files.scores, "scores")


def _fit_chosen(d: Diagnosis, files: CommandFiles, fit: str) -> tuple[str, str]:
    """Choose and fit a repair with the inputs of the diagnosis."""
    words = [*(files.calibration or files.rows), "-k", str(d.k), *_weights(d, files), *OUTPUT]
    inputs = _passed(d, "metric", "propensities", "prior", "weights")
    repair = _call("oddslip.Repair", k=d.k, **inputs, kind=_kind(d), **_passed(d, "seed", "keyed"))
    return _command("fit", files, *words), f"repair = {repair}.{fit}"


def _fit_fixed(d: Diagnosis, files: CommandFiles, name: str) -> tuple[str, str]:
    """A calibrator that has nothing to choose."""
    rows = files.calibration or files.rows
    inverts = name == "inversion"
    weights = _weights(d, files) if inverts else []
    words = [*rows, "--calibrator", name, *weights, *OUTPUT]
    prior = _passed(d, "prior")
    if name == "popularity" and popular_list(d) != name:  # the list by the calibration rows
        prior = {}
        options = {key: value for key, value in files.options.items() if key != "--prior"}
        files = replace(files, options=options)
    call = _call(
        f"oddslip.calibrators.{name.title()}",
        *(["weights"] if inverts else []),
        **prior,
        kind=_kind(d),
    )
    return _command("fit", files, *words), f"repair = {call}.{_fit(d)}"


def _diagnose_with_twin(d: Diagnosis, files: CommandFiles) -> tuple[str, str]:
    words = [*files.rows, "-k", str(d.k), *_weights(d, files), "--unweighted", files.unweighted]
    if files.calibration:
        words += ["--calibration", files.calibration[0]]
        words += [word for path in files.calibration[1:] for word in ("--calibration-labels", path)]
        if files.calibration_exclude is not None:
            words += ["--calibration-exclude", files.calibration_exclude]
    arguments = {"k": d.k, **d.arguments, "unweighted": Variable("unweighted")}
    arguments.pop("labels", None)
    return _command("diagnose", files, *words), _call("oddslip.diagnose", *_rows(d), **arguments)


def _rank(d: Diagnosis, files: CommandFiles, path: str, variable: str) -> tuple[str, str]:
    command = _command("rank", files, path, "-k", str(d.k), "-o", "ranked.parquet")
    return command, _call("oddslip.rank", variable, k=d.k, **_passed(d, "kind", *ROWS))


OUTPUT = ("-o", "repair.oddslip")
ROWS = ("label_names", "exclude", "nan")  # arguments of every verb that reads rows


def _command(verb: str, files: CommandFiles, *words: str) -> str:
    """A command line that a shell reads as intended, whatever the files are called."""
    given: dict[str, str | None] = dict(files.options)
    if verb == "fit" and files.calibration:
        given["--exclude"] = files.calibration_exclude
    options = [
        word
        for name, value in given.items()
        if name in OPTIONS[verb] and value is not None
        for word in (name, value)
    ]
    return shlex.join(["oddslip", verb, *words, *options])


def _call(name: str, *variables: str, **arguments: Any) -> str:
    """A call in Python; arguments that are None are left at their default."""
    named = [f"{key}={value!r}" for key, value in arguments.items() if value is not None]
    return f"{name}({', '.join([*variables, *named])})".replace("'", '"')


def _passed(d: Diagnosis, *names: str) -> dict[str, Any]:
    """These arguments, as far as they were passed to `diagnose`."""
    return {name: d.arguments[name] for name in names if name in d.arguments}


def _rows(d: Diagnosis) -> list[str]:
    """Variables of the evaluated rows: scores, and labels unless the scores bring them."""
    return ["scores", *_passed(d, "labels")]


def _fitted_rows(d: Diagnosis) -> tuple[list[str], str | None]:
    """Variables of the rows a repair is fitted on, and of the cells to ignore in them."""
    calibration = d.arguments.get("calibration")
    if calibration is None:
        return _rows(d), d.arguments.get("exclude")
    if isinstance(calibration, str):
        return [calibration], None
    scores, labels, *exclude = calibration
    return [scores, *([labels] if labels else [])], exclude[0] if exclude else None


def _fit(d: Diagnosis) -> str:
    """The call that fits on the calibration rows, or on all rows where there are none."""
    variables, exclude = _fitted_rows(d)
    options = _passed(d, *ROWS) | {"exclude": exclude}
    if variables == ["calibration"]:  # brings its names
        options.pop("label_names", None)
    return _call("fit", *variables, **options)


def _fit_served(d: Diagnosis) -> str:
    """The call that fits on rows like those served."""
    options = _passed(d, *ROWS)
    if "exclude" in options:
        options["exclude"] = Variable("served_exclude")
    return _call("fit", *(f"served_{name}" for name in _rows(d)), **options)


def _kind(d: Diagnosis) -> str | None:
    return None if d.kind == "probability" else d.kind


def _weights(d: Diagnosis, files: CommandFiles) -> list[str]:
    return [] if d.weights is None else ["--weights", files.weights]


def _twin_beats_popularity(d: Diagnosis, grounds: Grounds) -> bool:
    popular = popular_list(d)
    return grounds.hurt and (
        popular is None or d.ladder.value("unweighted") > d.ladder.value(popular)
    )
