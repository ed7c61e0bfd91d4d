"""
Diagnose a weighted ranker
==========================

Is my ranker hurt, by what, and how much? Scores, labels and weights are enough for a verdict. An
unweighted twin turns "could be better" into a loss with parts.
"""

import oddslip
from oddslip.datasets import synthetic_pair

# 4,000 rows and 60 labels, the positives of each label weighted by negatives / positives.
pair = synthetic_pair(4000, 60, seed=42, realized=0.9, noise=1.0)

diagnosis = oddslip.diagnose(
    pair.weighted,
    pair.labels,
    k=7,
    weights=pair.weights,
    unweighted=pair.unweighted,
    label_names=pair.label_names,
    n_replicates=500,
)
print(diagnosis.verdict.code)
print(diagnosis.verdict.sentence)
for finding in diagnosis.findings[:3]:
    print(finding.code, finding.name)

# %%
# The overview holds every picture that these inputs allow.

overview = diagnosis.plot()

# %%
# The loss in parts: the odds shift, which an ideal learner would suffer too, and slippage.

raw, twin = (diagnosis.ladder[rung]["map"] for rung in ("raw", "unweighted"))
print("unweighted", twin)
print("weighted  ", raw)
for cause, part in diagnosis.decomposition.by_cause.items():
    print(f"{cause:22}{part:+.3f}")
share = diagnosis.decomposition.loss / twin.value
assert share > 0.3, "the weight should have cost a third of MAP@7 or more"
print(f"Claim holds: the weight costs {share:.0%} of MAP@7.")
