"""A saved repair is read back whole or refused in one line, whatever version wrote it."""

import json
import pickle
import zipfile

import numpy as np
import pytest

import oddslip
from attacks.containers import START, put_together, put_together_version_2, take_apart
from oddslip.calibrators import Isotonic
from oddslip.cli.app import main
from oddslip.serving import load_runtime

SCORES = np.random.default_rng(0).random((200, 4))
LABELS = np.random.default_rng(1).random((200, 4)) < SCORES * [0.5, 0.3, 0.1, 0.0]


@pytest.fixture(params=[2, 3])
def version(request):
    """The format of a file: that of 0.2, and that of today."""
    return request.param


@pytest.fixture
def saved(tmp_path, version):
    path = tmp_path / "repair.oddslip"
    Isotonic().fit(SCORES, LABELS, label_names=["a", "b", "c", "d"]).save(path)
    path.write_bytes(seal(version, *open_file(path.read_bytes())))
    return path


def open_file(raw):
    """Meta, entries of the arrays, and their bytes, of a file of today."""
    header, bodies = take_apart(raw)
    return header["meta"], header["members"], bodies


def open_version(raw):
    """The same of a file of either version."""
    if raw[8] == 3:
        return open_file(raw)
    end = START.size + START.unpack_from(raw)[2]
    header = json.loads(raw[START.size : end])
    bodies, members = {}, []
    for name, dtype, shape in header.pop("arrays"):
        size = shape[0] * np.dtype(dtype).itemsize
        bodies[name], end = raw[end : end + size], end + size
        members.append({"name": name, "dtype": dtype, "shape": shape})
    return header, members, bodies


def seal(version, meta, members, bodies, *, adjust=True):
    """A file of either version, with right checksums around whatever it holds."""
    if version == 2:
        return put_together_version_2(meta, members, bodies)
    header = {"kind": "repair", "meta": meta, "members": members}
    return put_together(meta if isinstance(meta, bytes) else header, bodies, adjust=adjust)


def set_item(key, value):
    def change(raw):
        meta, members, bodies = open_version(raw)
        return seal(raw[8], {**meta, key: value}, members, bodies)

    return change


def set_header(value):
    def change(raw):
        _, members, bodies = open_version(raw)
        return seal(raw[8], value, members, bodies)

    return change


def break_array(key, value):
    """List the first array otherwise than it is."""

    def change(raw):
        meta, members, bodies = open_version(raw)
        members = [{**members[0], key: value}, *members[1:]]
        return seal(raw[8], meta, members, bodies, adjust=False)

    return change


def put_array(name, dtype, value):
    """Set the first number of an array."""

    def change(raw):
        meta, members, bodies = open_version(raw)
        new = np.array(value, dtype).tobytes()
        bodies[name] = new + bodies[name][len(new) :]
        return seal(raw[8], meta, members, bodies)

    return change


def drop_array(raw):
    meta, members, bodies = open_version(raw)
    del bodies["prior"]
    return seal(raw[8], meta, [each for each in members if each["name"] != "prior"], bodies)


def swap_names(raw):
    for names, swapped in ((b'"a", "b"', b'"b", "a"'), (b'"a","b"', b'"b","a"')):
        if names in raw:
            return raw.replace(names, swapped, 1)
    raise AssertionError


def flip(at):
    return lambda raw: raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def zip_bomb(folder):
    path = folder / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\0" * 10_000_000)
    return path.read_bytes()


def with_length(length):
    return lambda raw: raw[:12] + length.to_bytes(8, "little") + raw[20:]


def header_end(raw):
    return START.size + START.unpack_from(raw)[2]


BROKEN = {
    "empty": lambda raw: b"",
    "cut in the magic": lambda raw: raw[:4],
    "cut in the version": lambda raw: raw[:10],
    "cut in the header length": lambda raw: raw[:15],
    "cut in the header": lambda raw: raw[: START.size + 30],
    "cut after the header": lambda raw: raw[: header_end(raw)],
    "cut in the arrays": lambda raw: raw[: header_end(raw) + 50],
    "cut at the end": lambda raw: raw[:-5],
    "cut by a digest": lambda raw: raw[:-32],
    "more bytes at the end": lambda raw: raw + b"\0",
    "a byte flipped in the header": flip(60),
    "a byte flipped in the arrays": lambda raw: flip(len(raw) - 100)(raw),
    "the last byte flipped": lambda raw: flip(len(raw) - 1)(raw),
    "a newer format": lambda raw: raw[:8] + b"\4" + raw[9:],
    "format zero": lambda raw: raw[:8] + b"\0" + raw[9:],
    "a huge header length": with_length(2**62),
    "label names swapped": swap_names,
    "too few label names": set_item("label_names", ["a", "b"]),
    "label names twice": set_item("label_names", ["a", "a", "c", "d"]),
    "an unknown kind": set_item("kind", "logit"),
    "an unknown scale": set_item("scale", "percent"),
    "an action out of range": set_item("action", [9, 0, 0, 0]),
    "too few actions": set_item("action", [0]),
    "a header that is a list": set_header(b"[]"),
    "a header that is not JSON": set_header(b"{{{"),
    "a header nested deeply": set_header(b"[" * 100_000),
    "an object array": break_array("dtype", "|O"),
    "an array of another type": break_array("dtype", "<f4"),
    "an array of another name": break_array("name", "__class__"),
    "an array larger than the file": break_array("shape", [2**40]),
    "an array of negative size": break_array("shape", [-1]),
    "an array of two axes": break_array("shape", [2, 2]),
    "an array beyond 64 bits": break_array("shape", [10**40]),
    "an array less": drop_array,
    "rows beyond float": set_item("n_rows", float("inf")),
    "rows below zero": set_item("n_rows", -1),
    "fewer rows than positives": set_item("n_rows", 1),
    "rows of text": set_item("n_rows", "200"),
    "positives below zero": put_array("n_positives", "<i8", -1),
    "a prior above one": put_array("prior", "<f8", 1.5),
    "a truth of seven": put_array("dead", "|u1", 7),
    "a pickle": lambda raw: pickle.dumps({"maps": [1, 2, 3]}),
    "an .npz archive": lambda raw: b"PK\x03\x04" + raw,
    "text": lambda raw: b"a,b\n1,2\n",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_refused_in_one_line(how, saved, capsys):
    oddslip.load_repair(saved)
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
    saved.write_bytes(zip_bomb(saved.parent))
    with pytest.raises(oddslip.UnreadableFile, match="not a saved repair"):
        oddslip.load_repair(saved)


def test_knots_that_decrease_are_refused_even_with_a_good_checksum(saved):
    raw = saved.read_bytes()
    backwards = oddslip.load_repair(saved).maps.x[::-1]
    saved.write_bytes(put_array("x", "<f8", backwards)(raw))
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

    monkeypatch.setattr("oddslip.writers.os.replace", fail)
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


def test_an_older_file_is_saved_again_in_todays_format(saved):
    panel = oddslip.Panel(SCORES, label_names=["a", "b", "c", "d"])
    before = oddslip.load_repair(saved)
    before.save(saved)
    assert saved.read_bytes()[8] == 3
    assert np.array_equal(oddslip.load_repair(saved).transform(panel), before.transform(panel))


def test_a_reader_of_version_0_2_finds_the_format_where_it_looks(tmp_path):
    Isotonic().fit(SCORES, LABELS).save(tmp_path / "repair.oddslip")
    magic, version, _ = START.unpack_from((tmp_path / "repair.oddslip").read_bytes())
    assert (magic, version) == (b"oddslip\0", 3)


def test_a_model_is_not_loaded_as_a_repair_nor_a_repair_as_a_model(saved, tmp_path):
    with pytest.raises(oddslip.UnreadableFile, match=r"holds a repair, not a model. Load it with"):
        oddslip.OneVsRest.load(saved)
    model = tmp_path / "m.oddmodel"
    oddslip.OneVsRest("logistic").fit(SCORES, LABELS).save(model)
    for load in (oddslip.load_repair, load_runtime):
        with pytest.raises(
            oddslip.UnreadableFile, match=r"m.oddmodel holds a model, not a repair."
        ):
            load(model)
