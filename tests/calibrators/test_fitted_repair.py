"""A saved repair is read back whole or refused in one line."""

import hashlib
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest

import oddslip
from oddslip.calibrators import Isotonic
from oddslip.calibrators.repair_file import _START, FORMAT, MAGIC
from oddslip.cli.app import main
from oddslip.serving import load_runtime

SCORES = np.random.default_rng(0).random((200, 4))
LABELS = np.random.default_rng(1).random((200, 4)) < SCORES * [0.5, 0.3, 0.1, 0.0]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "repair.oddslip"
    Isotonic().fit(SCORES, LABELS, label_names=["a", "b", "c", "d"]).save(path)
    return path


def sign(body):
    return body + hashlib.sha256(body).digest()


def with_header(data, change):
    """The same file with another header, and a checksum that agrees."""
    _, version, length = _START.unpack(data[: _START.size])
    header = json.loads(data[_START.size : _START.size + length])
    change(header)
    text = json.dumps(header).encode()
    return sign(_START.pack(MAGIC, version, len(text)) + text + data[_START.size + length : -32])


def header_length(data):
    return _START.unpack(data[: _START.size])[2]


def set_item(key, value):
    return lambda data: with_header(data, lambda header: header.__setitem__(key, value))


def swap_names(data):
    at = data.index(b'"a", "b"')
    return data[:at] + b'"b", "a"' + data[at + 8 :]


def flip(at):
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def zip_bomb(data, folder):
    path = folder / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\0" * 10_000_000)
    return path.read_bytes()


def break_array(field, value):
    def change(header):
        header["arrays"][0][field] = value

    return lambda data: with_header(data, change)


def put_array(name, dtype, value):
    """Set the first number of an array; the checksum agrees."""

    def change(data):
        _, _, length = _START.unpack(data[: _START.size])
        at = _START.size + length
        for each, kind, (size,) in json.loads(data[_START.size : at])["arrays"]:
            if each == name:
                break
            at += size * np.dtype(kind).itemsize
        new = np.array(value, dtype).tobytes()
        return sign(data[:at] + new + data[at + len(new) : -32])

    return change


BROKEN = {
    "empty": lambda data: b"",
    "cut in the magic": lambda data: data[:4],
    "cut in the version": lambda data: data[:10],
    "cut in the header length": lambda data: data[:15],
    "cut in the header": lambda data: data[: _START.size + 30],
    "cut after the header": lambda data: data[: _START.size + header_length(data)],
    "cut in the arrays": lambda data: data[: _START.size + header_length(data) + 50],
    "cut in the checksum": lambda data: data[:-5],
    "without its checksum": lambda data: data[:-32],
    "more bytes at the end": lambda data: data + b"\0",
    "a byte flipped in the header": flip(60),
    "a byte flipped in the arrays": lambda data: flip(len(data) - 100)(data),
    "a byte flipped in the checksum": lambda data: flip(len(data) - 1)(data),
    "a newer format": lambda data: sign(data[:8] + struct.pack("<I", FORMAT + 1) + data[12:-32]),
    "format zero": lambda data: sign(data[:8] + struct.pack("<I", 0) + data[12:-32]),
    "a huge header length": lambda data: sign(data[:12] + struct.pack("<Q", 2**62) + data[20:-32]),
    "label names swapped": swap_names,
    "too few label names": set_item("label_names", ["a", "b"]),
    "label names twice": set_item("label_names", ["a", "a", "c", "d"]),
    "an unknown kind": set_item("kind", "logit"),
    "an unknown scale": set_item("scale", "percent"),
    "an action out of range": set_item("action", [9, 0, 0, 0]),
    "too few actions": set_item("action", [0]),
    "a header that is a list": lambda data: sign(_START.pack(MAGIC, FORMAT, 2) + b"[]"),
    "a header that is not JSON": lambda data: sign(_START.pack(MAGIC, FORMAT, 3) + b"{{{"),
    "an object array": break_array(1, "|O"),
    "an array of another type": break_array(1, "<f4"),
    "an array of another name": break_array(0, "__class__"),
    "an array larger than the file": break_array(2, [2**40]),
    "an array of negative size": break_array(2, [-1]),
    "an array of two axes": break_array(2, [2, 2]),
    "an array beyond 64 bits": break_array(2, [10**40]),
    "rows beyond float": set_item("n_rows", float("inf")),
    "rows below zero": set_item("n_rows", -1),
    "fewer rows than positives": set_item("n_rows", 1),
    "rows of text": set_item("n_rows", "200"),
    "positives below zero": put_array("n_positives", "<i8", -1),
    "a prior above one": put_array("prior", "<f8", 1.5),
    "a truth of seven": put_array("dead", "|u1", 7),
    "a pickle": lambda data: pickle.dumps({"maps": [1, 2, 3]}),
    "an .npz archive": lambda data: b"PK\x03\x04" + data,
    "text": lambda data: b"a,b\n1,2\n",
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_refused_in_one_line(how, saved, capsys):
    saved.write_bytes(BROKEN[how](saved.read_bytes()))
    with pytest.raises(oddslip.UnreadableFile) as refused:
        oddslip.load_repair(saved)
    assert str(saved) in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(oddslip.UnreadableFile) as refused_alike:
        load_runtime(saved)
    assert str(refused_alike.value) == str(refused.value)
    np.save(saved.parent / "scores.npy", SCORES)
    out = saved.parent / "out.npy"
    assert main(["apply", str(saved), str(saved.parent / "scores.npy"), "-o", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()


def test_truncation_at_every_byte_is_refused(saved):
    data = saved.read_bytes()
    for length in range(0, len(data), 7):
        saved.write_bytes(data[:length])
        with pytest.raises(oddslip.UnreadableFile):
            oddslip.load_repair(saved)


def test_every_flipped_byte_is_refused(saved):
    data = saved.read_bytes()
    for at in range(0, len(data), 11):
        saved.write_bytes(flip(at)(data))
        with pytest.raises(oddslip.UnreadableFile):
            oddslip.load_repair(saved)


def test_a_zip_bomb_is_not_opened(saved):
    saved.write_bytes(zip_bomb(saved.read_bytes(), saved.parent))
    with pytest.raises(oddslip.UnreadableFile, match="not a saved repair"):
        oddslip.load_repair(saved)


def test_knots_that_decrease_are_refused_even_with_a_good_checksum(saved):
    data = saved.read_bytes()
    repair = oddslip.load_repair(saved)
    backwards = repair.maps.x[::-1].tobytes()
    at = data.index(repair.maps.x.tobytes())
    saved.write_bytes(sign(data[:at] + backwards + data[at + len(backwards) : -32]))
    with pytest.raises(oddslip.UnreadableFile, match="does not add up"):
        oddslip.load_repair(saved)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.oddslip", tmp_path):
        with pytest.raises(oddslip.UnreadableFile):
            oddslip.load_repair(path)


def test_an_interrupted_save_keeps_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    repair = oddslip.load_repair(saved)

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("oddslip.sources.writers.os.replace", fail)
    monkeypatch.setattr("oddslip.io.files.os.replace", fail, raising=False)
    with pytest.raises(KeyboardInterrupt):
        repair.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_names_from_all_of_unicode_come_back(tmp_path):
    names = ["<img src=x>", "naïve ☃", "\x1b[31m", "a\nb"]
    path = tmp_path / "repair.oddslip"
    Isotonic().fit(SCORES, LABELS, label_names=names).save(path)
    assert oddslip.load_repair(path).label_names == tuple(names)


def test_a_text_with_half_of_a_surrogate_pair_can_be_saved_again(saved):
    saved.write_bytes(set_item("calibrator", "\ud800")(saved.read_bytes()))
    oddslip.load_repair(saved).save(saved)
    assert oddslip.load_repair(saved).calibrator == "\ud800"
