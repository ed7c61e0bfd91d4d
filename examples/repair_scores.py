"""
Repair scores
=============

How do I repair scores? `oddslip.Repair` chooses a calibrator on calibration rows, by the metric you
deploy, and fits it. Then it ranks, transforms, and saves itself without pickle.
"""

import tempfile
from pathlib import Path

import numpy as np

import oddslip
from oddslip.datasets import synthetic_pair

pair = synthetic_pair(6000, 40, seed=42, noise=0.5)
rows = pair.calibration  # the repair is fitted on these, and evaluated on the others

repair = oddslip.Repair(k=7, prior=pair.prior).fit(pair.weighted[rows], pair.labels[rows])
print(repair.chosen_, "-", repair.why_)

# %%
# On rows that took no part in the choice:

scores, labels = pair.weighted[~rows], pair.labels[~rows]
raw = oddslip.evaluate(scores, labels, k=7)
repaired = oddslip.evaluate(repair.transform(scores), labels, k=7)
print("raw     ", raw["map"])
print("repaired", repaired["map"])

# %%
# What goes to production is one file. Loading it runs no code of the file.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "repair.oddslip"
    repair.save(path)
    served = oddslip.load_repair(path)
assert np.array_equal(served.rank(scores, k=7), repair.rank(scores))

# %%
# Where the chosen map stands among all others:

ladder = oddslip.diagnose(
    scores,
    labels,
    k=7,
    calibration=(pair.weighted[rows], pair.labels[rows]),
    prior=pair.prior,
    n_replicates=500,
).plot("ladder")

gain = repaired.compare(raw)["map"]
assert gain.low > 0, "the interval of the gain should lie above zero"
print(f"Claim holds: the repair adds {gain.value:.3f} to MAP@7, 95% interval above zero.")
