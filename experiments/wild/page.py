"""The page of the models that were not made for this project, from finished cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from experiments.text import paragraph
from experiments.wild.measures import BY_ROW, KS, N_REPEATS, PEERS, PROTOCOLS, UNWEIGHTED, K
from experiments.wild.models import MODELS
from experiments.wild.study import DIAGNOSIS, PEER, Cells

Z = 1.96  # standard errors of a 95% interval
TITLES = {
    "raw": "raw",
    "isotonic": "isotonic",
    "Platt": "Platt",
    "temperature": "a slope per label (temperature)",
    "paper": "the paper's rule",
    "auto": "`auto`",
    "MCGrad": "MCGrad, label as segment",
    "MCGrad, row": "MCGrad, label and row",
    UNWEIGHTED: "trained without weights",
}
PROTOCOL_TITLES = {
    "half": "Held-out half",
    "folds": "Cross-fitted",
    BY_ROW: "Held-out half, rows dealt without regard to groups",
}
METRICS = {f"map_{KS[0]}": f"MAP@{KS[0]}", f"map_{K}": f"MAP@{K}", f"ndcg_{K}": f"nDCG@{K}"}


class Summary(NamedTuple):
    """One contender over the repeats: mean, mean gain over raw, interval, least and most."""

    n_repeats: int
    value: float
    gain: float
    low: float
    high: float
    least: float
    most: float


def list_repeats(cells: Cells, model: str, protocol: str, contender: str) -> list[dict[str, Any]]:
    """Cells of a model in which a contender was measured, one per repeat."""
    suffix = f"-{PEER}" if contender in PEERS else ""
    keys = [f"{model}-{protocol}-{repeat:02}{suffix}" for repeat in range(N_REPEATS)]
    found = [cells[key] for key in keys if key in cells]
    return [cell for cell in found if contender in cell["values"]]


def summarise(
    cells: Cells, model: str, protocol: str, contender: str, metric: str = f"map_{K}"
) -> Summary | None:
    """A contender's metric and its gain over raw; None where it was not measured.

    The interval is over the groups of rows that are measured in one repeat, with the mean of the
    repeats' variances: repeats share rows, so they are not independent.

    Examples
    --------
    >>> gain = {"difference": 0.02, "standard_error": 0.01}
    >>> values = {"auto": {"map_7": 0.5, "gains": {"map_7": gain}}}
    >>> round(summarise({"jamendo-half-00": {"values": values}}, "jamendo", "half", "auto").low, 4)
    0.0004
    """
    repeats = [
        cell["values"][contender] for cell in list_repeats(cells, model, protocol, contender)
    ]
    if not repeats:
        return None
    gains = [each["gains"][metric]["difference"] for each in repeats]
    error = np.sqrt(fmean(each["gains"][metric]["standard_error"] ** 2 for each in repeats))
    gain, value = fmean(gains), fmean(each[metric] for each in repeats)
    reach = Z * float(error)
    return Summary(len(repeats), value, gain, gain - reach, gain + reach, min(gains), max(gains))


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_format_lines(cells)).rstrip() + "\n"


def _format_lines(cells: Cells) -> Iterator[str]:
    yield "# On models we did not make"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments wild --finished --page docs/paper/wild.md` from the "
        f"{len(cells)} cells in `experiments/results/wild.jsonl`. Two models were trained and "
        "scored by others, who published the scores. Two are ours, trained the way that tutorials "
        "show; their settings were written down before any of them was scored. Nothing was tuned "
        "on any of the four: not a rule, not a constant, not a network."
    )
    yield ""
    yield from paragraph(
        f"Every protocol is repeated {N_REPEATS} times with other splits. **Held-out half**: half "
        "of the groups fits a repair, the other half is measured. **Cross-fitted**: every row is "
        f"repaired by a fit on the other {PROTOCOLS['folds'] - 1} of {PROTOCOLS['folds']} folds. "
        "Groups are the artists of Jamendo, the patients of CheXNet and single texts; a group is "
        "never on both sides, also not in the folds by which a rule chooses. Rules choose by "
        f"MAP@{K}. Intervals are 95% over groups, for one repeat; the range is that of the "
        "repeats. MCGrad has its default settings, and is measured on fewer held-out halves, for "
        "its cost."
    )
    yield ""
    yield from _format_overview(cells)
    for model, title in MODELS.items():
        if f"{model}-{DIAGNOSIS}" in cells:
            yield from _format_model(cells, model, title)


def _format_overview(cells: Cells) -> Iterator[str]:
    yield f"Gain of `auto` in MAP@{K} over raw, and the verdict of `oddslip.diagnose`:"
    yield ""
    yield "| model | rows | labels | raw | `auto` | gain (interval) | range | verdict |"
    yield "|---" * 8 + "|"
    for model, title in MODELS.items():
        found = summarise(cells, model, "half", "auto")
        if found is None:
            continue
        diagnosis = cells[f"{model}-{DIAGNOSIS}"]
        yield (
            f"| {title} | {diagnosis['n_rows']:,} | {diagnosis['n_labels']} | "
            f"{found.value - found.gain:.4f} | {found.value:.4f} | {_format_gain(found)} | "
            f"{_format_range(found)} | `{diagnosis['by_group']['verdict']}` |"
        )
    yield ""


def _format_model(cells: Cells, model: str, title: str) -> Iterator[str]:
    diagnosis = cells[f"{model}-{DIAGNOSIS}"]
    yield f"## {title}"
    yield ""
    yield from paragraph(
        f"{diagnosis['n_rows']:,} rows in {diagnosis['n_groups']:,} groups, "
        f"{diagnosis['n_labels']} labels. On all rows the raw scores have micro PR-AUC "
        f"{diagnosis['raw']['pr_auc']:.6f}. {_format_diagnosis(diagnosis['by_group'])}"
    )
    yield ""
    if BY_ROW in diagnosis:
        yield from _format_leak(cells, model, diagnosis)
    for protocol, name in PROTOCOL_TITLES.items():
        if not list_repeats(cells, model, protocol, "auto"):
            continue
        yield f"**{name}**"
        yield ""
        yield (
            f"| | repeats | {' | '.join(METRICS.values())} | gain in MAP@{K} (interval) | range | "
            f"micro PR-AUC | top {K}: says | is true | ECE@{K} | CPU |"
        )
        yield "|---" * 12 + "|"
        for contender in TITLES:
            yield from _format_contender(cells, model, protocol, contender)
        yield ""
        yield from _format_choices(cells, model, protocol)


def _format_diagnosis(diagnosis: dict[str, Any]) -> str:
    codes = ", ".join(f"`{code}`" for code in diagnosis["findings"])
    return f"The diagnosis: `{diagnosis['verdict']}`. {diagnosis['sentence']} Findings: {codes}."


def _format_leak(cells: Cells, model: str, diagnosis: dict[str, Any]) -> Iterator[str]:
    """What rows of one group on both sides of a split would have made of it."""
    gains = [summarise(cells, model, protocol, "isotonic") for protocol in (BY_ROW, "half")]
    if None in gains:
        return
    by_row, by_group = (each.gain for each in gains if each is not None)
    yield from paragraph(
        "Without group ids, rows of one group fall on both sides of every split. Then isotonic "
        f"has {by_row:+.4f} where it has {by_group:+.4f} on groups that it has not seen, and the "
        f"diagnosis says `{diagnosis[BY_ROW]['verdict']}`: {diagnosis[BY_ROW]['sentence']} The "
        "ids go to `oddslip` as ids of the rows: rows with one id share a fold."
    )
    yield ""


def _format_contender(cells: Cells, model: str, protocol: str, contender: str) -> Iterator[str]:
    found = [summarise(cells, model, protocol, contender, metric) for metric in METRICS]
    main = summarise(cells, model, protocol, contender)
    repeats = list_repeats(cells, model, protocol, contender)
    if main is None:
        return
    values = [cell["values"][contender] for cell in repeats]
    shown = [
        f"{fmean(each['shown'][part] for each in values):.3f}"
        for part in ("probability", "share", "ece")
    ]
    seconds = [cell["cpu"][contender] for cell in repeats if contender in cell["cpu"]]
    gain = ("", "") if contender == "raw" else (_format_gain(main), _format_range(main))
    texts = [
        TITLES[contender],
        f"{main.n_repeats}",
        *(f"{each.value:.4f}" for each in found if each is not None),
        *gain,
        f"{fmean(each['pr_auc'] for each in values):.4f}",
        *shown,
        f"{fmean(seconds):.1f}" if seconds else "",
    ]
    yield f"| {' | '.join(texts)} |"


def _format_gain(found: Summary) -> str:
    return f"{found.gain:+.4f} ({found.low:+.4f} to {found.high:+.4f})"


def _format_range(found: Summary) -> str:
    return f"{found.least:+.4f} to {found.most:+.4f}"


def _format_choices(cells: Cells, model: str, protocol: str) -> Iterator[str]:
    """What the rules chose, of all fits of all repeats."""
    texts = []
    for rule in ("auto", "paper"):
        repeats = list_repeats(cells, model, protocol, rule)
        counts = Counter(name for cell in repeats for name in cell["values"][rule]["chosen"])
        if counts:
            parts = ", ".join(f"{name} {count}" for name, count in counts.most_common())
            texts.append(f"{TITLES[rule]} chose {parts}")
    if texts:
        yield from paragraph(f"Of {sum(counts.values())} fits {'; '.join(texts)}.")
        yield ""
