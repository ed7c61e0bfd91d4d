"""Rows, labels and kinds that belong together: each case is matched or refused, none is silent."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import oddslip
from oddslip.calibrators import Inversion, Isotonic
from oddslip.cli.app import _run as main
from oddslip.errors import InvalidInput
from oddslip.panels import Panel
from oddslip.sources.sinks import write_scores

rng = np.random.default_rng(5)
N, NAMES, K = 60, ["a", "b", "c", "d"], 2
SCORES = rng.random((N, 4))
TRUE = (rng.random((N, 4)) < SCORES * 0.8).astype(int)
IDS = [f"u{row}" for row in range(N)]
TURN = rng.permutation(N)
TURNED = [IDS[row] for row in TURN]
MAP = oddslip.evaluate(SCORES, TRUE, k=K, n_replicates=0)["map"].value


def frame(cells, ids=None, names=NAMES):
    return pd.DataFrame(cells, index=ids, columns=names)


def found(scores, labels, **more):
    return oddslip.evaluate(scores, labels, k=K, n_replicates=0, **more)["map"].value


# ------------------------------------------------------------------------------------- in Python

MATCHED = {
    "frames with the same index in another order": lambda: found(
        frame(SCORES, IDS), frame(TRUE[TURN], TURNED)
    ),
    "frames whose index counts from elsewhere": lambda: found(
        frame(SCORES, range(5, 5 + N)), frame(TRUE[TURN], TURN + 5)
    ),
    "frames with labels in another order": lambda: found(
        frame(SCORES, IDS), frame(TRUE[:, [2, 0, 3, 1]], IDS, ["c", "a", "d", "b"])
    ),
    "an index on one side goes by position": lambda: found(frame(SCORES), frame(TRUE, TURNED)),
    "row_ids and an index": lambda: found(
        Panel(SCORES, frame(TRUE[TURN], TURNED), row_ids=IDS), None
    ),
    "a series of lists": lambda: found(
        frame(SCORES, IDS), pd.Series([np.flatnonzero(row) for row in TRUE[TURN]], index=TURNED)
    ),
    "a two-level index": lambda: found(
        frame(SCORES, pd.MultiIndex.from_product([range(N // 2), ["x", "y"]])),
        frame(TRUE[TURN], pd.MultiIndex.from_tuples([(row // 2, "xy"[row % 2]) for row in TURN])),
    ),
    "the same ids in the same order, some twice": lambda: found(
        frame(SCORES, [1] * N), frame(TRUE, [1] * N)
    ),
    "default columns are no names": lambda: found(frame(SCORES, IDS, None), frame(TRUE, IDS)),
}

REFUSED = {
    "a row that labels lack": (
        lambda: found(frame(SCORES, IDS), frame(TRUE, ["x", *IDS[1:]])),
        "'u0' among the scores",
    ),
    "a row that scores lack": (
        lambda: found(frame(SCORES[:-1], IDS[:-1]), frame(TRUE, IDS)),
        "'u59' among the labels",
    ),
    "a row named twice": (
        lambda: found(frame(SCORES, IDS), frame(TRUE, ["u1", *IDS[1:]])),
        "'u1' more than once among the labels",
    ),
    "text ids and numbers": (
        lambda: found(frame(SCORES, [str(7 + r) for r in range(N)]), frame(TRUE, range(7, 7 + N))),
        "cast one",
    ),
    "a label that labels lack": (
        lambda: found(frame(SCORES), frame(TRUE, None, ["a", "b", "c", "x"])),
        "labels lack 'd'",
    ),
    "a twin of other rows": (
        lambda: oddslip.diagnose(
            frame(SCORES, IDS), frame(TRUE, IDS), k=K, unweighted=frame(SCORES, ["x", *IDS[1:]])
        ),
        "'u0' among the scores",
    ),
    "calibration labels of other rows": (
        lambda: oddslip.diagnose(
            SCORES, TRUE, k=K, calibration=(frame(SCORES, IDS), frame(TRUE, ["x", *IDS[1:]]))
        ),
        "'u0' among the scores",
    ),
    "comparisons whose labels know one order": (
        lambda: oddslip.evaluate(frame(SCORES, IDS), TRUE, k=K, n_replicates=0).compare(
            oddslip.evaluate(frame(SCORES[TURN], TURNED), TRUE, k=K, n_replicates=0)
        ),
        "labels without",
    ),
    "weights of a stranger": (
        lambda: oddslip.diagnose(
            frame(SCORES), TRUE, k=K, weights={"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
        ),
        "weights given by name .* 'e'",
    ),
    "weights that lack a label": (
        lambda: oddslip.diagnose(frame(SCORES), TRUE, k=K, weights={"a": 1, "b": 2, "c": 3}),
        "weights given by name .* 'd' is missing",
    ),
    "a prior that lacks a label": (
        lambda: Isotonic(prior=pd.Series({"a": 0.1, "b": 0.2, "c": 0.3})).fit(frame(SCORES), TRUE),
        "prior given by name .* 'd' is missing",
    ),
    "a sample weight of other rows": (
        lambda: found(
            frame(SCORES, IDS), TRUE, sample_weight=pd.Series(1.0, index=["x", *IDS[1:]])
        ),
        "'u0' among the scores",
    ),
    "margins for a repair of probabilities": (
        lambda: Isotonic().fit(SCORES, TRUE).rank(SCORES * 9 - 7, k=K),
        "fitted on probabilities, got scores from",
    ),
    "probabilities for a repair of margins": (
        lambda: Isotonic(kind="margin").fit(SCORES * 9 - 7, TRUE).transform(SCORES),
        "fitted on margins, got scores that all lie between 0 and 1",
    ),
    "candidates with probabilities for a repair of margins": (
        lambda: (
            Isotonic(kind="margin")
            .fit(SCORES * 9 - 7, TRUE)
            .rank(sparse.csr_matrix(SCORES + 1e-9), k=K)
        ),
        "fitted on margins, got scores that all lie between 0 and 1",
    ),
    "a panel of another kind": (
        lambda: Isotonic().fit(SCORES, TRUE).rank(Panel(SCORES, kind="margin"), k=K),
        "fitted on probability scores, got margin scores",
    ),
}


@pytest.mark.parametrize("case", MATCHED)
def test_rows_that_belong_together_are_matched(case):
    assert MATCHED[case]() == MAP


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_do_not_are_refused_by_name(case):
    act, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message) as refusal:
        act()
    assert "\n" not in str(refusal.value)


def test_a_twin_in_another_order_is_turned():
    twin = np.sqrt(SCORES)
    straight = oddslip.diagnose(SCORES, TRUE, k=K, unweighted=twin, n_replicates=0)
    turned = oddslip.diagnose(
        frame(SCORES, IDS, None), TRUE, k=K, unweighted=frame(twin[TURN], TURNED, None),
        n_replicates=0,
    )  # fmt: skip
    assert turned.ladder.value("unweighted") == straight.ladder.value("unweighted")
    np.testing.assert_array_equal(turned.shifts.direct, straight.shifts.direct)


def test_two_evaluations_are_paired_by_ids():
    first = oddslip.evaluate(frame(SCORES, IDS), frame(TRUE, IDS), k=K)
    other = SCORES ** [1, 2, 3, 4]
    straight = first.compare(oddslip.evaluate(frame(other, IDS), frame(TRUE, IDS), k=K))
    turned = first.compare(oddslip.evaluate(frame(other[TURN], TURNED), frame(TRUE, IDS), k=K))
    for metric, estimate in straight.to_dict().items():
        assert turned.to_dict()[metric] == pytest.approx(estimate, abs=1e-12)
    assert turned["map"].value != 0


@pytest.mark.parametrize(
    "named",
    [
        {"d": 4.0, "c": 3.0, "b": 2.0, "a": 1.0},
        pd.Series([4.0, 3.0, 2.0, 1.0], index=["d", "c", "b", "a"]),
        pd.DataFrame({"label": ["d", "c", "b", "a"], "weight": [4.0, 3.0, 2.0, 1.0]}),
        pd.DataFrame({"weight": [4.0, 3.0, 2.0, 1.0]}, index=["d", "c", "b", "a"]),
    ],
)
def test_weights_by_name_go_to_their_labels(named):
    fitted = [
        Inversion(weights).fit_transform(frame(SCORES), TRUE)
        for weights in (named, [1.0, 2.0, 3.0, 4.0])
    ]
    np.testing.assert_array_equal(*fitted)


# ------------------------------------------------------------------------- files, on the command line


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The same rows with ids in Parquet, in order and turned; and what does not belong."""
    monkeypatch.chdir(tmp_path)
    for name, order in (("straight", np.arange(N)), ("turned", TURN)):
        ids = [IDS[row] for row in order]
        save(f"wide-{name}.parquet", {"row_id": ids} | columns(SCORES[order]))
        save(f"truth-{name}.parquet", {"row_id": ids} | columns(TRUE[order]))
        write_scores(
            f"list-{name}.parquet", [(0, SCORES[order])], n_rows=N, n_labels=4, dtype="f8",
            label_names=NAMES, row_ids=ids, kind="probability",
        )  # fmt: skip
        cells = [(row, label) for row in order for label in range(4)]
        save(
            f"long-{name}.parquet",
            {
                "row": [IDS[row] for row, _ in cells],
                "label": [NAMES[label] for _, label in cells],
                "score": [SCORES[cell] for cell in cells],
            },
        )
        true = [cell for cell in cells if TRUE[cell]]
        pairs = {"label": [NAMES[label] for _, label in true]}
        save(f"pairs-{name}.parquet", {"row": [IDS[row] for row, _ in true]} | pairs)
        lists = [[NAMES[j] for j in np.flatnonzero(TRUE[row])] for row in order]
        save(f"lists-{name}.parquet", {"row_id": ids, "labels": lists})
    save("strange.parquet", {"row_id": ["x", *IDS[1:]]} | columns(TRUE))
    save("twice.parquet", {"row_id": ["u1", *IDS[1:]]} | columns(TRUE))
    save("strange-pairs.parquet", {"row": ["x"], "label": ["a"]})
    save("wide-margins.parquet", columns(SCORES * 9 - 7))
    write_scores(
        "margins.parquet", [(0, SCORES * 9 - 7)], n_rows=N, n_labels=4, dtype="f8",
        label_names=NAMES, kind="margin",
    )  # fmt: skip
    np.save("scores.npy", SCORES)
    np.save("margins.npy", SCORES * 9 - 7)
    sparse.save_npz("truth.npz", sparse.csr_array(TRUE))
    (tmp_path / "w.csv").write_text("label,weight\nd,4\nc,3\nb,2\na,1\n")
    (tmp_path / "w-short.csv").write_text("label,weight\nd,4\nc,3\nb,2\n")
    Isotonic().fit(SCORES, TRUE).save("repair.oddslip")
    Isotonic(kind="margin").fit(SCORES * 9 - 7, TRUE).save("margin-repair.oddslip")


def columns(cells):
    return {name: cells[:, at].tolist() for at, name in enumerate(NAMES)}


def save(name, table):
    pq.write_table(pa.table(table), name)


@pytest.mark.parametrize("scores", ["wide", "list", "long"])
@pytest.mark.parametrize("labels", ["truth", "pairs", "lists"])
def test_files_are_matched_by_their_ids(files, scores, labels):
    for one, other in (("straight", "turned"), ("turned", "turned"), ("turned", "straight")):
        value = found(f"{scores}-{one}.parquet", f"{labels}-{other}.parquet")
        assert value == pytest.approx(MAP, abs=1e-12)


def test_a_twin_file_in_another_order_is_turned(files):
    paths = ["wide-straight.parquet", "truth-turned.parquet"]
    straight = oddslip.diagnose(*paths, k=K, unweighted="wide-straight.parquet", n_replicates=0)
    turned = oddslip.diagnose(*paths, k=K, unweighted="long-turned.parquet", n_replicates=0)
    assert turned.ladder.value("unweighted") == straight.ladder.value("unweighted")
    np.testing.assert_array_equal(turned.shifts.direct, straight.shifts.direct)


COMMANDS = {
    "matched: ids in another order": (
        "evaluate wide-turned.parquet truth-straight.parquet -k 2",
        "",
    ),
    "matched: against another order": (
        "evaluate wide-turned.parquet truth-straight.parquet -k 2 --against list-straight.parquet",
        "",
    ),
    "matched: a twin in another order": (
        "diagnose wide-turned.parquet truth-straight.parquet -k 2 --bootstrap 0 "
        "--unweighted list-straight.parquet",
        "",
    ),
    "matched: weights by name": (
        "fit wide-turned.parquet truth-straight.parquet --calibrator inversion --weights w.csv "
        "-o r.oddslip",
        "",
    ),
    "matched: a kind that the file says": ("rank margins.parquet -k 2", ""),
    "refused: a strange row": (
        "evaluate wide-straight.parquet strange.parquet -k 2",
        "'u0' among the scores",
    ),
    "refused: a row twice": ("evaluate wide-straight.parquet twice.parquet -k 2", "more than once"),
    "refused: strange pairs": (
        "evaluate wide-straight.parquet strange-pairs.parquet -k 2",
        "'x', which is none of their row ids",
    ),
    "refused: ids against numbers": (
        "evaluate scores.npy pairs-straight.parquet -k 2 --label-names names.txt",
        "scores have no row ids",
    ),
    "refused: against rows whose labels know one order": (
        "evaluate wide-turned.parquet truth.npz -k 2 --against list-straight.parquet",
        "labels without",
    ),
    "refused: a strange twin": (
        "diagnose wide-straight.parquet truth-turned.parquet -k 2 --unweighted strange.parquet",
        "float column",
    ),
    "refused: calibration labels of other rows": (
        "diagnose scores.npy truth.npz -k 2 --calibration wide-straight.parquet "
        "--calibration-labels strange.parquet",
        "'u0' among the scores",
    ),
    "refused: weights that lack a label": (
        "diagnose wide-straight.parquet truth-turned.parquet -k 2 --weights w-short.csv",
        "'a' is missing",
    ),
    "refused: another kind than the file's": (
        "evaluate margins.parquet truth.npz -k 2 --kind probability",
        'written as "margin"',
    ),
    "refused: margins for probabilities": (
        "apply repair.oddslip margins.npy -o x.npy",
        "fitted on probabilities",
    ),
    "refused: probabilities for margins": (
        "apply margin-repair.oddslip scores.npy -k 2 -o x.npy",
        "fitted on margins",
    ),
    "refused: a file of probabilities for margins": (
        "apply margin-repair.oddslip wide-straight.parquet -k 2 -o x.npy",
        "fitted on margins",
    ),
    "refused: a file that does not say that it holds margins": (
        "apply repair.oddslip wide-margins.parquet -o x.npy",
        "fitted on probabilities",
    ),
    "refused: a long file of probabilities for margins": (
        "apply margin-repair.oddslip long-straight.parquet -k 2 -o x.npy",
        "fitted on margins",
    ),
    "refused: a margin file for probabilities": (
        "apply repair.oddslip margins.parquet -o x.npy",
        'written as "margin"',
    ),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_commands_match_or_refuse(files, capsys, case):
    command, message = COMMANDS[case]
    with open("names.txt", "w") as file:
        file.write("\n".join(NAMES))
    code = main(command.split())
    said = capsys.readouterr()
    if case.startswith("matched"):
        assert not code, said.err
        if "evaluate" in command:
            assert f"{MAP:.4f}" in said.out
    else:
        assert code == 2
        assert message in " ".join(said.err.split())


def test_a_written_table_keeps_its_kind(files):
    assert oddslip.open_source("margins.parquet").kind == "margin"
    assert main(["apply", "repair.oddslip", "scores.npy", "-o", "repaired.parquet"]) in (0, None)
    assert oddslip.open_source("repaired.parquet").kind == "probability"
