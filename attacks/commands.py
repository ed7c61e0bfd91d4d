"""The commands that write: what each is told, and small inputs for all of them.

Five campaigns go through this one table, so that a new command that is listed here is killed,
interrupted, starved of disk and run twice at once like the others.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from oddslip.io.json import CHECKSUM

K = 5
TIMED = {"seconds", "training_seconds", "training_cpu_seconds", "stages", "commit", CHECKSUM}
_COST = re.compile(rb"^\|.* \d+ / \d+ .*$", re.MULTILINE)


@dataclass(frozen=True)
class Size:
    """How large the inputs are."""

    n_rows: int
    n_labels: int
    n_features: int
    rounds: int
    users: int  # of generated data


SMALL = Size(n_rows=600, n_labels=130, n_features=5, rounds=4, users=60)
LARGE = Size(n_rows=8_000, n_labels=130, n_features=10, rounds=30, users=600)

INPUTS = (
    "scores.npy",
    "labels.npz",
    "few.npy",
    "features.npy",
    "repair.oddslip",
    "model.oddmodel",
    "checks.jsonl",
    "flags",
    "instacart",
    "santander",
)


@dataclass(frozen=True)
class Command:
    """A command that writes.

    ``overwrites`` are the files that it replaces if they exist. Whatever else it leaves is work
    that a rerun takes up.
    """

    name: str
    arguments: tuple[str, ...]
    overwrites: tuple[str, ...] = ()
    slow: bool = False


def commands(inputs: Path, size: Size = SMALL) -> list[Command]:
    """All writing commands, on inputs that `make_inputs` made."""
    at = {Path(name).stem: str(inputs / name) for name in INPUTS}
    scores, labels, rows = at["scores"], at["labels"], at["features"]
    learn = ["-p", f"num_iterations={size.rounds}"]
    users = str(size.users)
    pairs = ["--part", "ladder", "--learner", "lightgbm", "--results", "cells", "--work", "work"]
    written = ["--page", "page.md", "--figures", "figures", "--tables", "tables"]
    listed: list[tuple[str, list[str], list[str], bool]] = [
        ("rank to Parquet", ["rank", scores, "-k", str(K)], ["top.parquet"], False),
        ("rank to .npy", ["rank", scores, "-k", str(K)], ["top.npy"], False),
        ("fit", ["fit", scores, labels, "-k", str(K)], ["repair.oddslip"], False),
        ("fit isotonic", ["fit", scores, labels, "--calibrator", "isotonic"], ["r.oddslip"], False),
        ("apply to .npy", ["apply", at["repair"], scores], ["repaired.npy"], False),
        ("apply to Parquet", ["apply", at["repair"], scores], ["repaired.parquet"], False),
        ("apply, top K", ["apply", at["repair"], scores, "-k", str(K)], ["top.parquet"], False),
        ("export JSON", ["export", at["repair"], "--to", "json"], ["maps.json"], False),
        ("export ONNX", ["export", at["repair"], "--to", "onnx"], ["repair.onnx"], False),
        (
            "export SQL",
            ["export", at["repair"], "--to", "sql", "--dialect", "duckdb"],
            ["repair.sql"],
            False,
        ),
        ("trend", ["trend", at["checks"]], ["trend.html"], False),
        ("train", ["train", rows, labels, *learn, "--checkpoint", "kept"], ["m.oddmodel"], False),
        (
            "train exactly",
            ["train", rows, at["few"], *learn, "--mode", "exact", "--checkpoint", "kept"],
            ["m.oddmodel"],
            False,
        ),
        (
            "train XGBoost",
            [
                "train",
                rows,
                labels,
                "--learner",
                "xgboost",
                "--checkpoint",
                "kept",
                "-p",
                f"n_estimators={size.rounds}",
            ],
            ["m.oddmodel"],
            False,
        ),
        (
            "train logistic",
            ["train", rows, labels, "--learner", "logistic", "--checkpoint", "kept"],
            ["m.oddmodel"],
            False,
        ),
        (
            "train MLP",
            [
                "train",
                rows,
                labels,
                "--learner",
                "mlp",
                "--checkpoint",
                "kept",
                "-p",
                f"epochs={size.rounds}",
            ],
            ["m.oddmodel"],
            False,
        ),
        ("score to .npy", ["score", at["model"], rows], ["scored.npy"], False),
        ("score to Parquet", ["score", at["model"], rows], ["scored.parquet"], False),
        (
            "score both",
            ["score", at["model"], rows, "--kind", "both"],
            ["scored.npy", "scored.margin.npy"],
            False,
        ),
    ]
    table = [
        Command(name, (*told, "-o", outputs[0]), tuple(outputs), slow)
        for name, told, outputs, slow in listed
    ]
    report = ["--html", "r.html", "--json-file", "r.json", "--figure", "r.png"]
    looked = ("--figure", "plan.png", "--json-file", "plan.json")
    booster = ("--rounds", "60", "--learning-rate", "0.05")
    made = (("santander", str(100 * size.users)), ("instacart", users), ("baskets", users))
    table += [
        Command(
            "diagnose",
            ("diagnose", scores, labels, "-k", str(K), "--weights", "balanced", *report),
            ("r.html", "r.json", "r.png"),
        ),
        Command(
            "check",
            ("check", at["repair"], scores, "--fail-on", "none", "--junit", "check.xml"),
            ("check.xml",),
        ),
        Command(
            "decide",
            ("decide", at["repair"], scores, labels, "-o", "decision.oddslip", "--html", "d.html"),
            ("decision.oddslip", "d.html"),
        ),
        Command("plan", ("plan", labels, *booster, *looked), ("plan.png", "plan.json")),
        *(
            Command(
                f"generate {form}", ("experiments", "generate", form, "--size", n, "-o", "made")
            )
            for form, n in made
        ),
        Command(
            "experiments mulan",
            (
                "experiments",
                "mulan",
                "--dataset",
                f"{at['flags']}/flags",
                "--learner",
                "lightgbm",
                "--weight",
                "1",
                "--weight",
                "r",
                "--results",
                "cells",
                "--work",
                "work",
                "--page",
                "page.md",
                "--figure",
                "doses.png",
            ),
            ("page.md",),
        ),
        Command(
            "experiments instacart",
            (
                "experiments",
                "instacart",
                "--data",
                at["instacart"],
                "--labels",
                "9",
                *pairs,
                *written,
            ),
            ("page.md",),
            slow=True,
        ),
        Command(
            "experiments santander",
            ("experiments", "santander", "--data", at["santander"], *pairs, *written),
            ("page.md",),
            slow=True,
        ),
        Command("demo", ("demo", "-o", "told"), slow=True),
    ]
    return table


def make_inputs(folder: Path, size: Size = SMALL, seed: int = 0) -> Path:
    """Scores, labels, features, a repair, a model and data sets, for all commands."""
    from experiments.datasets.generators import generate_instacart, generate_santander
    from oddslip import OneVsRest, Repair, check
    from oddslip.serving import append_check

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size.n_rows, size.n_features))
    slopes = rng.normal(size=(size.n_features, size.n_labels))
    margins = features @ slopes - rng.uniform(1, 4, size.n_labels)
    true = margins + rng.logistic(size=margins.shape) > 0
    scores = (1 / (1 + np.exp(-margins))).astype(np.float32)
    np.save(folder / "scores.npy", scores)
    np.save(folder / "features.npy", features)
    sparse.save_npz(folder / "labels.npz", sparse.csr_array(true.astype(np.int8)))
    np.save(folder / "few.npy", true[:, :8].astype(np.int8))
    repair = Repair(k=K).fit(scores, true)
    repair.save(folder / "repair.oddslip")
    (folder / "checks.jsonl").unlink(missing_ok=True)
    append_check(folder / "checks.jsonl", check(repair, scores), when="2026-01-01")
    model = OneVsRest(parameters={"num_iterations": size.rounds})
    model.fit(features, true).save(folder / "model.oddmodel")
    generate_instacart(folder / "instacart", n_users=size.users, seed=seed)
    generate_santander(folder / "santander", n_rows=100 * size.users, seed=seed)
    _make_mulan(folder / "flags", size, rng)
    return folder


def _make_mulan(folder: Path, size: Size, rng: np.random.Generator) -> None:
    """A data set in the form of MULAN's."""
    folder.mkdir(exist_ok=True)
    names = [f"label{j}" for j in range(9)]
    listed = "".join(f'<label name="{name}"></label>' for name in names)
    space = "http://mulan.sourceforge.net/labels"
    document = f'<?xml version="1.0"?><labels xmlns="{space}">{listed}</labels>'
    (folder / "flags.xml").write_text(document)
    for part, n_rows in (("train", size.n_rows // 2), ("test", size.n_rows // 4)):
        X = rng.normal(size=(n_rows, 4))
        Y = X @ rng.normal(size=(4, 9)) + rng.logistic(size=(n_rows, 9)) > np.linspace(0.5, 3, 9)
        Y[0] = True
        head = ["@relation flags", *(f"@attribute x{j} numeric" for j in range(4))]
        head += [f"@attribute {name} {{0,1}}" for name in names]
        body = [
            ",".join([*map(repr, x.tolist()), *map(str, y.astype(int))])
            for x, y in zip(X, Y, strict=True)
        ]
        (folder / f"flags-{part}.arff").write_text("\n".join([*head, "@data", *body, ""]))


def contents(folder: Path) -> dict[str, Any]:
    """Every file below a folder by its path, without what a cell says of the time it took."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix == ".jsonl":  # cells of a study, each whole or not there
            for line in path.read_bytes().splitlines():
                cell = json.loads(line)
                name = f"{path.relative_to(folder)}, {cell['key']}"
                found[name] = _without_times(cell)
        elif path.is_file():
            found[str(path.relative_to(folder))] = _timeless(path)
    return found


def _timeless(path: Path) -> Any:
    raw = path.read_bytes()
    if path.stem == "costs":
        return b""
    if path.name == "lines.parquet":  # a cache, whose rows come in any order
        return b""
    if path.suffix == ".md":
        return _COST.sub(b"", raw)
    if path.suffix == ".npz":  # a trained arm, with the seconds that it took
        try:
            with np.load(io.BytesIO(raw)) as members:
                return {name: members[name].tobytes() for name in members if name != "seconds"}
        except (ValueError, OSError, zipfile.BadZipFile):
            return raw
    if path.suffix != ".json":
        return raw
    try:
        return _without_times(json.loads(raw))
    except ValueError:
        return raw


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_times(each)
            for key, each in value.items()
            # The seal of a cell covers its seconds.
            if key not in TIMED and not key.endswith("lines.parquet")
        }
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    return value
