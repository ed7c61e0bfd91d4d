"""The five lines of the README run as they stand there."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier

import oddslip

lightgbm = pytest.importorskip("lightgbm")
README = Path(__file__).parents[2] / "README.md"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_the_five_lines_of_the_readme_run():
    (lines,) = re.findall(
        r"```python\n(model = oddslip\.RepairedC.*?)```", README.read_text(), re.S
    )
    assert len(lines.strip().splitlines()) == 5
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    Y = (X @ rng.normal(size=(4, 8)) + rng.logistic(size=(240, 8)) > 1).astype(int)
    given = {
        "oddslip": oddslip,
        "cross_val_score": cross_val_score,
        "OneVsRestClassifier": OneVsRestClassifier,
        "LGBMClassifier": lambda **told: lightgbm.LGBMClassifier(
            n_estimators=3, min_child_samples=5, verbose=-1, n_jobs=1, **told
        ),
        **{"X": X, "Y": Y, "X_new": X[:5]},
    }
    exec(lines, given)
    assert given["model"].predict_topk(X[:5], k=7).shape == (5, 7)
    assert given["model"].predict_proba(X[:5]).shape == (5, 8)
