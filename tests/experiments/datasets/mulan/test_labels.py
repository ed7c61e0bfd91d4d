"""Label lists are read in order, and XML that does more than list labels is refused."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.datasets.mulan.labels import read_label_list
from oddslip.errors import UnreadableFile

XMLNS = 'xmlns="http://mulan.sourceforge.net/labels"'
BOMB = '<!DOCTYPE labels [\n<!ENTITY a "aaaaaaaaaa">\n<!ENTITY b "&a;&a;&a;&a;">\n]>\n<labels><label name="&b;"/></labels>'


def write(tmp_path, text):
    path = tmp_path / "some.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_labels_come_in_order_with_and_without_a_namespace(tmp_path):
    for space in ("", XMLNS):
        text = f'<?xml version="1.0"?>\n<labels {space}>\n<label name="b"></label><label name="a b"/></labels>'
        path = write(tmp_path, text)
        assert read_label_list(path).names == ("b", "a b")
        assert read_label_list(path).sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_a_hierarchy_is_flattened_in_the_order_in_which_labels_open(tmp_path):
    text = '<labels><label name="a"><label name="b"><label name="c"/></label></label><label name="d"/></labels>'
    assert read_label_list(write(tmp_path, text)).names == ("a", "b", "c", "d")


def test_a_very_deep_hierarchy_costs_no_stack(tmp_path):
    n = 20_000
    text = "".join(f'<label name="{i}">' for i in range(n)) + "</label>" * n
    assert len(read_label_list(write(tmp_path, f"<labels>{text}</labels>")).names) == n


def test_escapes_of_xml_are_read_and_those_of_arff_are_kept(tmp_path):
    text = '<labels><label name="a&amp;b&#39;"/><label name="m\\\'usica"/></labels>'
    assert read_label_list(write(tmp_path, text)).names == ("a&b'", "m\\'usica")


HOSTILE = {
    "an entity bomb": (BOMB, 1, "must not declare"),
    "an entity bomb in another encoding": (BOMB.encode("utf-16"), 1, "must not declare"),
    "a file pulled in": (
        '<!DOCTYPE labels [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<labels/>',
        1,
        "must not declare",
    ),
    "a document type alone": (
        '\n<!DOCTYPE labels SYSTEM "x.dtd">\n<labels/>',
        2,
        "must not declare",
    ),
    "an unknown entity": ('<labels>\n<label name="&x;"/></labels>', 2, "undefined entity"),
    "a cut file": ('<labels>\n<label name="a"/>\n', 3, "no element found"),
    "no XML": ("labels: a, b", 1, "not a whole XML"),
    "nothing": ("", 1, "not a whole XML"),
    "no label": ("<labels>\n</labels>", 2, "at least one label"),
    "another element": ('<labels>\n<tag name="a"/></labels>', 2, "got <tag>"),
    "another root": ('<html><label name="a"/></html>', 1, "got <html>"),
    "no name": ("<labels>\n<label/></labels>", 2, "got <label>"),
    "a name twice": ('<labels><label name="a"/>\n<label name="a"/></labels>', 2, "'a' twice"),
    "an unknown encoding": ('<?xml version="1.0" encoding="klingon"?><labels/>', 1, "XML"),
    "bytes": (b"\xff\xd8\xff\xe0", 1, "not a whole XML"),
}


@pytest.mark.parametrize(("text", "line", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_list_is_refused_in_one_line_with_file_and_line_number(
    tmp_path, text, line, reason
):
    path = write(tmp_path, text)
    with pytest.raises(UnreadableFile) as caught:
        read_label_list(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert reason in message
    assert len(message.splitlines()) == 1


def test_a_list_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnreadableFile, match=r"none\.xml can ?not be read \("):
        read_label_list(tmp_path / "none.xml")


GOOD = f'<?xml version="1.0"?>\n<labels {XMLNS}>\n<label name="a"/>\n<label name="b"></label></labels>'.encode()


@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=8), at=st.integers(0, len(GOOD)), length=st.integers(0, 20))
def test_no_mutation_raises_anything_but_the_one_error(tmp_path_factory, noise, at, length):
    path = write(tmp_path_factory.getbasetemp(), GOOD[:at] + noise + GOOD[at + length :])
    message = None
    try:
        names = read_label_list(path).names
    except UnreadableFile as error:
        message = str(error)
    if message is None:
        assert names
    else:
        assert message.startswith(f"{path}, line ")
        assert len(message.splitlines()) == 1
