"""All numbers of a case, from as few passes over the rows as possible."""

from __future__ import annotations

from typing import Any

from oddslip.core.passes import Passes, collect, run_passes
from oddslip.core.tally import TallyGroup
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.decomposition import decompose
from oddslip.diagnosis.drift import (
    SharedRows,
    Takeover,
    count_shared,
    find_drift,
    hash_both,
)
from oddslip.diagnosis.label_shifts import find_shifts
from oddslip.diagnosis.ladder import LadderTally, ladder_of_sums
from oddslip.diagnosis.result import Measurements, Missing, Overlap, Ties
from oddslip.diagnosis.rungs import FittedRungs, Rungs, fit_crossed, fit_held_out, fit_maps
from oddslip.diagnosis.signal import (
    SignalErrorTally,
    find_likeness,
    parts_of_positives,
    signal_of,
)
from oddslip.metrics.reliability import reliability_of
from oddslip.shifts.realized import match_prior
from oddslip.shifts.saturation import count_saturated
from oddslip.tallies.row_sample import HashSample, RowSample

SAMPLED_CELLS = 2**23  # of model and twin each: thousands of rows give a good median


def measure(case: Case, n_replicates: int) -> Measurements:
    """Measure everything that the case allows.

    The calibration rows are read for the maps. The evaluated rows are read for counts, shifts and
    saturation, and once more to rank them by every rung, together with those of the twin.
    """
    hashes = None if case.crossed else hash_both(case.calibration, case.arm, case.seed)
    fit, calibration_hashes = _read_calibration(case, hashes)
    fitted, realized, saturated = run_passes(
        case.arm,
        [fit, match_prior(case.arm, case.prior), count_saturated(case.arm, case.scoring.k)],
        what="reading the evaluated rows",
    )
    counts = fitted.counts
    tallies: dict[str, Any] = {
        "ladder": LadderTally(
            fitted.rungs,
            case.scoring.k,
            case.scoring.propensities_for(case.evaluation_counts, case.arm.n_rows),
            case.twin is not None,
            n_replicates,
            case.seed,
        ),
        "errors": SignalErrorTally(counts.indptr, counts.keys, parts_of_positives(counts)),
    }
    if case.twin is not None:
        n_rows = max(1, SAMPLED_CELLS // case.arm.n_labels)
        share = RowSample.share_of(n_rows, case.arm.n_rows)
        tallies["sample"] = RowSample(n_rows, share, case.seed)
    if hashes is not None:
        tallies["hashes"] = hashes.empty_like()
    group = case.paired.run(TallyGroup(list(tallies.values())), what="ranking by every rung")
    tallies = dict(zip(tallies, group.tallies, strict=True))
    samples = tallies["sample"].result() if case.twin is not None else None
    shared = SharedRows(0, False)
    if calibration_hashes is not None:
        shared = count_shared(calibration_hashes, tallies["hashes"])
    return Measurements(
        **_measure_ladder(case, fitted, tallies["ladder"]),
        chosen=fitted.chosen_rung,
        signal=signal_of(counts, tallies["errors"].result()),
        likeness=find_likeness(samples, case.seed),
        shifts=find_shifts(case, realized, samples),
        saturation=saturated,
        drift=find_drift(case, fitted.unseen, shared),
        **_describe(case),
    )


def _read_calibration(
    case: Case, hashes: HashSample | None
) -> tuple[Passes[FittedRungs], HashSample | None]:
    """What fits the rungs with the evaluated rows, and hashes of the calibration rows."""
    if hashes is None:
        return fit_crossed(case), None
    (maps, chosen_rung), calibration_hashes = run_passes(
        case.calibration,
        [fit_maps(case), collect(hashes.empty_like())],
        what="reading the calibration rows",
    )
    return fit_held_out(case, maps, chosen_rung), calibration_hashes


def _measure_ladder(case: Case, fitted: FittedRungs, tally: LadderTally) -> dict[str, Any]:
    """What the pass over all rungs gives."""
    ladder = ladder_of_sums(
        tally.sums,
        tally.places,
        k=case.scoring.k,
        n_rows=case.arm.n_rows,
        metric=case.scoring.metric,
        seed=case.seed,
    )
    overlap = None
    if case.twin is not None:
        overlap = Overlap(tally.n_shared / case.arm.n_rows, tally.n_changed / case.arm.n_rows)
    return {
        "ladder": ladder,
        "decomposition": decompose(ladder),
        "ties": Ties.of_sums(tally.n_tied, tally.bounds, case.scoring.metric, tally.n_evaluated),
        "takeover": _takeover(fitted.rungs, tally),
        "overlap": overlap,
        "shown": {
            name: reliability_of(slots, case.scoring.k)
            for name, slots in zip(("raw", "chosen"), tally.shown_counts, strict=True)
            if name == "raw" or name in tally.places
        },
    }


def _takeover(rungs: Rungs, tally: LadderTally) -> Takeover | None:
    if "isotonic" not in rungs.places:
        return None
    return Takeover(int(rungs.dead.any(axis=0).sum()), tally.n_risen, tally.slots)


def _describe(case: Case) -> dict[str, Any]:
    """What is known of the case without reading its scores."""
    return {
        "missing": tuple(_list_missing(case)),
        "protocol": case.protocol,
        "k": case.scoring.k,
        "kind": case.arm.kind,
        "dtype": str(case.arm.dtype),
        "n_rows": case.arm.n_rows,
        "n_calibration_rows": case.calibration.n_rows,
        "label_names": case.names,
        "weights": case.weights,
        "prior": case.prior,
        "prior_source": case.prior_source,
        "calibration_counts": case.calibration_counts,
        "evaluation_counts": case.evaluation_counts,
        "seed": case.seed,
    }


def _list_missing(case: Case) -> list[Missing]:
    """What could not be computed, and the input that would allow it."""
    weights, twin = case.weights is None, case.twin is None
    needs = [name for name, lacks in (("weights", weights), ("unweighted", twin)) if lacks]
    table = (
        (weights, "inversion, intended shift and its ratio to the realized", "weights"),
        (twin, "the loss and its parts, direct shift, overlap with the twin", "unweighted"),
        (weights or twin, "what-if and the odds share of the loss", " and ".join(needs)),
        (
            not case.calibration_counts.any(),
            "calibrated rungs",
            "calibration rows with a positive",
        ),
        (case.crossed, "the deployment protocol", "calibration"),
        (
            not case.prior_given,
            "shifts and popularity by training prevalence (calibration's is used)",
            "prior",
        ),
        (case.budget is None, "the step budget", "rounds, learning_rate and max_delta_step"),
    )
    return [Missing(what, inputs) for lacks, what, inputs in table if lacks]
