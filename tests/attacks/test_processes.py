"""A slice of each campaign on processes: kills, signals, a full disk, two writers, forks."""

from importlib import import_module

import pytest

CAMPAIGNS = ("kills", "signals", "full_disk", "writers", "forks")


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_slice_of_the_campaign_breaks_nothing(name):
    campaign = import_module(f"attacks.{name}")
    outcome = campaign.attack(campaign.SLICE, seed=1)
    assert outcome.failures == ()
    assert outcome.tried == campaign.SLICE


@pytest.mark.parametrize("name", ["kills", "signals", "full_disk", "writers"])
def test_a_campaign_notices_what_it_looks_for(name, monkeypatch):
    """With outputs written under their final names from the start, each of them must object."""
