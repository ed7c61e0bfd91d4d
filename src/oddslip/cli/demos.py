"""`oddslip demo`: the main job on embedded data."""

from __future__ import annotations

from oddslip.cli.options import console


def demo() -> None:
    """See what a per-label weight does to a top-7 ranking, on embedded data.

    Example:

      oddslip demo
    """
    import oddslip
    from oddslip.datasets import synthetic_pair
    from oddslip.reports import texts

    pair = synthetic_pair(
        20_000, 120, prevalence=(0.0005, 0.1), realized=0.9, noise=0.4, saturate=0.1, seed=7
    )
    weighted = oddslip.evaluate(pair.weighted, pair.labels, k=7)
    unweighted = oddslip.evaluate(pair.unweighted, pair.labels, k=7)
    lost = 1 - weighted["map"].value / unweighted["map"].value
    out = console()
    out.print(
        "Embedded data: 20,000 rows, 120 rare labels, two models that differ only in the weight\n"
        f"of the positives. The weighted one has w = negatives / positives of each label,\n"
        f"from {pair.weights.min():.0f} to {pair.weights.max():,.0f}.\n"
    )
    out.print(
        texts.comparison_table(
            weighted, unweighted, weighted.compare(unweighted), ("weighted", "unweighted")
        )
    )
    out.print(texts.rows_sentence(weighted))
    out.print(texts.ties_sentence(weighted, "the weighted model"))
    out.print(
        f"\nThe weight costs {lost:.0%} of MAP@7. Each label alone is ranked as well as before;"
    )
    out.print("what broke is the order between labels.")
    out.print("\nOn your own scores:  oddslip evaluate scores.npy labels.npz -k 7")
