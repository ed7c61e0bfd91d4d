"""A saved repair served with NumPy alone gives what the kernels give, to the bit."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oddslip
from oddslip.errors import InvalidInput
from oddslip.io import files
from oddslip.kernels import maps as kernel
from oddslip.kernels.maps import AFFINE, BETA
from oddslip.repairs import map_forms
from oddslip.repairs.repair_file import read_repair_file
from oddslip.serving import Runtime, load_runtime

sys.path.insert(0, str(Path(__file__).parent))
from repair_worlds import as_repair, draw_repair

from oddslip.repairs.maps import LabelMaps

N_REPAIRS = 1000
PACKAGE = Path(oddslip.__file__).parent
pytestmark = pytest.mark.filterwarnings("ignore:labels of .* are matched by position:UserWarning")
ALONE = """
import sys
sys.path[:] = [sys.argv[1], *(path for path in sys.path if "packages" not in path)]
from importlib.util import find_spec
assert not any(map(find_spec, ("scipy", "sklearn", "pyarrow", "typer", "rich", "numba")))
from pathlib import Path
import numpy as np
from oddslip.serving.runtime import load_runtime
assert "oddslip.kernels" not in sys.modules
try:
    import oddslip.kernels
except ImportError:
    pass
else:
    raise AssertionError("there must be no kernels here")
folder, answers = Path(sys.argv[2]), {}
with np.load(folder / "scores.npz") as given:
    for name in given.files:
        runtime = load_runtime(folder / f"{name}.oddslip")
        scores, k = given[name], int(name.split("-")[1])
        answers[f"{name}-transform"] = runtime.transform(scores)
        answers[f"{name}-float64"] = runtime.transform(scores, dtype=np.float64)
        answers[f"{name}-rank"] = runtime.rank(scores, k=k)
        answers[f"{name}-row"] = runtime.rank(scores[-1], k=k)
np.savez(folder / "answers.npz", **answers)
"""


@pytest.fixture
def runtime_of(tmp_path):
    def save_and_load(repair):
        path = tmp_path / "repair.oddslip"
        repair.save(path)
        return load_runtime(path)

    return save_and_load


@pytest.fixture(scope="module")
def numpy_alone(tmp_path_factory):
    """An environment with NumPy and our Python files: no kernel, and no other package."""
    folder = tmp_path_factory.mktemp("numpy-alone")
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "avx2", "__pycache__")
    shutil.copytree(PACKAGE, folder / "oddslip", ignore=ignored)
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        (folder / part.name).symlink_to(part)
    return folder


def same_bits(ours, theirs):
    return ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


def test_a_thousand_repairs_give_the_bits_of_the_kernels_where_numpy_is_alone(
    numpy_alone, tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "flush", lambda path: None)  # a thousand files need not last
    worlds = {}
    for seed in range(N_REPAIRS):
        repair, scores, k = draw_repair(seed)
        worlds[f"{seed}-{k}"] = repair, scores, k
        repair.save(tmp_path / f"{seed}-{k}.oddslip")
    np.savez(tmp_path / "scores.npz", **{name: scores for name, (_, scores, _) in worlds.items()})
    command = [sys.executable, "-I", "-c", ALONE, numpy_alone, tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    with np.load(tmp_path / "answers.npz") as answers:
        for name, (repair, scores, k) in worlds.items():
            ranking = repair.rank(scores, k=k, threads=1)
            wide = repair.transform(scores, dtype=np.float64, threads=1)
            assert same_bits(answers[f"{name}-float64"], wide), name
            assert same_bits(answers[f"{name}-transform"], wide.astype(scores.dtype)), name
            assert same_bits(answers[f"{name}-rank"], ranking), name
            assert same_bits(answers[f"{name}-row"], ranking[-1]), name


def test_the_runtime_loads_numpy_and_nothing_else():
    code = (
        "import sys\nimport numpy.typing\nbefore = set(sys.modules)\nimport oddslip.serving.runtime\n"
        "new = {name for name in set(sys.modules) - before if name[0] != '_'}\n"
        "print(*(name for name in new if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    modules = process.stdout.split()
    assert {name.partition(".")[0] for name in modules} == {"oddslip"}
    assert not [name for name in modules if name.startswith("oddslip.kernels")]
    assert len(modules) < 25  # of about two hundred


def test_forms_are_numbered_and_clipped_as_in_the_kernels():
    for name in ("KNOTS", "AFFINE", "BETA", "CONSTANT", "IDENTITY", "EXCLUDED", "CLIP", "LOWEST"):
        assert getattr(map_forms, name) == getattr(kernel, name)


def test_functions_of_numpy_are_used_only_where_they_are_the_c_librarys(monkeypatch):
    from oddslip.serving import runtime

    def off(cells):
        return np.nextafter(np.exp(cells), 1.0)

    probes = np.linspace(-700.0, 0.0, 1001)
    exact = np.array([runtime.math.exp(probe) for probe in probes])
    assert same_bits(runtime._same(off, runtime.math.exp, probes)(probes), exact)
    for name, reference, cells in (
        ("exp", np.exp, probes),
        ("log", np.log, probes + 701.0),
        ("log1p", np.log1p, probes / 701.0),
        ("log1p_exp", lambda cells: np.log1p(np.exp(cells)), probes),
    ):
        values = getattr(runtime._c_library(), name)(cells)
        np.testing.assert_allclose(values, reference(cells), rtol=1e-14, atol=5e-324)


def test_long_maps_and_many_rows_are_as_the_kernels_have_them(runtime_of):
    rng = np.random.default_rng(3)
    counts = np.array([1, 2, 3, 1000, 4097, 17, 64, 65])
    stop = np.cumsum(counts)
    x = np.concatenate([np.sort(rng.random(count).round(3)) for count in counts])
    y = np.concatenate([np.sort(rng.random(count)) for count in counts])
    zeros = np.zeros(8)
    maps = LabelMaps(
        "probability", "probability", zeros, zeros, zeros, zeros, stop - counts, stop, x, y
    )
    scores = np.concatenate([rng.random((9000, 8)), rng.choice(x, (500, 8))])
    repair = as_repair(maps)
    runtime = runtime_of(repair)
    assert same_bits(runtime.transform(scores), repair.transform(scores))
    assert same_bits(runtime.rank(scores, k=3), repair.rank(scores, k=3))
    assert same_bits(runtime.rank(scores.T.copy().T, k=3), repair.rank(scores, k=3))


@pytest.mark.parametrize("code", [AFFINE, BETA], ids=["affine", "beta"])
@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_scores_a_last_digit_apart_rank_as_the_kernels_have_them(runtime_of, code, kind):
    rng = np.random.default_rng(5)
    n = 300
    ones, zeros = np.ones(n), np.zeros(n)
    maps = LabelMaps(
        kind, "log_odds", np.full(n, code), 1.7 * ones, 0.3 * ones, 0.1 * ones, zeros, zeros, [], []
    )
    start = rng.random((40, 1)) if kind == "probability" else rng.normal(0, 3, (40, 1))
    scores = start + rng.integers(-5, 6, (40, n)) * np.spacing(start)
    repair = as_repair(maps)
    for k in (1, 7, 150):
        assert same_bits(runtime_of(repair).rank(scores, k=k), repair.rank(scores, k=k))


# ------------------------------------------------------------- candidates, exclusions, absent cells


def oracle(repair, scores, k, absent):
    """Rank what is left of each row, label by label, in plain Python."""
    values = repair.maps.evaluate(np.ascontiguousarray(scores))
    out = []
    for row, absent_row in zip(values, absent, strict=True):
        order = sorted((-value, at) for at, value in enumerate(row) if not absent_row[at])
        ranked = [at for _, at in order][:k]
        out.append(ranked + [-1] * (k - len(ranked)))
    return np.array(out)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 0.9, 1.0]))
def test_what_is_excluded_takes_no_slot_however_it_is_said(tmp_path_factory, seed, share):
    repair, scores, k = draw_repair(seed)
    runtime = served(repair, tmp_path_factory)
    mask = np.random.default_rng(seed).random(scores.shape) < share
    expected = oracle(repair, scores, k, mask)
    matrix = sparse.csr_array(mask)
    lists = [np.flatnonzero(row).tolist() for row in mask]
    for exclude in (mask, mask.astype(np.uint8), matrix, lists, (matrix.indptr, matrix.indices)):
        np.testing.assert_array_equal(runtime.rank(scores, k=k, exclude=exclude), expected)
    for exclude in (mask[0], lists[0], (np.array([0, len(lists[0])]), lists[0])):
        np.testing.assert_array_equal(runtime.rank(scores[0], k=k, exclude=exclude), expected[0])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.9, 1.0]))
def test_nan_is_no_candidate_where_that_is_asked_for(tmp_path_factory, seed, share):
    repair, scores, k = draw_repair(seed)
    runtime = served(repair, tmp_path_factory)
    absent = np.random.default_rng(seed).random(scores.shape) < share
    holed = np.where(absent, np.nan, scores).astype(scores.dtype)
    ranking = runtime.rank(holed, k=k, nan="absent")
    np.testing.assert_array_equal(ranking, oracle(repair, scores, k, absent))
    mapped = runtime.transform(holed, nan="absent")
    np.testing.assert_array_equal(np.isnan(mapped), absent)
    assert same_bits(mapped[~absent], repair.transform(scores, threads=1)[~absent])
    if absent.any():
        with pytest.raises(InvalidInput, match='nan="absent"'):
            runtime.rank(holed, k=k)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_a_row_of_candidates_ranks_as_the_whole_row_without_the_others(tmp_path_factory, seed):
    repair, scores, k = draw_repair(seed, label_names=lambda n: tuple(f"l{j}" for j in range(n)))
    runtime = served(repair, tmp_path_factory)
    rng = np.random.default_rng(seed)
    some = rng.permutation(scores.shape[1])[: rng.integers(1, scores.shape[1] + 1)]
    absent = np.ones(scores.shape, np.bool_)
    absent[:, some] = False
    expected = oracle(repair, scores, k, absent)
    names = [f"l{j}" for j in some]
    np.testing.assert_array_equal(runtime.rank(scores[:, some], k=k, candidates=some), expected)
    row = scores[0, some]
    np.testing.assert_array_equal(runtime.rank(row, k=k, candidates=names), expected[0])
    mapped = repair.transform(scores, threads=1)
    assert same_bits(runtime.transform(row, candidates=some), mapped[0, some])
    barred = [int(some[0])]
    absent[:, some[0]] = True
    ranking = runtime.rank(row, k=k, candidates=some, exclude=barred)
    np.testing.assert_array_equal(ranking, oracle(repair, scores, k, absent)[0])


def served(repair, folders):
    path = folders.getbasetemp() / "world.oddslip"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "flush", lambda path: None)
        repair.save(path)
    return Runtime(read_repair_file(path))


# ------------------------------------------------------------------------- what is refused, and how


@pytest.fixture
def runtime(runtime_of):
    zeros = np.zeros(3)
    maps = LabelMaps(
        "probability", "log_odds", [1, 1, 3], [1.0, 2.0, 0.3], zeros, zeros, zeros, zeros, [], []
    )
    return runtime_of(as_repair(maps, ("a", "b", "c")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [0.1, np.nan, 0.3]}, 'got nan at row 0, column 1. If NaN means "no candidate"'),
        ({"scores": [[0.1, 2.0, 0.3]]}, "between 0 and 1, got 2 at row 0, column 1"),
        ({"scores": [0.1, 0.2]}, "scores and repair must have as many labels, got 2 and 3"),
        ({"scores": [[[0.1]]]}, r"shape \(labels,\) or \(rows, labels\)"),
        ({"scores": []}, r"shape \(labels,\) or \(rows, labels\)"),
        ({"scores": [[0.1], [0.1, 0.2]]}, "rows of one length"),
        ({"scores": ["x", "y", "z"]}, "must be numbers"),
        ({"k": 4}, "k must be between 1 and n_labels=3"),
        ({"k": 1.5}, "k must be a whole number"),
        ({"nan": "drop"}, 'nan must be "refuse" or "absent"'),
        ({"candidates": ["a", "b", "x"]}, "candidates must be names of labels.*got 'x'"),
        ({"candidates": [0, 1, 1]}, "each once, got 3 labels, 2 of them different"),
        ({"candidates": [0, 1]}, "the 3 columns of the scores"),
        ({"candidates": [0, 1, 0.5]}, "candidates must be names of labels.*got 0.5"),
        ({"exclude": [3]}, "exclude must be names of labels or indices below 3, got 3"),
        ({"exclude": [-1]}, "exclude must be names"),
        ({"exclude": ["nobody"]}, "exclude must be names"),
        ({"exclude": np.ones(2, np.bool_)}, "exclude must be truths of shape"),
        ({"exclude": ([0, 1], [9])}, "exclude must be names"),
        ({"exclude": ([0, 2], [1])}, "exclude must have an indptr of 2 numbers"),
        ({"exclude": ([0], [1], [1])}, r"exclude must be \(indptr, indices\)"),
        ({"scores": [[0.1, 0.2, 0.3]] * 2, "exclude": [[0]]}, "one list of labels per row"),
        (
            {"scores": [[0.1, 0.2, 0.3]], "exclude": ["a"]},
            "exclude must be a list of labels, got 'a'",
        ),
        ({"exclude": 2}, "exclude must be a list of labels, got 2"),
        ({"scores": [[0.1, 0.2, 0.3]], "exclude": 2}, "one list of labels per row"),
        ({"scores": np.ma.array([0.1, 0.2, 0.3], mask=[1, 0, 0])}, "masked"),
    ],
)
def test_invalid_arguments_are_rejected_in_one_line(runtime, arguments, message):
    with pytest.raises(InvalidInput, match=message) as error:
        runtime.rank(**({"scores": [0.1, 0.2, 0.3], "k": 1} | arguments))
    assert "\n" not in str(error.value)


def test_columns_of_a_frame_are_matched_by_name(runtime):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[0.9, 0.2, 0.6]], columns=["c", "a", "b"])
    np.testing.assert_array_equal(
        runtime.transform(frame)[0], runtime.transform([0.2, 0.6, 0.9])[[2, 0, 1]]
    )
    with pytest.raises(InvalidInput, match="'x' in the scores alone"):
        runtime.rank(frame.rename(columns={"a": "x"}), k=1)


def test_names_may_be_excluded_and_inputs_stay_as_they_are(runtime):
    scores = np.array([[-0.0, 0.2, np.nan]])
    original = scores.copy()
    assert runtime.rank(scores, k=3, exclude=[["b"]], nan="absent").tolist() == [[0, -1, -1]]
    assert scores.tobytes() == original.tobytes()
    assert repr(runtime) == "Runtime(Isotonic, 3 labels, probability)"
