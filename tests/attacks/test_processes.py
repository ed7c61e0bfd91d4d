"""What the campaigns on processes notice, and that they know every command."""

import signal

import numpy as np
import pytest

from attacks.children import nursery
from attacks.commands import commands
from attacks.signals import reading_commands
from attacks.trials import OLD, check_same, check_whole


def test_a_half_written_file_is_noticed():
    check_whole(
        {"a": OLD, "b": b"new", "c": b"work that a rerun takes up"}, {"a": b"", "b": b"new"}
    )
    with pytest.raises(AssertionError, match="a is neither the old file nor the new"):
        check_whole({"a": b"ne"}, {"a": b"new"})


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ({}, "'a'. are missing"),
        ({"a": b"new", ".a.lock": b""}, "'.a.lock'. are left over"),
        ({"a": b"ne"}, "'a'. have other bytes"),
    ],
)
def test_a_rerun_that_ends_otherwise_is_noticed(found, line):
    with pytest.raises(AssertionError, match=line):
        check_same(found, {"a": b"new"})


def test_a_command_that_hangs_or_tells_two_lines_is_noticed(tmp_path):
    with nursery() as opened:
        (tmp_path / "work").mkdir()
        ended = opened.run(["evaluate", "none.npy", "-k", "2"], tmp_path / "work")
        assert (ended.code, ended.is_one_line) == (2, True)
        np.save(tmp_path / "work" / "s.npy", np.eye(3))
        child = opened.start(["rank", "s.npy", "-k", "1"], tmp_path / "work")
        child.send(signal.SIGSTOP)
        assert child.wait(seconds=1) is None
        child.send(signal.SIGKILL)
        assert child.end().code == -signal.SIGKILL


def test_every_command_is_in_the_table_or_writes_nothing(tmp_path):
    from experiments.app import app as experiments
    from oddslip.cli.app import app

    inputs = tmp_path / "inputs"
    told = {each.arguments[:1] for each in [*commands(inputs), *reading_commands(inputs)]}
    told |= {each.arguments[:2] for each in commands(inputs)}
    known = {(each.callback.__name__,) for each in app.registered_commands if not each.hidden}
    studies = [each.callback.__name__ for each in experiments.registered_commands]
    known |= {("experiments", name) for name in studies}
    # The same study as instacart, on files that cannot be generated; those that take minutes and
    # keep their cells by the same store as all the others, or nothing but a page; those that write
    # file after file by `atomic_write`; and lint, which writes nothing.
    minutes = (
        *("verdict_simulation", "monitor_simulation", "selection"),
        *("survey", "leaf", "synthetic", "boundary", "row_rankers", "row_aware"),
        *(
            "rounds",
            "foldable",
            "wild",
            "peers",
            "wgboost",
            "conventions",
            "decisions",
            "instacart_baskets",
            "screening",
        ),
    )
    others = {("experiments", name) for name in ("tafeng", *minutes, "archive", "schematic")}
    assert known - told == others | {("fold",), ("lint",)}
