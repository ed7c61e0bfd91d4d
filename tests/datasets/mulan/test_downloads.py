"""Fetched files are whole and right, or not there. No test here touches the network."""

import hashlib
import io
from http.client import IncompleteRead
from urllib.error import HTTPError, URLError

import pytest

from oddslip.datasets import fetch_mulan, read_mulan
from oddslip.datasets.mulan import files
from oddslip.datasets.mulan import files as downloads
from oddslip.datasets.mulan.files import PinnedFile, PinnedSet
from oddslip.errors import InvalidInput, UnreadableFile

ROWS = "\n".join(f"{at % 2},{at}" for at in range(80))
ARFF = f"@relation r\n@attribute red {{0,1}}\n@attribute f numeric\n@data\n{ROWS}\n".encode()
SERVED = {
    "Toy.xml": b'<labels><label name="red"/></labels>',
    "Toy-train.arff": ARFF,
    "Toy-test.arff": ARFF + b"1,5\n",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A pinned set `toy`, and a home that serves whatever the returned dictionary holds."""
    pins = [
        PinnedFile(name, len(raw), hashlib.sha256(raw).hexdigest()) for name, raw in SERVED.items()
    ]
    toy = {"toy": PinnedSet("a test", *pins)}
    served = dict(SERVED)
    asked = []

    def open_url(url):
        asked.append(url)
        answer = served[url.rpartition("/")[2]]
        if isinstance(answer, Exception):
            raise answer
        return answer if hasattr(answer, "read") else io.BytesIO(answer)

    for module in (downloads, files):
        monkeypatch.setattr(module, "PINS", toy)
    monkeypatch.setattr("oddslip.datasets.mulan.reader.PINS", toy)
    monkeypatch.setattr(downloads, "_open_url", open_url)
    monkeypatch.delenv("ODDSLIP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files.sys, "platform", "linux")
    monkeypatch.chdir(tmp_path)
    served["asked"] = asked
    return served


def test_the_three_files_come_from_the_pinned_commit_and_land_in_one_folder(home, tmp_path):
    found = fetch_mulan("Toy", into=tmp_path)
    start = "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389/data/multi-label/toy/"
    assert home["asked"] == [start + name for name in SERVED]
    assert {path.name: path.read_bytes() for path in (tmp_path / "toy").iterdir()} == SERVED
    assert found.train == tmp_path / "toy" / "Toy-train.arff"


def test_what_is_whole_is_not_fetched_again_and_what_is_altered_is(home, tmp_path):
    fetch_mulan("toy", into=tmp_path)
    home["asked"].clear()
    fetch_mulan("toy", into=tmp_path)
    assert home["asked"] == []
    path = tmp_path / "toy" / "Toy-train.arff"
    path.write_bytes(ARFF.replace(b"red", b"ret"))
    fetch_mulan("toy", into=tmp_path)
    assert len(home["asked"]) == 1
    assert path.read_bytes() == ARFF


class Breaking(io.BytesIO):
    def read(self, *_):
        raise IncompleteRead(b"@rel", 500)


FAILURES = {
    "no network": (URLError("Name or service not known"), r"could not be fetched \(Name or service not known\)\. Without a network, put Toy-train.arff into .*ODDSLIP_DATA"),
    "no such file": (HTTPError("https://x", 404, "Not Found", None, None), r"could not be fetched \(Not Found\)"),
    "no answer": (TimeoutError("timed out"), r"could not be fetched \(timed out\)"),
    "a broken line": (Breaking(), r"could not be fetched \(IncompleteRead"),
    "half a file": (ARFF[: len(ARFF) // 2], rf"must have {len(ARFF)} bytes, got {len(ARFF) // 2}\. Nothing was kept"),
    "too long a file": (ARFF * 3, rf"must have {len(ARFF)} bytes, got more than {len(ARFF)}"),
    "an altered file": (ARFF.replace(b"red", b"ret"), r"must have SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}\. Nothing was kept"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failed_fetch_says_why_in_one_line_and_leaves_no_file(home, tmp_path, answer, message):
    home["Toy-train.arff"] = answer
    with pytest.raises(UnreadableFile, match=message) as caught:
        fetch_mulan("toy", into=tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["Toy.xml"]
    home["Toy-train.arff"] = ARFF
    fetch_mulan("toy", into=tmp_path)
    assert len(home["asked"]) == 4, "the second try fetches what the first one missed"


def test_an_interrupt_leaves_no_half_file(home, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(downloads.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_mulan("toy", into=tmp_path)
    assert list((tmp_path / "toy").iterdir()) == []


def test_an_unknown_name_is_refused_with_the_known_ones(home):
    with pytest.raises(InvalidInput, match="one of toy, got 'other'"):
        fetch_mulan("other")


def test_a_folder_that_can_not_be_made_is_named(home, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnreadableFile, match="can not be made"):
        fetch_mulan("toy", into=tmp_path / "file")


def test_reading_a_known_set_fetches_it_once_into_the_cache(home, tmp_path):
    data = read_mulan("toy")
    assert (data.name, data.pinned, data.n_labels) == ("toy", True, 1)
    assert (tmp_path / "cache" / "oddslip" / "mulan" / "toy" / "Toy.xml").is_file()
    home["asked"].clear()
    read_mulan("toy")
    assert home["asked"] == []


def test_nothing_is_fetched_when_told_not_to_or_when_a_folder_is_given(home, tmp_path):
    for arguments in ({"download": False}, {"data": tmp_path}):
        with pytest.raises(UnreadableFile, match="must be a folder of"):
            read_mulan("toy", **arguments)
    assert home["asked"] == []
