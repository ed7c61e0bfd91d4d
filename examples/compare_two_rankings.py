"""
Compare two rankings
====================

Two models ranked the same rows. Is one better, or is it chance? The difference is taken row by row,
so rows that are hard for both cancel.
"""

import oddslip
from oddslip.datasets import synthetic_pair

pair = synthetic_pair(2000, 60, seed=42, weights="balanced", realized=0.4)
weighted = oddslip.evaluate(pair.weighted, pair.labels, k=7)
unweighted = oddslip.evaluate(pair.unweighted, pair.labels, k=7)
print("weighted  ", weighted["map"])
print("unweighted", unweighted["map"])

# %%
# The learner realized 40% of each label's shift, which costs little. The intervals of the models
# overlap, so they alone do not decide. The paired difference is sharper.

difference = weighted.compare(unweighted)
for metric in ("map", "precision", "recall", "ndcg"):
    print(f"{metric:10}", difference[metric])

# %%
# Both rankings, and their paired differences:

figure = weighted.plot(unweighted)
change = difference["map"]

overlap = weighted["map"].high > unweighted["map"].low
assert overlap, "the intervals of the two should overlap"
assert change.high < 0, "the paired interval should lie below zero"
print(f"Claim holds: both intervals overlap, yet the weighted model is worse ({change}).")
