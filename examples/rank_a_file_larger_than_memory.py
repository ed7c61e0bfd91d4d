"""
Rank a file larger than memory
==============================

How do I rank scores that do not fit into memory? Pass a path: every verb reads it in blocks of
about 8 MB. The file here would fit, so that the result can be compared.
"""

import tempfile
from pathlib import Path

import numpy as np

import oddslip
from oddslip.datasets import synthetic_pair

pair = synthetic_pair(45_000, 150, seed=42, noise=0.5)
rows = pair.calibration
folder = tempfile.TemporaryDirectory()
scores, labels = Path(folder.name) / "scores.npy", Path(folder.name) / "labels.npy"
np.save(scores, pair.weighted[~rows])
np.save(labels, pair.labels[~rows])
print(f"{scores.name}: {scores.stat().st_size / 1e6:.1f} MB")

# %%
# A repair fitted on some rows, then calibrate and rank in one pass, a block at a time.

repair = oddslip.Repair(k=7, prior=pair.prior).fit(pair.weighted[rows], pair.labels[rows])
n_ranked = 0
pieces = []
for first_row, shown in repair.fitted_.rank_blocks(scores, k=7):
    assert first_row == n_ranked
    n_ranked += len(shown)
    pieces.append(shown)  # write them out here
print(f"{n_ranked:,} rows ranked in {len(pieces)} blocks")

# %%
# Evaluate and diagnose read the same files.

diagnosis = oddslip.diagnose(
    scores,
    labels,
    k=7,
    calibration=(pair.weighted[rows], pair.labels[rows]),
    prior=pair.prior,
    n_replicates=200,
)
figure = diagnosis.plot("ladder")
folder.cleanup()

whole = repair.rank(pair.weighted[~rows])
assert len(pieces) > 2, "the file should be larger than two blocks"
assert np.array_equal(np.concatenate(pieces), whole)
print(f"Claim holds: {n_ranked:,} lists of 7 in {len(pieces)} blocks, the same as from memory.")
