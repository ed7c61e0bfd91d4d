"""In CI a skipped test fails, whichever way it was skipped; elsewhere it is skipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
WAYS = {
    "mark": "import pytest\n@pytest.mark.skip(reason='no luck')\ndef test_a(): pass\n",
    "condition": "import pytest\n@pytest.mark.skipif(True, reason='no luck')\ndef test_a(): pass\n",
    "call": "import pytest\ndef test_a(): pytest.skip('no luck')\n",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('no luck')\ndef test_a(f): pass\n",
    "import": "import pytest\npytest.importorskip('no_luck')\ndef test_a(): pass\n",
}


def run(folder, text, ci):
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    surroundings = {name: value for name, value in os.environ.items() if name != "CI"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", folder],
        env=surroundings | ({"CI": "true"} if ci else {}),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("way", WAYS)
def test_a_skipped_test_fails_in_ci_and_says_why(way, tmp_path):
    code, told = run(tmp_path, WAYS[way], ci=True)
    assert code not in (0, 5)
    assert "must run where CI=true" in told
    assert "no luck" in told or "no_luck" in told


@pytest.mark.parametrize("way", WAYS)
def test_a_skipped_test_is_skipped_elsewhere(way, tmp_path):
    code, told = run(tmp_path, WAYS[way], ci=False)
    assert code in (0, 5)  # 5: nothing left to run
    assert "1 skipped" in told


def test_a_test_that_runs_passes_in_ci(tmp_path):
    code, told = run(tmp_path, "def test_a(): pass\n", ci=True)
    assert code == 0
    assert "1 passed" in told
