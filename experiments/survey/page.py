"""The page of the survey, as Markdown: what was run, beside what the paper's Table S7 says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from experiments.survey.study import ask_ours
from experiments.text import paragraph

# The paper's word for each (Table S7), and the version it looked at.
PRINTED = {
    "scikit-learn IsotonicRegression": ("constant", "1.8.0"),
    "scikit-learn _SigmoidCalibration": ("constant", "1.8.0"),
    "scikit-learn CalibratedClassifierCV, a class absent from the split": ("constant", "1.8.0"),
    "scikit-learn CalibratedClassifierCV, one class alone": ("raises", "1.8.0"),
    "scikit-learn LogisticRegression as calibrator": ("raises", "1.8.0"),
    "netcal IsotonicRegression, one label": ("constant", "1.4.0"),
    "netcal HistogramBinning, one against all": ("constant", "1.4.0"),
    "PyCalib IsotonicCalibration": ("constant", "0.1.0.dev6"),
    "PyCalib SigmoidCalibration": ("constant", "0.1.0.dev6"),
    "PyCalib LogisticCalibration": ("raises", "0.1.0.dev6"),
    "MAPIE TopLabelCalibrator": ("identity", "1.5.0 dev"),
    "scikit-multilearn": ("n/a", "0.2.0"),
    "betacal BetaCalibration": ("raises", "1.1.0"),
    "venn-abers VennAbersCalibrator, one label": ("untested", "1.5.4"),
    "venn-abers, one against rest": ("n/a", "1.5.4"),
    "ml-insights SplineCalib": ("undetermined", "1.1.0"),
    "torch-uncertainty IsotonicRegressionScaler": ("constant", "0.13.0"),
}
NOT_RUN = (
    (
        "netcal LogisticCalibration, TemperatureScaling",
        "one fit or one scalar for all labels: no map of a label's own",
    ),
    ("PyCalib OneVsRestCalibrator", "a wrapper around the calibrators above"),
    ("Ullah et al. 2025, xmc-topk-calibration", "not on the package index"),
    ("I-Max class-wise and shared binning", "not on the package index"),
)
RAN = ("identity", "constant", "raises", "absent", "other")


def write_page(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """The page as Markdown."""
    return "\n".join(_format_lines(cells)) + "\n"


def _format_lines(cells: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    ran = {name: cell for name, cell in cells.items() if cell["behaviour"] in RAN}
    counts = Counter(cell["behaviour"] for cell in ran.values())
    yield "# What implementations do with a label that is never true"
    yield ""
    yield "Made by `python -m experiments survey --finished --page docs/paper/survey.md` from the"
    yield "cells in `experiments/results/survey.jsonl`. Every implementation was installed"
    yield "into a virtual"
    yield "environment of its own and given the same calibration rows, in which one label is"
    yield "never true"
    yield "(the paper's"
    yield "Table S7). **constant**: each score of the label becomes one number. **identity**: they"
    yield "pass through. **raises**: the fit fails. **absent**: there is no map or no output of the"
    yield "label. **other**: a map that is none of these."
    yield ""
    yield from paragraph(
        "Packages that an implementation imports without naming them are installed beside it: "
        "splinecalib for ml-insights, torchvision for torch-uncertainty. Wheels of torchvision "
        "after 0.16.2 fail to import beside the CPU build of torch (operator torchvision::nms does "
        "not exist), so 0.16.2 is used, without its compiled operators."
    )
    yield ""
    text = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    yield f"{len(ran)} of {len(cells)} implementations ran: {text}."
    yield ""
    yield "| implementation | version run | does | | paper says | of version |"
    yield "|---|---|---|---|---|---|"
    for name, cell in cells.items():
        word, version = PRINTED[name]
        warning = "; warns" if cell["warned"] else ""
        note = str(cell["note"]).replace("|", "\\|")
        yield (
            f"| {name} | {cell['version'] or '-'} | {cell['behaviour']} | {note}{warning} "
            f"| {word} | {version} |"
        )
    yield ""
    yield "Ours, on the same rows; the policy is always named and each dead label reported:"
    yield ""
    yield "| | does | |"
    yield "|---|---|---|"
    for name, cell in ask_ours().items():
        yield f"| `{name}` | {cell['behaviour']} | {cell['note']} |"
    yield ""
    yield "Not run:"
    yield ""
    for name, why in NOT_RUN:
        yield f"- {name}: {why}."
