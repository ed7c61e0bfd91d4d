"""Figure 0 obeys the laws it is there to show."""

import numpy as np
import pytest

from experiments.figures.schematic import draw_schematic
from experiments.schematic import make_schematic


@pytest.fixture(scope="module")
def schematic():
    return make_schematic()


def test_without_a_cap_the_shift_is_as_intended_until_cells_saturate(schematic):
    identified = schematic.identified
    # To a thousandth: the stored numbers are float32, and coarse just below 1.
    np.testing.assert_allclose(
        schematic.free[identified], schematic.intended[identified], rtol=1e-3, atol=1e-6
    )
    assert not identified.all()
    assert np.all(np.diff(identified.astype(int)) <= 0)  # once a weight saturates, larger ones do


def test_with_a_cap_it_rises_and_stays_within_the_budget(schematic):
    assert np.all(np.diff(schematic.capped) >= -1e-9)
    assert schematic.capped.max() <= schematic.budget


def test_parts_of_the_loss_add_up_and_a_pooled_map_returns_nothing(schematic):
    assert sum(schematic.parts.values()) == pytest.approx(1)
    assert abs(schematic.returned["pooled"]) < 0.05
    assert schematic.returned["isotonic"] > schematic.returned["inversion"]


def test_a_dead_label_is_first_when_passed_through_and_not_by_its_prior(schematic):
    assert schematic.dead_identity > schematic.bound == schematic.calibrated.max()
    assert schematic.dead_prior < schematic.bound


def test_three_panels_are_drawn(schematic):
    titles = [axis.get_title(loc="left")[0] for axis in draw_schematic(schematic).axes]
    assert titles == ["a", "b", "c"]
