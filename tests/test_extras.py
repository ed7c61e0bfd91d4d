"""What users are told to install must exist: every extra named anywhere is one of pyproject's."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from oddslip.learners.backends.base import LEARNERS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
PACKAGES = {
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "hist": "sklearn",
    "logistic": "scipy",
    "mlp": "torch",
}
INSTALLED_AS = {"sklearn": "scikit-learn"}
TEXTS = [
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]


def names(requirements):
    return {re.match(r"[\w-]+", each).group() for each in requirements}


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_learner_without_its_package_advises_an_install_that_brings_it(learner):
    package = PACKAGES[learner]
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from oddslip.errors import MissingDependency\n"
        "from oddslip.learners.backends.base import get_backend\n"
        f"try: get_backend({learner!r})\n"
        "except MissingDependency as error: print(error)"
    )
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f'OneVsRest(learner="{learner}") needs {package}. ')
    advice = re.search(r'pip install "oddslip(?:\[(\w+)\])?"', said)
    assert advice is not None
    brought = PROJECT["dependencies"] if advice[1] is None else EXTRAS[advice[1]]
    assert INSTALLED_AS.get(package, package) in names(brought)


def test_every_extra_that_a_text_names_exists():
    named = [
        (path, extra)
        for path in TEXTS
        for extras in re.findall(r"oddslip\[([^\]]*)\]", path.read_text("utf-8"))
        for extra in extras.split(",")
    ]
    assert len(named) > 10
    assert [each for each in named if each[1] not in EXTRAS] == []


def test_everything_is_all_of_the_extras_for_users():
    (everything,) = EXTRAS["all"]
    told = re.fullmatch(r"oddslip\[(.+)\]", everything)[1].split(",")
    assert set(told) == EXTRAS.keys() - {"all", "dev", "docs"}
