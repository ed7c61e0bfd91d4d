"""Scenes whose truth is known, each drawn many times: how often the verdict is right.

Thresholds of the diagnosis were set on draws with seeds below `FIRST_SEED`; the table shows
draws from it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets import synthetic_pair
from oddslip.datasets.synthetic import SyntheticPair
from oddslip.diagnosis import Diagnosis, diagnose
from oddslip.errors import InvalidInput

FIRST_SEED = 1000
N_DRAWS = 20
N_ROWS, N_LABELS, K = 4000, 40, 7
Told = dict[str, Any]


# -------------------------------------------------------------------------------- what can be drawn


def draw_pair(seed: int, n_rows: int = N_ROWS, **world: Any) -> SyntheticPair:
    """A matched pair with known marginals."""
    return synthetic_pair(n_rows, N_LABELS, seed=seed, **world)


def starve(light: float = 3.0, n_dead: int = 0, dead: float = 20.0) -> Told:
    """Heavy weights that were not realized, and light ones, the greater part, that were."""
    is_dead = np.arange(N_LABELS) >= N_LABELS - n_dead
    heavy = (np.arange(N_LABELS) % 5 < 2) & ~is_dead
    return {
        "weights": np.where(is_dead, dead, np.where(heavy, 50.0, light)),
        "realized": np.where(heavy, 0.0, 1.0),
        "n_dead": n_dead,
    }


def tell_pair(pair: SyntheticPair, n_calibration: int | None = None) -> Told:
    """All that a user could know of a pair, to pass to `diagnose`."""
    rows = np.flatnonzero(pair.calibration)[:n_calibration]
    evaluated = ~pair.calibration
    return {
        "scores": pair.weighted[evaluated],
        "labels": pair.labels[evaluated],
        "weights": pair.weights,
        "unweighted": pair.unweighted[evaluated],
        "calibration": (pair.weighted[rows], pair.labels[rows]),
        "prior": pair.prior,
        "label_names": pair.label_names,
    }


def tell_capped(pair: SyntheticPair) -> Told:
    """A pair whose booster had a step budget of 3 nat."""
    return tell_pair(pair) | {"rounds": 60, "learning_rate": 0.05, "max_delta_step": 1.0}


def tell_drifted(pair: SyntheticPair) -> Told:
    """Every second of the commonest labels was rare when the calibration rows were drawn."""
    inputs = tell_pair(pair)
    scores, truth = inputs["calibration"]
    thinned = np.argsort(-pair.prior)[:20:2]
    truth = truth.copy()
    truth[:, thinned] &= np.random.default_rng(0).random((len(truth), thinned.size)) < 0.15
    return inputs | {"calibration": (scores, truth)}


def tell_weights(weigh: Callable[[NDArray[Any], int], Any], pair: SyntheticPair) -> Told:
    """A pair without its twin, under weights that are not those it was trained with."""
    inputs = tell_pair(pair) | {"weights": weigh(pair.weights, pair.seed)}
    del inputs["unweighted"]
    return inputs


def tell_stale(pair: SyntheticPair) -> Told:
    """Calibrated scores under the weights of a model they do not come from."""
    rows, evaluated = pair.calibration, ~pair.calibration
    return {
        "scores": pair.unweighted[evaluated],
        "labels": pair.labels[evaluated],
        "weights": pair.weights,
        "calibration": (pair.unweighted[rows], pair.labels[rows]),
        "prior": pair.prior,
    }


def tell_scores(make: Callable[[SyntheticPair], NDArray[Any]], pair: SyntheticPair) -> Told:
    """Scores made of a pair, its labels, and nothing else."""
    return {"scores": make(pair), "labels": pair.labels}


def _permute(weights: NDArray[Any], seed: int) -> NDArray[Any]:
    return np.random.default_rng(seed).permutation(weights)


def _shuffle_rows(pair: SyntheticPair) -> NDArray[Any]:
    rows = np.random.default_rng(pair.seed).permutation(pair.n_rows)
    return np.asarray(pair.weighted[rows])


# -------------------------------------------------------------------------------------- the scenes


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A world, what a user tells of it, and what has to be found.

    ``verdicts`` are right, each of them; ``findings`` have to be made. A ``quiet`` scene has
    nothing graver than info.
    """

    name: str
    truth: str
    verdicts: tuple[str, ...]
    tell: Callable[[SyntheticPair], Told] = tell_pair
    world: Told = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    quiet: bool = False

    def draw(self, seed: int) -> Told:
        """Arguments of `diagnose` for one draw."""
        return self.tell(draw_pair(seed, **self.world)) | {"k": K}

    def is_right(self, diagnosis: Diagnosis) -> bool:
        """Whether a diagnosis says what is so."""
        graver = [each for each in diagnosis.findings if each.severity != "info"]
        return (
            diagnosis.verdict.code in self.verdicts
            and all(diagnosis.finding(code) is not None for code in self.findings)
            and not (self.quiet and graver)
        )


REPAIRABLE = ("repairable_by_inversion", "repairable_by_calibration")
CALIBRATED = ("repairable_by_calibration", "dead_labels")  # the same, of which some may be dead
SCENES = {
    scene.name: scene
    for scene in (
        Scene(
            "no weights", "nothing is wrong", ("healthy",), world={"weights": "none"}, quiet=True
        ),
        Scene(
            "common weight",
            "nothing is wrong",
            ("common_weight",),
            world={"weights": "common"},
            quiet=True,
        ),
        Scene("realized", "shifted by ln w, all of it", ("repairable_by_inversion",)),
        Scene("capped", "shifted by ln w, at most 3 nat", REPAIRABLE, tell_capped, {"cap": 3.0}),
        Scene(
            "saturated",
            "a fifth of the cells at 1.0",
            ("keep_margins",),
            world={"saturate": 0.2, "noise": 0.5},
        ),
        Scene(
            "dead labels",
            "six labels without calibration positives",
            ("dead_labels",),
            world=starve(n_dead=6),
        ),
        Scene(
            "scarce",
            "shifted nearly alike, 60 calibration rows",
            ("keep_raw", "healthy"),
            partial(tell_pair, n_calibration=60),
            {"cap": 1.5},
        ),
        Scene(
            "drift", "calibration labels of another period", ("drift",), tell_drifted, {"cap": 3.0}
        ),
        Scene(
            "random",
            "scores are noise",
            ("no_signal",),
            partial(
                tell_scores,
                lambda pair: np.random.default_rng(pair.seed).random(
                    pair.labels.shape, dtype=np.float32
                ),
            ),
            findings=("OS205",),
        ),
        Scene(
            "negated",
            "scores have the wrong sign",
            ("no_signal",),
            partial(tell_scores, lambda pair: 1 - pair.weighted),
            findings=("OS205",),
        ),
        Scene(
            "shuffled rows",
            "rows of scores and labels do not belong together",
            ("no_signal",),
            partial(tell_scores, _shuffle_rows),
            findings=("OS205",),
        ),
        Scene(
            "popularity",
            "each label has one score",
            ("no_signal",),
            partial(
                tell_scores, lambda pair: np.tile(pair.prior.astype(np.float32), (pair.n_rows, 1))
            ),
            findings=("OS205",),
        ),
        Scene(
            "inverse weights",
            "1 / w is told for w",
            CALIBRATED,
            partial(tell_weights, lambda weights, seed: 1 / weights),
            findings=("OS103",),
        ),
        Scene(
            "permuted weights",
            "weights go with other labels",
            CALIBRATED,
            partial(tell_weights, _permute),
            findings=("OS103",),
        ),
        Scene(
            "stale weights",
            "calibrated scores, weights of another model",
            ("healthy",),
            tell_stale,
            findings=("OS103",),
        ),
        *(
            Scene(
                f"healthy, {n_rows:,} rows",
                "true log-odds",
                ("healthy",),
                partial(tell_scores, lambda pair: pair.unweighted),
                {"n_rows": n_rows},
                quiet=True,
            )
            for n_rows in (1000, 8000, 60_000)
        ),
    )
}


# --------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What was said of all draws of a scene."""

    scene: Scene
    n_right: int
    n_draws: int
    verdicts: Counter[str]
    findings: Counter[str]


def try_scenes(
    names: tuple[str, ...] = tuple(SCENES),
    *,
    n_draws: int = N_DRAWS,
    first_seed: int = FIRST_SEED,
    n_replicates: int = 500,
) -> Iterator[Outcome]:
    """Diagnose every draw of these scenes, one scene after the other."""
    for scene in (SCENES[name] for name in check_scenes(names)):
        n_right, verdicts, findings = 0, Counter[str](), Counter[str]()
        for seed in range(first_seed, first_seed + n_draws):
            diagnosis = diagnose(**scene.draw(seed), n_replicates=n_replicates)
            n_right += scene.is_right(diagnosis)
            verdicts[diagnosis.verdict.code] += 1
            findings.update(each.code for each in diagnosis.findings if each.severity != "info")
        yield Outcome(scene, n_right, n_draws, verdicts, findings)


def tabulate(outcomes: Iterator[Outcome]) -> Iterator[str]:
    """The table in Markdown, a line as soon as its scene is done."""
    yield "| scene | truth | right | verdicts | findings graver than info |"
    yield "|---|---|---|---|---|"
    for each in outcomes:
        counts_text = (
            ", ".join(f"{code} {n}" for code, n in counter.most_common())
            for counter in (each.verdicts, each.findings)
        )
        right = f"{each.n_right} of {each.n_draws}"
        yield f"| {each.scene.name} | {each.scene.truth} | {right} | {' | '.join(counts_text)} |"


def format_page(lines: list[str], *, n_draws: int, first_seed: int) -> str:
    """The page of the table."""
    last = first_seed + n_draws - 1
    about = (
        "Made by `python -m experiments verdict-simulation --page "
        "docs/paper/verdict-simulation.md`. Every scene is drawn from known "
        f"marginals ({N_LABELS} labels, K = {K}, {N_ROWS:,} rows unless it says otherwise) with "
        f"the seeds {first_seed} to {last}, and diagnosed as a user would. The thresholds of the "
        f"diagnosis were set on other draws, with seeds below {FIRST_SEED}. A draw is right if the "
        "verdict is, if the findings that the scene asks for are made, and, where nothing is "
        "wrong, if no finding is graver than info. `experiments/verdict_simulation.py` says what "
        "is right."
    )
    return "\n".join(("# Verdict simulation", "", fill(about, 100), "", *lines, ""))


def check_scenes(names: tuple[str, ...]) -> tuple[str, ...]:
    """These names, or an error that says which there are."""
    for name in names:
        if name not in SCENES:
            raise InvalidInput(f"scene must be one of {'; '.join(SCENES)}, got {name!r}.")
    return names
