"""A repair that must be foldable: what it chooses, and what it says of the cost."""

import numpy as np
import pytest

import oddslip
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.folding.affine import affine_of
from oddslip.selection.candidates import PAPER, WIDE


def curved_panel(seed=0, n_rows=3000, n_labels=8):
    """Scores whose best map is a step: a line of the log-odds cannot follow it."""
    rng = np.random.default_rng(seed)
    margins = rng.uniform(-4, 4, (n_rows, n_labels))
    steps = np.where(np.abs(margins) < 2, 0.08, np.where(margins > 0, 0.6, 0.01))
    labels = rng.random(margins.shape) < steps * np.linspace(0.4, 1.0, n_labels)
    return 1 / (1 + np.exp(-margins * np.linspace(0.3, 3, n_labels))), labels


def test_the_choice_is_a_line_and_the_cost_is_the_lead_of_the_free_choice():
    scores, labels = curved_panel()
    free = oddslip.Repair(k=2).fit(scores, labels)
    assert not {each.name: each for each in WIDE}[free.chosen_].foldable
    bound = oddslip.Repair(k=2, foldable=True).fit(scores, labels)
    affine_of(bound.fitted_)
    cost = free.table_[free.chosen_].mean - bound.table_[bound.chosen_].mean
    assert cost > 0
    assert f"costs {cost:.4f} of out-of-fold MAP@2" in bound.why_
    assert free.chosen_ in bound.why_


def test_nothing_is_said_where_the_free_choice_is_a_line():
    pair = synthetic_pair(3000, 20, noise=0.8, seed=1)
    free = oddslip.Repair(k=5, rule="hierarchical").fit(pair.weighted, pair.labels)
    bound = oddslip.Repair(k=5, rule="hierarchical", foldable=True).fit(pair.weighted, pair.labels)
    assert (bound.chosen_, bound.why_) == (free.chosen_, free.why_)


def test_a_rule_by_the_name_of_another_form_is_refused():
    scores, labels = curved_panel()
    with pytest.raises(InvalidInput, match=r"got rule 'isotonic-5'\. Use one of raw"):
        oddslip.Repair(k=2, rule="isotonic-5", foldable=True).fit(scores, labels)


@pytest.mark.parametrize("candidate", sorted({*WIDE, *PAPER}, key=lambda each: each.name), ids=str)
def test_a_candidate_says_whether_it_can_be_folded(candidate):
    scores, labels = curved_panel(n_rows=600)
    repair = oddslip.Repair(k=2, rule=candidate.name, weights=np.linspace(2, 9, 8))
    fitted = repair.fit(scores, labels).fitted_
    if candidate.foldable:
        assert affine_of(fitted).n_labels == 8
    else:
        with pytest.raises(InvalidInput, match="must be affine"):
            affine_of(fitted)
