"""What a stage took is kept, whatever happens in it."""

import numpy as np
import pytest

from experiments.store import peak_memory, stage


def test_a_stage_entered_twice_adds_up():
    log = {"train": {"seconds": 5.0, "cpu_seconds": 3.0, "peak_memory_mb": 1.0}}
    with stage(log, "train"):
        sum(range(1000))
    assert log["train"]["seconds"] >= 5
    assert log["train"]["cpu_seconds"] >= 3
    assert log["train"]["peak_memory_mb"] > 1


def test_a_stage_that_fails_is_kept_too():
    log = {}
    with pytest.raises(ZeroDivisionError), stage(log, "train"):
        1 / 0  # noqa: B018
    assert set(log) == {"train"}


def test_peak_memory_never_falls():
    before = peak_memory()
    array = np.ones(20_000_000)
    during = peak_memory()
    del array
    assert before <= during <= peak_memory()
    assert during > 160_000_000  # bytes: at least what was held
