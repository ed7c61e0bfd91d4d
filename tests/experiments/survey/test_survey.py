"""The survey: the probe's verdicts, our own policies, and the committed page."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.survey import probe
from experiments.survey.page import PRINTED, RAN, write_page
from experiments.survey.study import INSTALLS, ask_ours, reproduce_survey
from oddslip.errors import InvalidInput

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("mapped", "word"),
    [
        (None, "absent"),
        (probe.FRESH_ALONE, "identity"),
        (np.zeros(25), "constant"),
        (probe.FRESH_ALONE / 2, "other"),
    ],
)
def test_a_map_is_judged_by_what_it_does(mapped, word):
    assert probe.judge(mapped, probe.FRESH_ALONE)[0] == word


def test_the_label_of_the_split_is_never_true_and_the_others_are():
    assert set(probe.CLASSES) == {0, 1}
    assert not probe.NEVER.any()


def test_every_probe_has_something_to_install_and_a_printed_word():
    assert {distribution for distribution, _ in probe.PROBES.values()} == set(INSTALLS)
    assert probe.PROBES.keys() == PRINTED.keys()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("scikit-learn IsotonicRegression", "constant"),
        ("scikit-learn _SigmoidCalibration", "constant"),
        ("scikit-learn CalibratedClassifierCV, a class absent from the split", "constant"),
        ("scikit-learn LogisticRegression as calibrator", "raises"),
        ("betacal BetaCalibration", "raises"),
    ],
)
def test_what_is_installed_here_behaves_as_the_paper_says(name, word):
    assert probe.run(name)["behaviour"] == word


def test_the_probe_is_a_script_that_needs_nothing_of_ours():
    script = Path(probe.__file__)
    assert "oddslip" not in script.read_text()
    command = [sys.executable, str(script), "scikit-learn IsotonicRegression"]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert '"behaviour": "constant"' in process.stdout


def test_ours_does_what_the_named_policy_says():
    words = [cell["behaviour"] for cell in ask_ours().values()]
    assert words[:2] == ["constant", "identity"]


def test_at_least_ten_implementations_were_really_run_and_the_page_is_theirs(monkeypatch):
    monkeypatch.chdir(ROOT)
    cells = reproduce_survey(finished=True)
    assert sum(cell["behaviour"] in RAN for cell in cells.values()) >= 10
    assert write_page(cells) == (ROOT / "docs/paper/survey.md").read_text()


def test_an_unknown_name_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="names must be among"):
        reproduce_survey(names=["nobody"], results=tmp_path, work=tmp_path)
