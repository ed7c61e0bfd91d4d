"""Kernels load and run anywhere: any processor, threads, forks, read-only installs, no home."""

import os
import shutil
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import oddslip
from oddslip import kernels
from oddslip.kernels.keys import keys_of, largest_key
from oddslip.kernels.topk import rank_keys

PACKAGE = Path(oddslip.__file__).parent
RANKS = "import numpy, oddslip; print(oddslip.rank(numpy.eye(3), k=1).ravel().tolist())"
SHOWS = "from oddslip import kernels; from oddslip.kernels import topk; print(kernels.CPU, topk.__file__)"


def run(code, path=None, home=None, **environment):
    variables = {
        k: v for k, v in os.environ.items() if k not in ("ODDSLIP_CPU", "HOME", "PYTHONPATH")
    }
    variables |= {"PYTHONPATH": str(path or PACKAGE.parent), **environment}
    if home is not None:
        variables["HOME"] = str(home)
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True
    )


def test_the_plain_kernels_are_loaded_where_asked_for():
    process = run(SHOWS, ODDSLIP_CPU="baseline")
    cpu, file = process.stdout.split()
    assert cpu == "baseline"
    assert Path(file).parent.name == "kernels"


def test_the_fast_kernels_are_loaded_where_the_processor_has_them():
    from oddslip.kernels.cpu import HAS_AVX2

    fast = HAS_AVX2 and any((PACKAGE / "kernels" / "avx2").glob("topk.*"))
    cpu, file = run(SHOWS).stdout.split()
    assert cpu == ("avx2" if fast else "baseline")
    assert Path(file).parent.name == ("avx2" if fast else "kernels")


@pytest.mark.parametrize("name", [None, "keys.cpython-27-x86_64-linux-gnu.so"])
def test_a_folder_without_kernels_of_this_python_is_not_taken_for_the_fast_build(tmp_path, name):
    ignored = shutil.ignore_patterns("__pycache__", "avx2")
    shutil.copytree(PACKAGE, tmp_path / "oddslip", ignore=ignored)
    folder = tmp_path / "oddslip" / "kernels" / "avx2"
    folder.mkdir()
    if name:
        (folder / name).touch()
    cpu, file = run(SHOWS, path=tmp_path).stdout.split()
    assert cpu == "baseline"
    assert Path(file).parent.name == "kernels"


def test_an_unknown_processor_is_refused_in_one_line():
    process = run(SHOWS, ODDSLIP_CPU="z80")
    assert process.returncode != 0
    assert 'ODDSLIP_CPU must be "avx2" or "baseline", got \'z80\'.' in process.stderr


def test_both_builds_give_the_same_bits_save_logistic_sums():
    code = (
        "import hashlib, numpy as np\n"
        "from oddslip.kernels import hits, isotonic, keys, logits, maps, topk\n"
        "found = hashlib.sha256()\n"
        "for dtype in (np.float32, np.float64):\n"
        "    p = np.random.default_rng(0).random((200, 601)).astype(dtype)\n"
        "    k = keys.keys_of(p, 'probability')\n"
        "    found.update(b''.join(a.tobytes() for a in topk.rank_keys(k, 7)))\n"
        "    sums, ones, odds, shifted = np.zeros((5, 601)), np.linspace(.5, 2, 601), p.astype(float), p.copy()\n"
        "    logits.sum_sigmoids(p, ones, sums)\n"
        "    logits.weigh_odds(p, ones, odds)\n"
        "    logits.shift_probabilities(p, ones, ones, shifted)\n"
        "    mapped, none = np.empty(p.shape), np.zeros(601, np.int64)\n"
        "    maps.map_cells(p, np.full(601, 1, np.int8), ones, ones, ones, none, none, ones[:0],\n"
        "                   np.zeros((0, 4)), 0, 1, 0., 1., 1, mapped)\n"
        "    for made in (sums, odds, shifted, mapped):\n"
        "        found.update(made.tobytes())\n"
        "print(found.hexdigest())\n"
    )
    fast, plain = run(code), run(code, ODDSLIP_CPU="baseline")
    assert fast.returncode == 0, fast.stderr
    assert fast.stdout == plain.stdout


def test_eight_threads_rank_as_one_does():
    keys = keys_of(np.random.default_rng(0).random((3000, 700)), "probability")
    keys.flags.writeable = False
    alone = rank_keys(keys, 7)
    rankings = [None] * 8

    def work(number):
        for _ in range(3):
            rankings[number] = rank_keys(keys, 7)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ranking in rankings:
        for one, other in zip(alone, ranking, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_kernels_run_in_a_forked_process():
    code = (
        "import os, numpy as np\n"
        "from oddslip.kernels.keys import keys_of, largest_key\n"
        "keys = keys_of(np.random.default_rng(0).random((50, 60)), 'probability')\n"
        "wanted = largest_key(keys)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if largest_key(keys) == wanted else 1)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    process = run(code)
    assert process.stdout.strip() == "0", process.stderr


def test_a_read_only_install_without_a_home_ranks_and_writes_nothing(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    installed = tmp_path / "site" / "oddslip"
    shutil.copytree(PACKAGE, installed, ignore=shutil.ignore_patterns("__pycache__", "*.pyx"))
    before = sorted(tmp_path.rglob("*"))
    for folder in (home, *installed.rglob("*"), installed, installed.parent):
        folder.chmod(0o555)
    try:
        process = run(RANKS, path=installed.parent, home=home, PYTHONDONTWRITEBYTECODE="1")
        assert process.stdout.strip() == "[0, 1, 2]", process.stderr
        assert sorted(tmp_path.rglob("*")) == before
    finally:
        for folder in (home, installed.parent, installed, *installed.rglob("*")):
            folder.chmod(0o755)


def test_sources_that_were_never_compiled_say_what_to_run(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "avx2")
    shutil.copytree(PACKAGE, tmp_path / "oddslip", ignore=ignored)
    process = run(RANKS, path=tmp_path)
    assert "kernels are not compiled here. Run: pip install --editable ." in process.stderr


@pytest.mark.parametrize(
    "name",
    [
        "buckets",
        "cpu",
        "fused",
        "hierarchy",
        "hits",
        "isotonic",
        "keys",
        "logistic",
        "logits",
        "maps",
        "mixture",
        "newton",
        "points",
        "resampling",
        "topk",
        "trees",
    ],
)
def test_every_kernel_is_a_compiled_file_of_the_build_chosen(name):
    file = Path(import_module(f"oddslip.kernels.{name}").__file__)
    assert file.suffix in (".so", ".pyd")
    assert file.parent.name == ("avx2" if kernels.CPU == "avx2" and name != "cpu" else "kernels")


def test_an_empty_block_has_the_lowest_key(dtype):
    assert largest_key(keys_of(np.zeros((0, 3), dtype), "probability")) == 0
