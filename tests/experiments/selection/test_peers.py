"""Peers of `auto`: quadratic scaling fits what it should, and the page says what the cells say."""

import numpy as np
import pytest
from scipy.special import expit, logit

from experiments.row_aware.panels import Panel, Scored
from experiments.selection import peers
from experiments.selection.peers_page import earns_place, write_page
from experiments.selection.quadratic import Quadratic


def make_scored(n_rows=600, n_labels=5, seed=0):
    """Labels whose scores are shifted apart; the last is dead on the calibration rows."""
    rng = np.random.default_rng(seed)
    margin = rng.normal(-1, 1.5, (n_rows, n_labels))
    truth = rng.random(margin.shape) < expit(margin)
    truth[: n_rows // 2, -1] = False
    scores = expit(margin + np.linspace(-3, 3, n_labels))
    half = n_rows // 2
    sides = scores[:half], truth[:half], scores[half:], truth[half:]
    return Scored(3, *sides, truth.mean(axis=0), None, np.arange(half))


def test_quadratic_scaling_finds_the_coefficients_of_its_own_model():
    rng = np.random.default_rng(0)
    margin = rng.normal(0, 1.5, (200_000, 1))
    truth = rng.random(margin.shape) < expit(-0.5 + 0.8 * margin - 0.2 * margin**2)
    fitted = Quadratic().fit(expit(margin), truth)
    np.testing.assert_allclose(fitted.coefficients_[0], [-0.5, 0.8, -0.2], atol=0.03)


def test_a_dead_label_gets_its_prior():
    scored = make_scored()
    margins = Quadratic(scored.prior).fit(scored.calibration, scored.truth).margins(scored.test)
    np.testing.assert_allclose(margins[:, -1], logit(scored.prior[-1]))


def test_cells_are_stored_and_the_page_shows_them(tmp_path, monkeypatch):
    panel = Panel("flags-mlp-1", {"data": "flags"}, make_scored)
    monkeypatch.setattr(peers, "list_panels", lambda *_: [panel])
    options = {"peers": ["quadratic"], "datasets": ["flags"], "results": tmp_path}
    first = peers.reproduce_peers(**options)
    monkeypatch.setattr(peers, "list_panels", lambda *_: pytest.fail("was read"))
    cells = peers.reproduce_peers(finished=True, **options)
    assert cells == first
    gain = cells["quadratic"]["flags-mlp-1"]["contenders"]["quadratic"]["difference"]
    assert gain > 0.05  # the shifts are undone
    page = write_page(cells)
    assert f"| quadratic scaling | {gain:+.4f} | 0 |" in page
    assert ("does not earn its place" in page) != earns_place(cells["quadratic"])


def test_quadratic_scaling_that_gains_nothing_is_not_taken():
    scored = make_scored()
    useless = scored._replace(calibration=np.full_like(scored.calibration, 0.5))
    cell = peers.measure_quadratic(useless, {})
    assert not cell["takes_quadratic"]
    values = cell["contenders"]
    assert values[peers.WITH_QUADRATIC] == values["auto"]
