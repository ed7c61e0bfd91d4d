"""`reproduce_survey`: every implementation in an environment of its own, and ours beside them."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from experiments.store import RESULTS, CellStore
from experiments.survey.probe import ALONE, FRESH_ALONE, NEVER, PROBES, judge
from oddslip.errors import InvalidInput
from oddslip.io.files import hash_file
from oddslip.io.progress import progress_bar

PROBE = Path(__file__).with_name("probe.py")
COMMAND = "python -m experiments survey"
PATIENCE = 600  # seconds for an installation, and for a probe
# What is installed for a distribution, without its dependencies: those come from the environment
# that runs the study, but for what would not work with today's versions of them.
INSTALLS = {
    "scikit-learn": ("scikit-learn==1.8.0",),
    "netcal": ("netcal==1.4.0",),
    "pycalib": ("pycalib==0.1.0.dev6", "scikit-learn==1.5.2"),
    "mapie": ("mapie",),
    "scikit-multilearn": ("scikit-multilearn==0.2.0",),
    "betacal": ("betacal==1.1.0",),
    "venn-abers": ("venn-abers==1.5.4",),
    # These two import a package that they do not name. Later torchvision wheels of the index fail
    # to import beside the CPU build of torch.
    "ml-insights": ("ml-insights==1.1.0", "splinecalib==0.0.13"),
    "torch-uncertainty": (
        "torch-uncertainty==0.13.0",
        "einops",
        "lightning",
        "lightning-utilities",
        "pytorch-lightning",
        "torchmetrics",
        "torchvision==0.16.2",
    ),
}
OURS: tuple[Literal["prior", "identity", "exclude"], ...] = ("prior", "identity", "exclude")


def reproduce_survey(
    *,
    names: Sequence[str] = (),
    results: Any = RESULTS,
    work: Any = ".work/survey",
    finished: bool = False,
) -> dict[str, dict[str, Any]]:
    """Run every implementation on the same split; returns what each does, by its name.

    Parameters
    ----------
    names : sequence of str
        Which implementations, of `PROBES`; all unless told.
    results, work : path
        Where finished cells and the environments are kept. Both are used again.
    finished : bool
        Only read the cells that are finished; install and run nothing.

    Examples
    --------
    >>> reproduce_survey(names=["betacal BetaCalibration"])  # doctest: +SKIP
    """
    for name in names:
        if name not in PROBES:
            raise InvalidInput(f"names must be among {', '.join(PROBES)}, got {name!r:.80}.")
    store, folder = CellStore(results, "survey"), Path(work)
    cells: dict[str, dict[str, Any]] = {}
    selected = tuple(names) or tuple(PROBES)
    with progress_bar("implementations", len(selected)) as advance:
        for name in selected:
            distribution, _ = PROBES[name]
            configuration = {
                "name": name,
                "installs": INSTALLS[distribution],
                "probe": hash_file(PROBE),
            }
            compute = None if finished else partial(_ask, name, distribution, folder)
            cell = store.find(_key(name), configuration, compute, command=COMMAND)
            if cell is not None:
                cells[name] = cell
            advance(1)
    return cells


def _key(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _ask(name: str, distribution: str, folder: Path) -> dict[str, Any]:
    """What an implementation does, in its environment; or that it could not be installed."""
    python, message = _environment(distribution, folder)
    if python is None:
        return {"version": None, "behaviour": "not installed", "note": message, "warned": []}
    process = subprocess.run(
        [str(python), str(PROBE), name], capture_output=True, text=True, timeout=PATIENCE
    )
    lines = process.stdout.splitlines()
    if process.returncode or not lines:
        note = (process.stderr.strip().splitlines() or ["no output"])[-1][:200]
        return {"version": None, "behaviour": "does not run", "note": note, "warned": []}
    return dict(json.loads(lines[-1]))


def _environment(distribution: str, folder: Path) -> tuple[Path | None, str]:
    """The interpreter of a distribution's environment, made unless it is there."""
    home = folder / distribution
    python = home / "bin" / "python"
    marker = home / "installed.json"
    requirements = json.dumps(INSTALLS[distribution])
    if marker.exists() and marker.read_text() == requirements:
        return python, ""
    base = [sys.executable, "-m"]
    making = [*base, "venv", "--clear", "--without-pip", str(home)]
    installing = [
        *base,
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        *INSTALLS[distribution],
    ]
    try:
        subprocess.run(making, capture_output=True, check=True, text=True, timeout=PATIENCE)
        packages = next(home.glob("lib/python*/site-packages"))
        # What is not installed there is looked for here, after what is.
        here = [sysconfig.get_path("purelib"), *(p for p in sys.path if "site-packages" in p)]
        (packages / "shared.pth").write_text("\n".join(dict.fromkeys(here)) + "\n")
        subprocess.run(installing, capture_output=True, check=True, text=True, timeout=PATIENCE)
    except subprocess.CalledProcessError as error:
        return None, ((error.stderr or "").strip().splitlines() or ["no reason given"])[-1][:200]
    except (OSError, StopIteration, subprocess.TimeoutExpired) as error:
        return None, f"{type(error).__name__}"[:200]
    marker.write_text(requirements)
    return python, ""


def ask_ours() -> dict[str, dict[str, Any]]:
    """What our isotonic calibrator does with the same split, policy by policy."""
    import warnings

    from oddslip import __version__
    from oddslip.calibrators import Isotonic

    outcomes = {}
    for dead in OURS:
        prior = [0.02] if dead == "prior" else None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = Isotonic(dead=dead, prior=prior).fit(ALONE[:, None], NEVER[:, None])
            mapped = model.transform(FRESH_ALONE[:, None])[:, 0]
        behaviour, note = judge(mapped, FRESH_ALONE)
        outcomes[f"oddslip Isotonic, dead={dead!r}"] = {
            "version": __version__,
            "behaviour": behaviour,
            "note": note,
            "warned": [str(each.message)[:200] for each in caught][:1],
        }
    return outcomes
