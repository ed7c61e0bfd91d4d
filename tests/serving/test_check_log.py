"""The log of checks: one whole line for each, read back as written, whoever else writes."""

import json
import subprocess
import sys

import numpy as np
import pytest

import oddslip
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.serving import check_log as log_module
from oddslip.serving.check_log import append_check, check_log, read_checks


@pytest.fixture(scope="module")
def result():
    scores = np.random.default_rng(0).random((50, 4))
    return oddslip.check(None, scores, k=2)


def test_lines_are_read_as_they_were_written(result, tmp_path):
    path = tmp_path / "log.jsonl"
    append_check(path, result, when="2026-05-01", about={"scores": "a\nb.npy"})
    append_check(path, result)
    first, second = read_checks(path)
    assert first == {"when": "2026-05-01", "about": {"scores": "a\nb.npy"}, **result.to_dict()}
    assert second["when"].endswith("+00:00")
    assert len(path.read_bytes().split(b"\n")) == 3


def test_what_a_killed_process_left_of_a_line_is_cut_off(result, tmp_path):
    path = tmp_path / "log.jsonl"
    append_check(path, result, when="2026-05-01")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:100])
    assert len(read_checks(path)) == 1
    append_check(path, result, when="2026-05-02")
    assert [each["when"] for each in read_checks(path)] == ["2026-05-01", "2026-05-02"]
    path.write_bytes(whole[:100])
    append_check(path, result, when="2026-05-03")
    assert len(read_checks(path)) == 1


def test_a_record_that_only_lacks_its_newline_is_kept(result, tmp_path):
    path = tmp_path / "log.jsonl"
    append_check(path, result, when="2026-05-01")
    path.write_bytes(path.read_bytes()[:-1])
    append_check(path, result, when="2026-05-02")
    assert [each["when"] for each in read_checks(path)] == ["2026-05-01", "2026-05-02"]


FOREIGN = {
    "JSON without a final newline": b'{"threshold": 3}',
    "JSON that begins like a record": b'{"when": "2026-05-01"}',
    "JSON of several lines": b'{\n  "a": 1\n}\n',
    "text": b"a line\nand half a line",
    "one word": b"word",
    "an array": np.lib.format.magic(1, 0) + b"\x00\x0a" * 90 + b"cells",
    "an empty line": b"\n",
    "a zero byte": b"\0",
}


@pytest.mark.parametrize("before", ["", "a record"])
@pytest.mark.parametrize("what", FOREIGN)
def test_a_file_that_is_no_log_is_refused_and_stays_as_it_is(result, tmp_path, what, before):
    path = tmp_path / "log.jsonl"
    if before:
        append_check(path, result, when="2026-05-01")
        path.write_bytes(path.read_bytes() + FOREIGN[what])
    else:
        path.write_bytes(FOREIGN[what])
    raw = path.read_bytes()
    for refuse in (append_check, lambda path, _: check_log(path)):
        with pytest.raises(UnreadableFile, match="must be a log of checks to append to") as caught:
            refuse(path, result)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == raw


@pytest.mark.parametrize("cut", [1, 5, 10, 11, 200, -2])
def test_the_beginning_of_a_record_may_be_cut_off_wherever_it_ends(result, tmp_path, cut):
    path = tmp_path / "log.jsonl"
    append_check(path, result, when="2026-05-01")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut])
    append_check(path, result, when="2026-05-02")
    assert [each["when"] for each in read_checks(path)] == ["2026-05-01", "2026-05-02"]


def test_on_the_command_line_a_file_that_is_no_log_is_refused_before_the_work(tmp_path, capsys):
    from oddslip.cli.app import main

    (tmp_path / "settings.json").write_text('{"threshold": 3}')
    log = str(tmp_path / "settings.json")
    assert main(["check", "raw", "none.npy", "-k", "2", "--log", log]) == 2
    assert "must be a log of checks" in capsys.readouterr().err
    assert (tmp_path / "settings.json").read_text() == '{"threshold": 3}'


def test_processes_that_append_at_once_lose_no_line(tmp_path):
    path = tmp_path / "log.jsonl"
    code = (
        "import sys, numpy as np, oddslip\n"
        "from oddslip.serving.check_log import append_check\n"
        "result = oddslip.check(None, np.random.default_rng(0).random((20, 3)), k=1, threads=1)\n"
        "for _ in range(15): append_check(sys.argv[1], result, when='2026-05-01')\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, path]) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    assert len(read_checks(path)) == 30
    assert [each.name for each in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_log_held_for_too_long_is_refused_in_one_line(result, tmp_path, monkeypatch):
    from threading import Thread

    from oddslip.io.files import lock

    path = tmp_path / "log.jsonl"
    monkeypatch.setattr(log_module, "PATIENCE", 0.0)
    messages = []

    def append():
        try:
            append_check(path, result)
        except InvalidInput as error:
            messages.append(str(error))

    with lock(path):
        thread = Thread(target=append)
        thread.start()
        thread.join()
    assert "is being written" in messages[0]
    assert not path.exists()


def spoil(record, **changes):
    return json.dumps(record | changes)


SPOILED = {
    "no JSON": lambda record: "{",
    "a list": lambda record: "[]",
    "another schema": lambda record: spoil(record, schema="oddslip.diagnosis/1"),
    "a day that is none": lambda record: spoil(record, when="<b>today</b>"),
    "passed as text": lambda record: spoil(record, passed="yes"),
    "rows as text": lambda record: spoil(record, n_rows="<b>"),
    "a finding without a code": lambda record: spoil(record, findings=[{}]),
    "a failed code that is a list": lambda record: spoil(record, failed=[[]]),
    "a measure that is text": lambda record: spoil(
        record, measures={"tied_share": {"before": None, "now": "<b>"}}
    ),
    "a metric without an interval": lambda record: spoil(record, metrics={"map": {"value": 1}}),
    "nested too deeply": lambda record: "[" * 100_000,
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_line_that_is_no_check_is_refused_by_its_number(result, tmp_path, what):
    path = tmp_path / "log.jsonl"
    append_check(path, result, when="2026-05-01")
    record = read_checks(path)[0]
    with path.open("a") as file:
        file.write(SPOILED[what](record) + "\n")
    with pytest.raises(UnreadableFile, match="line 2 is none") as refusal:
        read_checks(path)
    assert "\n" not in str(refusal.value)


def test_an_empty_log_and_a_strange_day_are_refused(result, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("")
    with pytest.raises(UnreadableFile, match="holds no check"):
        read_checks(path)
    with pytest.raises(InvalidInput, match="when must be"):
        append_check(path, result, when="yesterday")
    with pytest.raises(InvalidInput, match="existing folder"):
        append_check(tmp_path / "none" / "log.jsonl", result)
