"""Ctrl-C and a polite kill end a command in one line, whatever it is doing."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

ROOT = str(Path(__file__).parents[2])
LONG = 60  # seconds that a command may take to end; what it does would take an hour
SENT = {
    signal.SIGINT: (130, "oddslip: interrupted\n"),
    signal.SIGTERM: (143, "oddslip: terminated\n"),
}
BUSY = {
    "in Python": """
        begin()
        while True:
            pass
    """,
    "in threads that it waits for": """
        with ThreadPoolExecutor(2) as pool:
            task = pool.submit(time.sleep, 3600)
            begin()
            task.result()
    """,
    "where exceptions are swallowed": """
        class Deaf:
            def __del__(self):
                begin()
                time.sleep(3600)
        Deaf()
        time.sleep(3600)
    """,
    "where an exception becomes another": """
        begin()
        try:
            time.sleep(3600)
        except KeyboardInterrupt:
            raise ValueError("an import that failed")
    """,
    "with a file half written": """
        with atomic_write("a.txt") as unfinished, ThreadPoolExecutor(1) as pool:
            unfinished.write_text("half")
            task = pool.submit(time.sleep, 3600)
            begin()
            task.result()
    """,
    "with a folder half written": """
        with whole_folder("b") as unfinished, ThreadPoolExecutor(1) as pool:
            (unfinished / "c").write_text("half")
            task = pool.submit(time.sleep, 3600)
            begin()
            task.result()
    """,
}
SCRIPT = """
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from oddslip.cli import interrupts
sys.path.insert(0, {root!r})
from experiments.datasets.cache import whole_folder
from oddslip.io.files import atomic_write

def begin():
    print("begun", flush=True)

def command():
    if True:{body}
    return 0

interrupts.run(command)
"""


@contextmanager
def start(*arguments, folder):
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("busy", BUSY)
@pytest.mark.parametrize("signal_number", SENT, ids=lambda signal_number: signal_number.name)
def test_a_signal_ends_a_command_that_is_busy(tmp_path, signal_number, busy):
    with start("-c", SCRIPT.format(body=BUSY[busy], root=ROOT), folder=tmp_path) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal_number)
        _, output = process.communicate(timeout=LONG)
    assert (process.returncode, output) == SENT[signal_number]
    assert list(tmp_path.iterdir()) == []


def test_a_second_signal_does_not_disturb_the_first(tmp_path):
    body = """
        try:
            begin()
            time.sleep(3600)
        finally:
            begin()
            time.sleep(0.3)
            open("closed", "w").close()
    """
    with start("-c", SCRIPT.format(body=body, root=ROOT), folder=tmp_path) as process:
        for _ in range(2):
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=LONG)
    assert (process.returncode, output) == SENT[signal.SIGINT]
    assert (tmp_path / "closed").exists()


LEARNERS = {
    "lightgbm": "num_iterations=1000000",
    "xgboost": "n_estimators=1000000",
    "mlp": "epochs=1000000",
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("signal_number", SENT, ids=lambda signal_number: signal_number.name)
def test_a_signal_ends_a_training_amid_a_group(tmp_path, signal_number, learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 5))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", (X[:, :4] + rng.normal(size=(3_000, 4)) > 1).astype(np.int8))
    words = [
        "-m",
        "oddslip",
        "train",
        "X.npy",
        "Y.npy",
        "-o",
        "model.oddslip",
        "--checkpoint",
        "kept",
        "--learner",
        learner,
        "-p",
        LEARNERS[learner],
    ]
    with start(*words, folder=tmp_path) as process:
        while process.poll() is None and not (tmp_path / "kept" / "training.json").exists():
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)  # well into the first group
        process.send_signal(signal_number)
        _, output = process.communicate(timeout=LONG)
    assert (process.returncode, output) == SENT[signal_number]
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["X.npy", "Y.npy", "training.json"]
