"""Whether the probabilities of what is shown are right, before and after the repair."""

import numpy as np
import pytest

import oddslip
from oddslip.diagnosis import diagnose
from oddslip.metrics import reliability_at_k
from oddslip.reports.html.page import render_page
from oddslip.reports.numbers import tell_shown
from oddslip.reports.text import as_text, show_diagnosis

K = 7


def assert_alike(found, wanted):
    # A slot on the edge of a bin, or tied in the last bit, may be counted on its other side.
    assert np.abs(found.n_shown - wanted.n_shown).max() <= 3
    assert found.n_shown.sum() == wanted.n_shown.sum()
    assert found.ece == pytest.approx(wanted.ece, abs=1e-4)
    assert found.bias == pytest.approx(wanted.bias, abs=1e-5)


def test_they_are_those_of_the_scores_and_of_the_repair(arguments, scene):
    told, found = arguments("capped"), scene("capped")
    assert_alike(found.shown["raw"], reliability_at_k(told["scores"], told["labels"], k=K))
    repair = oddslip.Repair(k=K, prior=told["prior"], weights=told["weights"])
    repair.fit(*told["calibration"])
    repaired = repair.fitted_.maps.transform_panel(oddslip.Panel(told["scores"]), np.float64)
    assert_alike(found.shown["chosen"], reliability_at_k(repaired, told["labels"], k=K))
    assert found.shown["chosen"].ece < found.shown["raw"].ece / 4


def test_cross_fitted_every_row_is_counted_once_and_the_repair_is_right(arguments):
    told = arguments("realized")
    found = diagnose(told["scores"], told["labels"], k=K, n_replicates=0)
    for shown in found.shown.values():
        assert shown.n_shown.sum() == K * len(told["scores"])
    assert found.shown["chosen"].ece < 0.02 < found.shown["raw"].ece


def test_absent_cells_are_not_shown(arguments):
    told = arguments("realized")
    scores, labels = told["scores"][:400].astype(float), told["labels"][:400]
    scores[:, ::3] = np.nan
    scores[0, 5:] = np.nan
    found = diagnose(scores, labels, k=K, nan="absent", n_replicates=0).shown
    wanted = reliability_at_k(scores, labels, k=K, nan="absent")
    assert_alike(found["raw"], wanted)
    assert found["chosen"].n_shown.sum() == wanted.n_shown.sum() < K * 400


def test_by_keys_they_are_the_same(arguments):
    pd = pytest.importorskip("pandas")
    told = arguments("realized")
    index = pd.Index([f"row {at}" for at in range(300)], name="row_id")
    scores, labels = (
        pd.DataFrame(np.asarray(told[name])[:300].astype(float), index=index)
        for name in ("scores", "labels")
    )
    keyed = diagnose(scores, labels, k=K, keyed=True, n_replicates=0).shown
    plain = diagnose(scores, labels, k=K, n_replicates=0).shown
    assert keyed["raw"].to_dict() == plain["raw"].to_dict()
    assert keyed["chosen"].n_shown.sum() == plain["chosen"].n_shown.sum()


def test_page_text_and_json_say_it(scene):
    found = scene("capped")
    sentence = tell_shown(found)
    assert f"{found.shown['chosen'].ece:.4f}" in sentence
    assert "too high by" in sentence
    page = render_page(found)
    assert sentence in page
    n_dots = sum(int((shown.n_shown > 0).sum()) for shown in found.shown.values())
    part = page[page.index('<section id="shown"') : page.index('<section id="shift"')]
    assert part.count("data-t=") == n_dots
    assert found.to_dict()["shown"]["chosen"]["ece"] == found.shown["chosen"].ece
    text = as_text(show_diagnosis(found, verbose=True))
    assert sentence.split(";")[0] in " ".join(text.split())
