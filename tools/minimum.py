"""Install exactly the lowest versions that pyproject.toml promises, and run the fast tests there.

    python tools/minimum.py               # fresh .venv-minimum, install, test
    python tools/minimum.py --show        # print what would be installed

A floor that nobody tries is a guess: newer releases hide what an old one lacks.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv-minimum"

# Extras whose floors are tried. torch alone is larger than all the others together.
EXTRAS = ("lightgbm",)
# Of the tools of development, these are packages that the library itself works with.
# xgboost-cpu is xgboost without 300 MB of code for graphic cards; both have one floor.
PARTNERS = ("pandas", "polars", "xgboost-cpu")
# These only run the tests, so any version will do.
RUNNERS = ("pytest", "pytest-xdist", "hypothesis")

# What touches a dependency, and is fast: two minutes on two cores.
FAST = (
    "tests/kernels",
    "tests/sources",
    "tests/metrics",
    "tests/shifts",
    "tests/repairs",
    "tests/calibrators",
    "tests/contracts",
    "tests/cli/test_commands.py",
    "tests/cli/test_help.py",
    "tests/cli/test_outputs.py",
    "tests/test_public_names.py",
)
# Neither torch nor other rankers are installed here.
ABSENT = "not mlp and not trec_eval and not ranx and not napkinxc"
# What a wheel is built from. A copy, since a build folder may hold files of an earlier tree.
BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src")
NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.egg-info")


def lowest(requirements: list[str]) -> dict[str, str]:
    """Name and lowest version of each requirement of the form "name>=version".

    >>> lowest(["numpy>=2.0", "pytest>=8,<10"])
    {'numpy': '2.0', 'pytest': '8'}
    """
    found = {}
    for requirement in requirements:
        parts = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*[>=]=\s*([0-9][^,;\s]*)", requirement)
        if parts is None:
            raise SystemExit(
                f"{requirement!r} in pyproject.toml must state a floor: name>=version."
            )
        found[parts[1]] = parts[2]
    return found


def read_floors(project: dict[str, object]) -> dict[str, str]:
    """The floors that are tried: dependencies, extras and partners, by name."""
    extras = project["optional-dependencies"]
    wanted = list(project["dependencies"])
    for extra in EXTRAS:
        wanted += extras[extra]
    development = lowest([line for line in extras["dev"] if not line.startswith("oddslip")])
    return lowest(wanted) | {name: development[name] for name in PARTNERS}


def copy_sources(folder: Path) -> None:
    """Lay what a wheel is built from into a folder, without anything that was built before."""
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy(ROOT / name, folder / name)


def main() -> int:
    """Install the floors in a new environment and run the fast tests there."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--show", action="store_true", help="print the floors and stop")
    arguments.add_argument("--keep", action="store_true", help="use .venv-minimum as it stands")
    arguments.add_argument("pytest", nargs="*", help="other tests than the fast ones")
    asked = arguments.parse_args()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    floors = read_floors(project)
    pins = [f"{name}=={version}" for name, version in floors.items()]
    print("Lowest promised versions:", *pins, sep="\n  ", flush=True)
    if asked.show:
        return 0

    python = ENVIRONMENT / "bin" / "python"
    if not asked.keep:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *pins, *RUNNERS], check=True)
        # Not editable and without its dependencies: the wheel itself, upon these versions. Its
        # compiler (Cython, setuptools) comes to an environment of its own, as for any user.
        with tempfile.TemporaryDirectory() as folder:
            copy_sources(Path(folder))
            subprocess.run([*install, "--no-deps", folder], check=True)
        subprocess.run([python, "-m", "pip", "check"], check=True)
    # An old package beside newer ones of its own needs warns; that is not our doing.
    calm = ["-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning"]
    # A test that needs torch is skipped here, whatever CI thinks of skipping.
    surroundings = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [python, "-m", "pytest", "-n", "2", "-k", ABSENT, *calm, *(asked.pytest or FAST)]
    ran = subprocess.run(command, cwd=ROOT, env=surroundings)
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
