"""
Compare two rankings
====================

Two models ranked the same rows. Is one better, or is it the luck of these rows? The difference is
taken row by row, so what both find hard cancels.
"""

from matplotlib.figure import Figure

import oddslip
from oddslip.datasets import synthetic_pair

pair = synthetic_pair(2000, 60, seed=42, weights="balanced", realized=0.4)
weighted = oddslip.evaluate(pair.weighted, pair.labels, k=7)
unweighted = oddslip.evaluate(pair.unweighted, pair.labels, k=7)
print("weighted  ", weighted["map"])
print("unweighted", unweighted["map"])

# %%
# The learner realized 40% of each label's shift, which costs little. Each model has an interval of
# its own, and the two overlap: by these alone nobody could tell. The paired difference is sharper.

difference = weighted.compare(unweighted)
for metric in ("map", "precision", "recall", "ndcg"):
    print(f"{metric:10}", difference[metric])

# %%
figure = Figure(figsize=(6.3, 2.4), layout="constrained")
own, paired = figure.subplots(1, 2)
for place, (name, seen) in enumerate({"weighted": weighted, "unweighted": unweighted}.items()):
    estimate = seen["map"]
    own.plot([estimate.low, estimate.high], [place, place], color="#7F7F7F")
    own.plot(estimate.value, place, "o", color="#0072B2")
    own.text(estimate.value, place + 0.12, name, ha="center")
own.set(yticks=[], ylim=(-0.5, 1.6), xlabel="MAP@7", title="Each by itself")
change = difference["map"]
paired.plot([change.low, change.high], [0, 0], color="#7F7F7F")
paired.plot(change.value, 0, "o", color="#D55E00")
paired.axvline(0, color="black", linewidth=0.8, linestyle="--")
paired.set(yticks=[], xlabel="difference in MAP@7", title="Row by row")

overlap = weighted["map"].high > unweighted["map"].low
assert overlap, "the intervals of the two should overlap"
assert change.high < 0, "the paired interval should lie below zero"
print(f"Claim holds: both intervals overlap, yet the weighted model is worse ({change}).")
