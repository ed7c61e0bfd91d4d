"""The stage of the package, `oddslip.selection.row_aware`, measured like the other stages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.row_aware.panels import Scored
from experiments.store import row_precisions
from oddslip.calibrators.policy import DeadLabelPolicy
from oddslip.core.labels import DenseLabels
from oddslip.core.panel import Panel
from oddslip.core.passes import run
from oddslip.metrics.at_k import Scoring
from oddslip.repairs import row_aware as maps_module
from oddslip.repairs.repair_file import STAGE_NUMBERS
from oddslip.selection import row_aware as stage_module
from oddslip.selection.candidates import RAW
from oddslip.selection.row_aware import try_stage
from oddslip.selection.rules import RULES
from oddslip.selection.trials import try_candidates
from oddslip.sources.open import open_rows

BUILT = "built"
CONSTANTS = {
    maps_module: ("PSEUDO_COUNT", "N_PARTNERS"),
    stage_module: ("DEPTH", "MAX_ROWS", "RIDGE", "MAX_REPEATED_CELLS"),
}


def built_settings() -> dict[str, Any]:
    """Constants of the stage of the package."""
    return {
        BUILT: {
            name.lower(): getattr(module, name)
            for module, names in CONSTANTS.items()
            for name in names
        }
    }


def measure_built(scored: Scored, folds: Any) -> dict[str, Any]:
    """Gain of the stage over `auto` out of fold, and over raw and `auto` on the test rows."""
    rule = RULES["auto"]
    source = open_rows(scored.calibration, scored.truth, threads=1)
    candidates = rule.candidates_for(scored.weights)
    options = Scoring(scored.k), DeadLabelPolicy(prior=scored.prior, weights=scored.weights)
    trials = run(source, try_candidates(source, candidates, *options, folds=folds))
    place = rule.choose(trials).place
    stage = run(source, try_stage(trials, place, folds, *options))
    assert stage is not None
    chosen = [trials.fits.fit(each, None)[0] for each in (RAW, trials.candidates[place])]
    panel, n_labels = Panel(scored.test), scored.test.shape[1]
    truth = DenseLabels(scored.test_truth).positives(0, len(scored.test))
    raw, auto, built = (
        row_precisions(maps.rank_panel(panel, scored.k), truth, n_labels)
        for maps in (*chosen, stage.maps)
    )
    gain, error = stage.gain()
    over_raw = float(stage.trials.gains()[0][stage.place])
    differences = summarise_rows(built - raw) | {"minus_auto": summarise_rows(built - auto)}
    return {
        "chosen": trials.candidates[place].name,
        "coefficients": {name: getattr(stage.maps.stage, name) for name in STAGE_NUMBERS},
        "stages": {BUILT: {"out_of_fold": gain, "standard_error": error, "over_raw": over_raw}},
        "contenders": {BUILT: differences},
    }


def summarise_rows(values: NDArray[np.float64]) -> dict[str, float]:
    """Mean of a difference over rows, and its standard error."""
    error = float(values.std(ddof=1) / np.sqrt(values.size))
    return {"difference": float(values.mean()), "standard_error": error}
