"""Save repairs, models and a checkpoint of this version, for tests/contracts/test_older_versions.

python tools/save_fixtures.py tests/saved/0.2.0
"""

import sys
from pathlib import Path

import numpy as np

import oddslip
from oddslip import calibrators

LEARNERS = {
    "lightgbm": {"num_iterations": 4, "num_leaves": 4},
    "xgboost": {"num_boost_round": 4, "max_depth": 2},
    "hist": {"max_iter": 4, "max_leaf_nodes": 4},
    "logistic": {},
    "mlp": {"hidden": [4], "epochs": 2},
}


def main(folder: Path) -> None:
    """Write all fixtures into a new folder."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(7)
    save_repairs(folder, random)
    save_models(folder, random)


def save_repairs(folder: Path, random: np.random.Generator) -> None:
    """Fit and save every calibrator, and the scores each one gives."""
    prevalence = np.array([0.3, 0.2, 0.1, 0.05, 0.02, 0.0])
    names = [f"label {place}" for place in range(6)]
    logits = np.log(prevalence + 1e-3) + random.normal(0, 1.5, (160, 6))
    labels = (random.random((160, 6)) < 1 / (1 + np.exp(-logits))) & (prevalence > 0)
    weights = np.array([3.0, 5.0, 9.0, 19.0, 49.0, 100.0])
    margins = (logits + np.log(weights)).astype(np.float32)
    scores = (1 / (1 + np.exp(-margins))).astype(np.float32)
    scores[0, 3] = 1.0
    estimators = {
        "raw": calibrators.Raw(),
        "inversion": calibrators.Inversion(weights=weights),
        "isotonic": calibrators.Isotonic(),
        "isotonic-steps": calibrators.Isotonic(interpolation="step"),
        "isotonic-exclude": calibrators.Isotonic(dead="exclude"),
        "pooled": calibrators.PooledIsotonic(),
        "ceiling": calibrators.Ceiling(),
        "offset": calibrators.Offset(),
        "platt": calibrators.Platt(),
        "beta": calibrators.Beta(),
        "temperature": calibrators.Temperature(),
        "hierarchical": calibrators.Hierarchical(),
        "hierarchical-isotonic": calibrators.HierarchicalIsotonic(),
        "label-free": calibrators.LabelFree(),
        "popularity": calibrators.Popularity(),
        "repair": oddslip.Repair(k=3),
    }
    arrays = {"scores": scores[120:], "margins": margins[120:]}
    calibration = oddslip.Panel(scores[:120], labels[:120], label_names=names)
    for name, calibrator in estimators.items():
        calibrator.fit(calibration).save(folder / f"{name}.oddslip")
    holes = scores[:120].copy()
    holes[::7, 2] = np.nan
    absent = calibrators.Isotonic().fit(holes, labels[:120], label_names=names, nan="absent")
    absent.save(folder / "isotonic-absent.oddslip")
    margin = calibrators.Platt(kind="margin").fit(margins[:120], labels[:120])
    margin.save(folder / "platt-margin.oddslip")
    for path in sorted(folder.glob("*.oddslip")):
        repair = oddslip.load_repair(path)
        cells = arrays["margins" if repair.maps.kind == "margin" else "scores"]
        panel = oddslip.Panel(cells, kind=repair.maps.kind, label_names=repair.label_names)
        arrays[f"transformed {path.stem}"] = repair.transform(panel, dtype=np.float64)
    np.savez(folder / "repairs.npz", **arrays)


def save_models(folder: Path, random: np.random.Generator) -> None:
    """Train and save every learner and a checkpoint, and the margins each one gives."""
    X = random.normal(size=(120, 4))
    Y = X @ random.normal(size=(4, 3)) + random.normal(size=(120, 3)) > 1.5
    arrays = {"X": X, "Y": Y}
    for learner, parameters in LEARNERS.items():
        model = oddslip.OneVsRest(learner=learner, weights="balanced", parameters=parameters)
        arrays[f"margins {learner}"] = model.fit(X, Y).predict_margin(X)
        model.save(folder / f"{learner}.oddmodel")
    model = oddslip.OneVsRest(
        weights="balanced",
        parameters=LEARNERS["lightgbm"],
        memory_bytes=1,
        checkpoint=folder / "checkpoint",
    ).fit(X, Y)
    np.savez(folder / "models.npz", **arrays, **{"margins checkpoint": model.predict_margin(X)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
