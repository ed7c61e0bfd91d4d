"""A container is read back whole, or refused in one line."""

import json
import tracemalloc
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from attacks.containers import START, VERSION, put_together, take_apart
from oddslip.errors import UnreadableFile
from oddslip.io import inputs
from oddslip.io.container import container_pieces, read_container, write_container

DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="?"),
    npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    npst.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    npst.byte_string_dtypes(min_len=1, max_len=9),
    npst.unicode_string_dtypes(min_len=1, max_len=9),
    npst.datetime64_dtypes(endianness="?"),
)
ARRAYS = npst.arrays(DTYPES, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
MEMBERS = st.dictionaries(
    st.text(max_size=8), st.one_of(ARRAYS, st.binary(max_size=99)), max_size=4
)
META = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(), max_size=8),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
GOOD = b"".join(
    container_pieces(
        "model",
        {"seed": 1},
        {"x": np.arange(12.0), "none": b"", "text": b"tree" * 50, "odd": np.ones((3, 1), "i1")},
        compress=["text"],
    )
)


def same(array, other):
    return (array.dtype, array.shape, array.tobytes()) == (
        other.dtype,
        other.shape,
        other.tobytes(),
    )


@given(META, MEMBERS, st.data())
def test_any_arrays_and_bytes_come_back(meta, members, data):
    compress = data.draw(st.sets(st.sampled_from(sorted(members)))) if members else ()
    raw = b"".join(container_pieces("model", meta, members, compress=compress))
    container = read_container(raw, "model")
    assert container.meta == meta
    assert {**container.arrays, **container.blobs}.keys() == members.keys()
    for name, member in members.items():
        if isinstance(member, bytes):
            assert container.blobs[name] == member
        else:
            assert same(container.arrays[name], member)


@pytest.mark.parametrize("array", [np.arange(24).reshape(4, 6)[::2, ::3], np.ones((2, 3)).T])
def test_an_array_in_any_layout_comes_back(array):
    raw = b"".join(container_pieces("model", {}, {"x": array}))
    assert same(read_container(raw, "model").arrays["x"], array)


def test_a_file_gives_what_its_bytes_give_in_arrays_that_can_be_written(tmp_path):
    write_container(tmp_path / "m", "model", {"a": [1]}, {"x": np.arange(5), "y": b"z"})
    raw = (tmp_path / "m").read_bytes()
    container = read_container(tmp_path / "m", "model")
    assert container.meta == {"a": [1]}
    assert container.blobs == {"y": b"z"}
    container.arrays["x"] += 1
    assert container.arrays["x"].tolist() == [1, 2, 3, 4, 5]
    assert read_container(raw, "model").arrays["x"].tolist() == [0, 1, 2, 3, 4]


def test_the_same_contents_give_the_same_bytes_and_members_are_aligned():
    header, bodies = take_apart(GOOD)
    assert put_together(*take_apart(put_together(header, bodies))) == put_together(header, bodies)
    assert len(GOOD) % 64 == 0
    assert all(entry["offset"] % 64 == 0 for entry in header["members"])
    view = read_container(GOOD, "model").arrays["x"]
    assert not view.flags.owndata
    assert not view.flags.writeable


def test_bytes_may_come_in_any_buffer():
    for buffer in (bytearray(GOOD), memoryview(GOOD).cast("b"), pa.py_buffer(GOOD)):
        assert read_container(buffer, "model").arrays["x"].tolist() == list(range(12))


@pytest.mark.parametrize("array", [np.array([None]), np.zeros(2, "f8,i4"), np.zeros(2, "V3")])
def test_objects_and_records_are_not_written(array):
    with pytest.raises(TypeError, match="x must hold numbers"):
        b"".join(container_pieces("model", {}, {"x": array}))


# --------------------------------------------------------------------------------- damaged and hostile


def refusal(raw, tmp_path=None, kind="model", **options):
    """The one line that refuses these bytes, the same from a file as from memory."""
    with pytest.raises(UnreadableFile) as refused:
        read_container(raw, kind, **options)
    line = str(refused.value)
    assert "\n" not in line
    if tmp_path is not None:
        (tmp_path / "m").write_bytes(raw)
        with pytest.raises(UnreadableFile) as refused:
            read_container(tmp_path / "m", kind, **options)
        assert str(refused.value) == line.replace(f"the {kind}", str(tmp_path / "m"), 1)
    return line


def test_every_changed_byte_is_found():
    for at in range(len(GOOD)):
        for change in (1, 128, 255):
            refusal(GOOD[:at] + bytes([GOOD[at] ^ change]) + GOOD[at + 1 :])


def test_every_cut_and_every_byte_more_is_found(tmp_path):
    for length in range(len(GOOD)):
        refusal(GOOD[:length])
    for more in (b"\0", bytes(64), GOOD):
        refusal(GOOD + more, tmp_path)


@settings(max_examples=300)
@given(st.binary(max_size=200))
@example(b"")
def test_bytes_of_any_kind_are_refused(raw):
    refusal(raw)
    refusal(START.pack(b"oddslip\0", VERSION, len(raw)) + raw)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["model", "<f8", "|O", "<f3", "zlib", "", "a\nb", "<U99999999", "\ud800"])
    | st.sampled_from([-1, 0, 2**31, 2**62, 2**63, 2**64, 10**40]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


ENTRY_KEYS = ["name", "dtype", "shape", "offset", "bytes", "encoding", "sha256"]
KEYS = ["kind", "meta", "members", *ENTRY_KEYS, None]


@settings(max_examples=500)
@given(st.sampled_from(KEYS), JSON)
@example("dtype", "|O")
@example("shape", [2**62, 0])
@example("shape", [-1])
@example("shape", [True] * 12)
@example("shape", [0] * 1000)
@example("encoding", "zlib")
@example("meta", [])
def test_a_header_of_anything_is_refused_or_says_the_same(key, value):
    header, bodies = take_apart(GOOD)
    if key is None:
        header = value
    elif key in header:
        header[key] = value
    else:
        header["members"][0][key] = value
    raw = put_together(header, bodies, adjust=key in ("kind", "meta"))
    try:
        container = read_container(raw, "model")
    except UnreadableFile:
        refusal(raw)
        return
    assert sum(array.nbytes for array in container.arrays.values()) <= len(GOOD)


ABSURD = {
    "a header nested deeply": lambda header, bodies: put_together(b"[" * 100_000, bodies),
    "a header nested a little too deeply": lambda header, bodies: put_together(
        {**header, "meta": {"a": json.loads("[" * 70 + "]" * 70)}}, bodies
    ),
    "a header that is no JSON": lambda header, bodies: put_together(b"{{{", bodies),
    "a header of numbers of 5000 digits": lambda header, bodies: put_together(b"9" * 5000, bodies),
    "one name twice": lambda header, bodies: put_together(
        {**header, "members": [header["members"][1]] * 2}, {}, adjust=False
    ),
    "a member that overlaps": lambda header, bodies: put_together(
        {**header, "members": [{**each, "offset": 0} for each in header["members"]]},
        bodies,
        adjust=False,
    ),
    "a header longer than the file": lambda header, bodies: (
        GOOD[:12] + (2**62).to_bytes(8, "little") + GOOD[20:]
    ),
    "no digests": lambda header, bodies: b"".join(
        container_pieces("model", {}, {"x": np.ones(3)}, digests=False)
    ),
}


@pytest.mark.parametrize("how", ABSURD)
def test_an_absurd_header_is_refused(how, tmp_path):
    assert "altered or cut short" in refusal(ABSURD[how](*take_apart(GOOD)), tmp_path)


def packed(claim, body):
    """A container of one packed member that claims to unpack to so many bytes."""
    entry = {"name": "x", "dtype": None, "shape": [claim], "encoding": "zlib"}
    raw = put_together({"kind": "model", "meta": {}, "members": []}, {"x": body})
    header, _ = take_apart(raw)
    header["members"] = [{**header["members"][0], **entry}]
    return put_together(header, {"x": body}, adjust=False)


@pytest.mark.parametrize("claim", [0, 999, 1001, 2**40, 2**62])
def test_a_member_that_unpacks_to_another_size_is_refused(claim, tmp_path):
    body = zlib.compress(bytes(1000))
    assert read_container(packed(1000, body), "model").blobs["x"] == bytes(1000)
    refusal(packed(claim, body), tmp_path)
    refusal(packed(1000, body + b"\0"), tmp_path)


def test_sizes_that_a_header_merely_claims_are_not_allocated(tmp_path):
    header, bodies = take_apart(GOOD)
    header["members"][0] |= {"shape": [2**30], "bytes": 2**33}
    raw = put_together(header, bodies, adjust=False)
    bomb = packed(2**33, zlib.compress(bytes(2**20)))
    tracemalloc.start()
    try:
        refusal(raw, tmp_path)
        refusal(bomb, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_a_file_that_memory_can_not_hold_is_not_read(tmp_path, monkeypatch):
    write_container(tmp_path / "m", "model", {}, {"x": bytes(10**6)}, compress=["x"])
    monkeypatch.setattr(inputs, "free_memory", lambda: 10**5)
    with pytest.raises(UnreadableFile, match="must fit into memory"):
        read_container(tmp_path / "m", "model")


# ---------------------------------------------------------------------------------- kinds and versions


@pytest.mark.parametrize(
    ("written", "wanted", "line"),
    [
        ("model", "repair", "holds a model, not a repair. Load it with OneVsRest.load."),
        ("repair", "model", "holds a repair, not a model. Load it with oddslip.load_repair."),
        ("a\nb", "model", "holds 'a\\nb', not a model."),
    ],
)
def test_another_kind_is_named_with_what_loads_it(written, wanted, line, tmp_path):
    raw = b"".join(container_pieces(written, {}, {}))
    assert refusal(raw, tmp_path, wanted) == f"the {wanted} {line}"


@pytest.mark.parametrize(
    ("start", "other"),
    [
        (START.pack(b"oddslip\0", 2, 0), "a repair"),
        (b"PK" + bytes(28) + b"model.json", "a model"),
    ],
)
def test_a_file_of_an_older_version_is_named(start, other):
    wanted = "model" if other == "a repair" else "repair"
    assert f"holds {other}, not a {wanted}" in refusal(start + bytes(80), kind=wanted)


@pytest.mark.parametrize("version", [0, 4, 2**32 - 1])
def test_an_unknown_version_is_refused(version, tmp_path):
    raw = put_together(*take_apart(GOOD), version=version)
    assert f"has format {version}, this version reads up to 3" in refusal(raw, tmp_path)


def test_members_are_not_compared_where_nobody_asks():
    raw = b"".join(container_pieces("message", {}, {"x": np.arange(3)}, digests=False))
    assert read_container(raw, "message", verify=False).arrays["x"].tolist() == [0, 1, 2]


def test_what_can_not_be_read_back_is_not_written(tmp_path):
    def check(path):
        raise UnreadableFile(f"{path} is wrong.")

    with pytest.raises(UnreadableFile, match="was not written"):
        write_container(tmp_path / "m", "model", {}, {}, check=check)
    with pytest.raises(ValueError, match="JSON"):
        write_container(tmp_path / "m", "model", {"a": float("nan")}, {})
    assert not list(tmp_path.iterdir())
