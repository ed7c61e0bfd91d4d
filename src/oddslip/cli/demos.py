"""`oddslip demo`: the main job on embedded data."""

from __future__ import annotations

from oddslip.cli.options import console


def demo() -> None:
    """See what a per-label weight does to a top-7 ranking, and repair it, on embedded data.

    Example:

      oddslip demo
    """
    import numpy as np

    import oddslip
    from oddslip.calibrators import Inversion, Isotonic
    from oddslip.datasets import synthetic_pair
    from oddslip.reports import texts

    pair = synthetic_pair(
        20_000,
        120,
        prevalence=(0.0005, 0.1),
        realized=0.9,
        noise=0.4,
        saturate=0.1,
        n_dead=2,
        seed=7,
    )
    fitted_on, shown = pair.calibration, ~pair.calibration
    truth = pair.labels[shown]
    arms = {"unweighted": pair.unweighted[shown], "weighted": pair.weighted[shown]}
    for name, calibrator in {
        "weighted, inverted by ln w": Inversion(pair.weights),
        "weighted, isotonic per label": Isotonic(prior=pair.prior),
    }.items():
        calibrator.fit(pair.weighted[fitted_on], pair.labels[fitted_on])
        # In float64: in float32 the inverted scores of saturated cells would tie at 1.0 again.
        arms[name] = calibrator.fitted_.transform(pair.weighted[shown], dtype=np.float64)
    results = {
        name: oddslip.evaluate(scores, truth, k=7, auc=True) for name, scores in arms.items()
    }

    out = console()
    out.print(
        f"Embedded data: {pair.n_rows:,} rows, {pair.n_labels} rare labels, two models that\n"
        "differ only in the weight of positives: w = negatives / positives of each label,\n"
        f"from {pair.weights.min():.0f} to {pair.weights.max():,.0f}. Repairs are fitted on "
        f"{int(fitted_on.sum()):,} rows; the other {int(shown.sum()):,} are shown.\n"
    )
    out.print(texts.ladder_table(results, metric="map"))
    weighted, unweighted = results["weighted"], results["unweighted"]
    repaired = results["weighted, isotonic per label"]
    loss = unweighted["map"].value - weighted["map"].value
    returned = (repaired["map"].value - weighted["map"].value) / loss
    out.print(
        f"\nThe weight costs {loss / unweighted['map'].value:.0%} of MAP@7. "
        f"Within its labels the weighted model ranks\nrows nearly as well as before: what broke is "
        "the order between labels."
    )
    out.print(texts.ties_sentence(weighted, "the weighted model"))
    out.print(
        f"Calibrating each label returns {returned:.0%} of the loss. "
        f"{int(np.sum(pair.labels[fitted_on].sum(0) == 0))} labels without calibration positives "
        "went to their prior."
    )
    out.print("\nOn your own scores:  oddslip diagnose scores.npy labels.npz -k 7")
