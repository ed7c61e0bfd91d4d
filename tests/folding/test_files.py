"""`oddslip fold`: saved models in, saved models out."""

import json

import numpy as np
import pytest

import oddslip
from oddslip.calibrators import Isotonic, Platt
from oddslip.cli.app import main
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.folding.files import fold_files

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X + RNG.normal(size=X.shape) > [0.0, 0.5, 1.0, 1.5]).astype(int)
NAMES = ["bread", "capers", "eggs", "saffron"]


@pytest.fixture(scope="module")
def boosters():
    import lightgbm

    settings = {"objective": "binary", "verbose": -1, "num_leaves": 5}
    return [lightgbm.train(settings, lightgbm.Dataset(X, y), 6) for y in Y.T]


@pytest.fixture(scope="module")
def margins(boosters):
    return np.stack([booster.predict(X, raw_score=True) for booster in boosters], axis=1)


@pytest.fixture
def folder(boosters, margins, tmp_path):
    """Models of four labels, and a repair with their names."""
    repair = Platt(kind="margin").fit(margins, Y, label_names=NAMES)
    repair.save(tmp_path / "repair.oddslip")
    (tmp_path / "models").mkdir()
    for name, booster in zip(NAMES, boosters, strict=True):
        booster.save_model(tmp_path / "models" / f"{name}.txt")
    return tmp_path


def run(folder, *models, output="folded"):
    return main(
        ["fold", str(folder / "repair.oddslip"), *map(str, models), "-o", str(folder / output)]
    )


def test_files_go_by_name_in_any_order(folder, margins):
    import lightgbm

    paths = [folder / "models" / f"{name}.txt" for name in NAMES[::-1]]
    assert run(folder, *paths) == 0
    folded = [lightgbm.Booster(model_file=folder / "folded" / f"{name}.txt") for name in NAMES]
    after = np.stack([booster.predict(X) for booster in folded], axis=1)
    maps = oddslip.load_repair(folder / "repair.oddslip").maps
    expected = maps.transform_panel(oddslip.Panel(margins, kind="margin"))
    np.testing.assert_allclose(after, expected, atol=1e-12)


def test_without_names_files_are_in_their_natural_order(boosters, margins, tmp_path):
    import lightgbm

    Platt(kind="margin").fit(margins, Y).save(tmp_path / "repair.oddslip")
    paths = [tmp_path / f"label-{number}.txt" for number in (2, 9, 10, 11)]
    for path, booster in zip(paths, boosters, strict=True):
        booster.save_model(path)
    assert run(tmp_path, *paths[::-1]) == 0
    after = lightgbm.Booster(model_file=tmp_path / "folded" / "label-10.txt").predict(X)
    expected = oddslip.load_repair(tmp_path / "repair.oddslip").transform(margins)[:, 2]
    np.testing.assert_allclose(after, expected, atol=1e-12)


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_one_file_of_all_labels(suffix, tmp_path):
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=5, max_depth=2).fit(X, Y)
    margins = model.predict(X, output_margin=True).astype(np.float64)
    repair = Platt(kind="margin").fit(margins, Y)
    repair.save(tmp_path / "repair.oddslip")
    model.save_model(tmp_path / f"model{suffix}")
    assert run(tmp_path, tmp_path / f"model{suffix}") == 0
    folded = xgboost.XGBClassifier()
    folded.load_model(tmp_path / "folded" / f"model{suffix}")
    np.testing.assert_allclose(folded.predict_proba(X), repair.transform(margins), atol=2e-6)


def test_the_models_are_never_overwritten(folder, capsys):
    before = (folder / "models/eggs.txt").read_bytes()
    paths = sorted((folder / "models").iterdir())
    assert run(folder, *paths, output="models") == 2
    assert "must be another" in capsys.readouterr().err
    assert (folder / "models/eggs.txt").read_bytes() == before


def test_bad_files_are_one_clear_line(folder, capsys):
    paths = sorted((folder / "models").iterdir())
    paths[1].write_text("tree\nversion=v4\nTree=0\nleaf_value=abc\n\nend of trees\n")
    assert run(folder, *paths) == 2
    error = capsys.readouterr().err
    assert "capers.txt" in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".txt", b"\xff\xfe"),
        (".json", b"{" * 100_000),
        (".json", b'{"learner": []}'),
        (".json", b'{"learner": {"gradient_booster": {"name": "gbtree", "model": 7}}}'),
        (".onnx", b"\x08\xff\xff\xff"),
    ],
    ids=repr,
)
def test_files_of_strangers_are_refused(suffix, content, tmp_path):
    (tmp_path / f"model{suffix}").write_bytes(content)
    repair = Platt().fit(RNG.random((40, 1)), RNG.random((40, 1)) < 0.4).fitted_
    with pytest.raises((InvalidInput, UnreadableFile), match=f"model{suffix}"):
        fold_files(repair, [tmp_path / f"model{suffix}"], tmp_path / "folded")
    assert not list((tmp_path / "folded").iterdir())


def test_what_cannot_be_folded_is_said_before_anything_is_written(folder, margins):
    repair = Isotonic(kind="margin").fit(margins, Y, label_names=NAMES).fitted_
    with pytest.raises(InvalidInput, match="isotonic maps"):
        fold_files(repair, sorted((folder / "models").iterdir()), folder / "folded")
    with pytest.raises(InvalidInput, match=r"files of \.txt, \.json, \.ubj, \.onnx, got .*cbm"):
        fold_files(repair_of(folder), [folder / "m.cbm"], folder / "folded")
    assert not (folder / "folded").exists()


def repair_of(folder):
    return oddslip.load_repair(folder / "repair.oddslip")


def test_a_foldable_repair_from_the_command_line(folder, margins, capsys):
    np.save(folder / "margins.npy", margins)
    np.save(folder / "labels.npy", Y)
    (folder / "names.txt").write_text("\n".join(NAMES))
    command = f"fit {folder}/margins.npy {folder}/labels.npy -k 2 --kind margin --foldable"
    command += f" --label-names {folder}/names.txt -o {folder}/repair.oddslip"
    assert main(command.split()) == 0
    assert run(folder, *sorted((folder / "models").iterdir())) == 0
    assert "Wrote 4 models" in capsys.readouterr().out


def test_json_lists_the_models(folder, capsys):
    models = [str(path) for path in sorted((folder / "models").iterdir())]
    assert (
        main(["fold", str(folder / "repair.oddslip"), *models, "-o", str(folder / "f"), "--json"])
        == 0
    )
    assert len(json.loads(capsys.readouterr().out)["models"]) == 4
