"""Mixtures of isotonic and smooth maps."""

import numpy as np
import pytest
from scipy.special import expit
from tests.support.passes import plain

from oddslip.calibrators import Hierarchical, HierarchicalIsotonic, Isotonic
from oddslip.calibrators.hierarchical import mix_maps
from oddslip.core.panel import Panel
from oddslip.datasets import synthetic_pair
from oddslip.sources import open_source
from oddslip.tallies.cell_counts import count_cells

count_cells = plain(count_cells)

PAIR = synthetic_pair(2000, 10, prevalence=(0.01, 0.3), noise=0.3, n_dead=1, seed=9)
KINDS = {"probability": PAIR.weighted.astype(np.float64), "margin": PAIR.weighted_margin}


def ingredients(kind):
    scores = KINDS[kind]
    parent = Hierarchical(kind=kind, prior=PAIR.prior).fit(scores, PAIR.labels)
    knots = count_cells(open_source(scores, PAIR.labels, kind=kind)).isotonic_knots()
    return knots, parent.fitted_.maps, parent.record_


def values(maps, kind):
    return maps.values(Panel(KINDS[kind], kind=kind))


@pytest.mark.parametrize("kind", KINDS)
def test_without_strength_it_is_isotonic(kind):
    knots, parents, record = ingredients(kind)
    mixed = values(mix_maps(kind, knots, parents, record, 0.0), kind)
    isotonic = values(Isotonic(kind=kind).fit(KINDS[kind], PAIR.labels).fitted_.maps, kind)
    alive = record.n_positives > 0
    np.testing.assert_allclose(mixed[:, alive], isotonic[:, alive], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_of_endless_strength_it_is_the_parent(kind):
    knots, parents, record = ingredients(kind)
    mixed = values(mix_maps(kind, knots, parents, record, 1e12), kind)
    np.testing.assert_allclose(mixed, expit(values(parents, kind)), rtol=0.02, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_it_lies_between_by_the_share_of_positives(kind):
    knots, parents, record = ingredients(kind)
    stairs = values(mix_maps(kind, knots, parents, record, 0.0), kind)
    smooth = values(mix_maps(kind, knots, parents, record, 1e15), kind)
    mixed = values(mix_maps(kind, knots, parents, record, 30.0), kind)
    share = record.n_positives / (record.n_positives + 30.0)
    np.testing.assert_allclose(mixed, share * stairs + (1 - share) * smooth, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_in_one_isotonic_block_keep_the_order_of_their_scores(kind):
    scores = np.sort(KINDS[kind], axis=0)
    flat = Isotonic(kind=kind).fit(KINDS[kind], PAIR.labels).fitted_
    bent = HierarchicalIsotonic(kind=kind).fit(KINDS[kind], PAIR.labels).fitted_
    tied = np.diff(flat.transform(scores, dtype=np.float64), axis=0) == 0
    apart = np.diff(scores, axis=0) > 1e-6
    apart &= (scores[1:] < 0.999) if kind == "probability" else (np.abs(scores[1:]) < 15)
    assert (tied & apart).sum() > 1000
    assert (np.diff(bent.transform(scores, dtype=np.float64), axis=0)[tied & apart] > 0).all()
