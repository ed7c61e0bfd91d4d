"""Probabilities of what is shown, held against a loop over all slots."""

import json

import numpy as np
import pytest
from scipy import sparse, special

from oddslip.cli.app import main
from oddslip.errors import InvalidInput
from oddslip.metrics import reliability_at_k

rng = np.random.default_rng(8)
SCORES = rng.random((80, 6)).round(2)
TRUE = rng.random((80, 6)) < SCORES
GONE = rng.random((80, 6)) < 0.5


@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("gone", [np.zeros_like(GONE), GONE], ids=["all there", "half absent"])
def test_bins_hold_every_slot_once(kind, gone):
    cells = special.logit(np.clip(SCORES, 0.001, 0.999)) if kind == "margin" else SCORES
    probability = special.expit(cells) if kind == "margin" else SCORES
    found = reliability_at_k(cells, TRUE, k=3, n_bins=5, kind=kind, exclude=sparse.csr_array(gone))
    slots = []
    for row in range(80):
        there = np.flatnonzero(~gone[row])
        for label in there[np.lexsort((there, -cells[row, there]))][:3]:
            slots.append((probability[row, label], TRUE[row, label]))
    value, true = np.array(slots).T
    bins = np.minimum((value * 5).astype(int), 4)
    gap = 0.0
    for at in range(5):
        inside = bins == at
        assert found.n_shown[at] == inside.sum()
        if inside.any():
            assert found.probability[at] == pytest.approx(value[inside].mean(), abs=1e-9)
            assert found.share[at] == pytest.approx(true[inside].mean(), abs=1e-12)
            gap += inside.mean() * abs(value[inside].mean() - true[inside].mean())
    assert found.ece == pytest.approx(gap, abs=1e-9)
    assert found.bias == pytest.approx(value.mean() - true.mean(), abs=1e-9)


def test_the_picture_shows_the_bins_that_hold_a_slot():
    found = reliability_at_k(SCORES, TRUE, k=2)
    upper, lower = found.plot().axes
    dots = next(line for line in upper.get_lines() if line.get_marker() == "o")
    held = found.n_shown > 0
    np.testing.assert_allclose(dots.get_ydata(), found.share[held])
    assert [bar.get_height() for bar in lower.patches] == found.n_shown.tolist()
    assert found.to_frame().n_shown.sum() == 160
    assert "ECE@2" in found._repr_html_()


def test_the_command_says_and_draws_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("scores.npy", SCORES)
    np.save("true.npy", TRUE)
    told = ["evaluate", "scores.npy", "true.npy", "-k", "2", "--bootstrap", "0"]
    assert main([*told, "--reliability", "--figure", "shown.png", "--json"]) == 0
    wanted = reliability_at_k(SCORES, TRUE, k=2).to_dict()
    assert json.loads(capsys.readouterr().out)["reliability"] == wanted
    assert (tmp_path / "shown.png").stat().st_size > 1000
    assert main([*told, "--reliability"]) == 0
    assert "ECE@2" in capsys.readouterr().out


def test_labels_are_needed():
    with pytest.raises(InvalidInput, match="labels are needed"):
        reliability_at_k(SCORES, k=2)
