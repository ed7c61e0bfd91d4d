"""
Read a LightGBM loop
====================

How do I diagnose a loop that trains one ``LGBMClassifier`` per label? `oddslip.panel_from` takes
the list of models and asks for margins, which still differ where probabilities are stored as 1.0.
"""

import numpy as np
from lightgbm import LGBMClassifier

import oddslip
from oddslip.datasets import synthetic_rows

data = synthetic_rows(9000, 15, n_features=6, prevalence=(0.005, 0.3), seed=42)
X, X_calibration, X_recent = np.split(data.X, 3)
Y, Y_calibration, Y_recent = np.split(data.labels, 3)
weights = (len(Y) - Y.sum(axis=0)) / Y.sum(axis=0)

models = []
for weight, truth in zip(weights, Y.T, strict=True):
    model = LGBMClassifier(
        n_estimators=40, num_leaves=4, scale_pos_weight=weight, n_jobs=1, verbose=-1
    )
    models.append(model.fit(X, truth))

# %%
# From here on the loop is a panel.

recent = oddslip.panel_from(models, X_recent, Y_recent)
calibration = oddslip.panel_from(models, X_calibration, Y_calibration)
print(recent)

diagnosis = oddslip.diagnose(
    recent, k=5, weights=weights, calibration=calibration, prior=Y.mean(axis=0), n_replicates=500
)
print(diagnosis.verdict.sentence)

# %%
# The shift that each weight intends, and the shift that the model realized.

figure = diagnosis.plot("shifts")

# %%
repair = oddslip.Repair(k=5, prior=Y.mean(axis=0), kind="margin").fit(calibration)
before = oddslip.evaluate(recent, k=5)
after = oddslip.evaluate(repair.transform(recent), Y_recent, k=5)
gain = after.compare(before)["map"]
assert gain.low > 0, "the repaired loop should rank better"
print(f"Claim holds: {repair.chosen_} adds {gain.value:.3f} to MAP@5.")
