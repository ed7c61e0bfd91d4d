"""Fetched files are whole and right, or not there. A server of this machine stands for the home."""

import hashlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from experiments.datasets.mulan import files
from experiments.datasets.mulan.files import fetch_mulan
from experiments.datasets.mulan.reader import read_mulan
from oddslip.errors import InvalidInput, MissingDependency, UnreadableFile

ROWS = "\n".join(f"{at % 2},{at}" for at in range(80))
ARFF = f"@relation r\n@attribute red {{0,1}}\n@attribute f numeric\n@data\n{ROWS}\n".encode()
SERVED = {
    "Toy.xml": b'<labels><label name="red"/></labels>',
    "Toy-train.arff": ARFF,
    "Toy-test.arff": ARFF + b"1,5\n",
}


class Home(BaseHTTPRequestHandler):
    """Serves what the server's dictionary holds under a file's name; a number is a status."""

    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.served[self.path.rpartition("/")[2]]
        if isinstance(answer, int):
            return self.send_error(answer)
        body, size = answer if isinstance(answer, tuple) else (answer, len(answer))
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(body)
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A pinned set `toy`, and a server with ``served`` files that notes what is ``asked`` for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Home)
    server.served, server.asked = dict(SERVED), []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    pins = {f"toy/{name}": hashlib.sha256(raw).hexdigest() for name, raw in SERVED.items()}
    for module in ("files", "reader"):
        monkeypatch.setattr(f"experiments.datasets.mulan.{module}.SOURCES", {"toy": "a test"})
    monkeypatch.setattr(files, "read_registry", lambda: pins)
    monkeypatch.setattr(files, "HOME", f"http://127.0.0.1:{server.server_port}/data")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("ODDSLIP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files.sys, "platform", "linux")
    monkeypatch.chdir(tmp_path)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_home_is_one_commit():
    assert files.HOME == (
        "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389/data/multi-label"
    )


def test_the_three_files_come_from_the_home_and_land_in_one_folder(home, tmp_path):
    files = fetch_mulan("Toy", into=tmp_path)
    assert home.asked == [f"/data/toy/{name}" for name in SERVED]
    assert {path.name: path.read_bytes() for path in (tmp_path / "toy").iterdir()} == SERVED
    assert files.train == tmp_path / "toy" / "Toy-train.arff"


def test_what_is_whole_is_not_fetched_again_and_what_is_altered_is(home, tmp_path):
    fetch_mulan("toy", into=tmp_path)
    home.asked.clear()
    fetch_mulan("toy", into=tmp_path)
    assert home.asked == []
    path = tmp_path / "toy" / "Toy-train.arff"
    path.write_bytes(ARFF.replace(b"red", b"ret"))
    fetch_mulan("toy", into=tmp_path)
    assert home.asked == ["/data/toy/Toy-train.arff"]
    assert path.read_bytes() == ARFF


FAILURES = {
    "no such file": (
        404,
        r"could not be fetched \(404 .*\)\. Without a network, put Toy-train.arff into .*ODDSLIP_DATA",
    ),
    "a broken line": ((ARFF[:9], len(ARFF)), r"could not be fetched \("),
    "half a file": (
        ARFF[: len(ARFF) // 2],
        r"must have SHA-256 [0-9a-f]{64}, got other bytes\. Nothing was kept",
    ),
    "an altered file": (
        ARFF.replace(b"red", b"ret"),
        r"must have SHA-256 [0-9a-f]{64}, got other bytes",
    ),
}


# pooch leaves the socket of a broken line to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("answer", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failed_fetch_says_why_in_one_line_and_leaves_no_file(home, tmp_path, answer, message):
    home.served["Toy-train.arff"] = answer
    with pytest.raises(UnreadableFile, match=message) as caught:
        fetch_mulan("toy", into=tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["Toy.xml"]
    home.served["Toy-train.arff"] = ARFF
    fetch_mulan("toy", into=tmp_path)
    assert len(home.asked) == 4, "the second try fetches what the first one missed"


def test_without_a_network_one_line_says_what_to_do(home, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "HOME", "http://127.0.0.1:1/data")
    with pytest.raises(
        UnreadableFile, match=r"could not be fetched \(.*put Toy.xml into"
    ) as caught:
        fetch_mulan("toy", into=tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def test_an_interrupt_leaves_no_half_file(home, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.move", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_mulan("toy", into=tmp_path)
    assert list((tmp_path / "toy").iterdir()) == []


def test_without_pooch_the_advice_is_the_extra_that_brings_it(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(
        MissingDependency, match=r"needs pooch\. Run: pip install -r experiments/requirements.txt"
    ):
        fetch_mulan("toy")


def test_an_unknown_name_is_refused_with_the_known_ones(home):
    with pytest.raises(InvalidInput, match="one of toy, got 'other'"):
        fetch_mulan("other")


def test_a_folder_that_can_not_be_made_is_named(home, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnreadableFile, match=r"can ?not be made"):
        fetch_mulan("toy", into=tmp_path / "file")


def test_reading_a_known_set_fetches_it_once_into_the_cache(home, tmp_path):
    data = read_mulan("toy")
    assert (data.name, data.pinned, data.n_labels) == ("toy", True, 1)
    assert (tmp_path / "cache" / "oddslip" / "mulan" / "toy" / "Toy.xml").is_file()
    home.asked.clear()
    read_mulan("toy")
    assert home.asked == []


def test_nothing_is_fetched_when_told_not_to_or_when_a_folder_is_given(home, tmp_path):
    for arguments in ({"download": False}, {"data": tmp_path}):
        with pytest.raises(UnreadableFile, match="must be a folder of"):
            read_mulan("toy", **arguments)
    assert home.asked == []
