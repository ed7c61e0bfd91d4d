"""Commands as processes that may be killed at any point, started in milliseconds.

A nursery is a process that has imported all that commands use and run nothing. Each command is a
child forked from it, with a folder, an output and a group of its own; it begins like the installed
`oddslip`. Only the nursery waits for its children, so the number of one is not given anew before
its end was told.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HANG_S = 300.0
_LOADED = (
    "numpy",
    "scipy.sparse",
    "scipy.special",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.base",
    "pyarrow.parquet",
    "pyarrow.csv",
    "pyarrow.compute",
    "matplotlib",
    "lightgbm",
    "xgboost",
    "torch",
    "polars",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "rich.console",
    "rich.table",
    "rich.progress",
    "jinja2",
    "oddslip.cli.app",
    "oddslip.diagnosis.diagnose",
    "oddslip.reports.html.page",
    "oddslip.learners.backends.lightgbm",
    "oddslip.learners.scoring",
    "oddslip.selection.repair",
    "experiments.mulan.study",
    "experiments.pairs.study",
)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # negative for a signal
    seconds: float  # since it began
    told: str  # what it wrote to stderr
    shown: str  # and to stdout

    @property
    def is_one_line(self) -> bool:
        """Whether exactly one line was told, and it is ours."""
        return self.told.startswith("oddslip: ") and self.told.count("\n") == 1


class Child:
    """A command at work."""

    def __init__(self, nursery: Nursery, pid: int, streams: str) -> None:
        self.nursery, self.pid, self.streams = nursery, pid, streams
        self.began = time.monotonic()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal. Before its end was told, its number is no other's."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, seconds: float = HANG_S) -> Ended | None:
        """How it ended; None if it is still at work after so many seconds."""
        status = self.nursery.ask({"wait": self.pid, "seconds": seconds})["status"]
        took = time.monotonic() - self.began
        if status is None:
            return None
        told, shown = (Path(f"{self.streams}.{end}") for end in _STREAMS)
        return Ended(
            os.waitstatus_to_exitcode(status),
            took,
            told.read_text(encoding="utf-8", errors="replace"),
            shown.read_text(encoding="utf-8", errors="replace"),
        )

    def end(self) -> Ended:
        """How it ended, by force if it does not."""
        ended = self.wait()
        if ended is None:
            self.send(signal.SIGKILL)
            ended = self.wait()
        assert ended is not None
        return ended


_STREAMS = ("told", "shown")


class Nursery:
    """The process that children are forked from."""

    def __init__(self) -> None:
        self.streams = tempfile.TemporaryDirectory(prefix="oddslip-attack-")
        self.started = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attacks.children"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=environment(),
        )
        self.ask({})

    def ask(self, question: dict[str, Any]) -> Any:
        """Its answer, once it has one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(
        self, arguments: Sequence[str], folder: Path, *, most_bytes: int | None = None
    ) -> Child:
        """Begin a command in a folder, whose files may have so many bytes each."""
        self.started += 1
        streams = f"{self.streams.name}/{self.started}"  # not in the folder: its disk may be full
        for end in _STREAMS:  # now, as the child may be killed before it opens them
            Path(f"{streams}.{end}").touch()
        asked = {
            "arguments": list(arguments),
            "folder": str(folder),
            "streams": streams,
            "most_bytes": most_bytes,
        }
        return Child(self, self.ask({"start": asked})["pid"], streams)

    def run(self, arguments: Sequence[str], folder: Path, **limits: Any) -> Ended:
        """Run a command to its end."""
        return self.start(arguments, folder, **limits).end()


def environment() -> dict[str, str]:
    """Of a child process: this checkout and its sources can be imported."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    """A nursery that ends with the block, and its children with it."""
    opened = Nursery()
    try:
        yield opened
    finally:
        assert opened.process.stdin is not None
        assert opened.process.stdout is not None
        opened.process.stdin.close()
        opened.process.wait()
        opened.process.stdout.close()
        opened.streams.cleanup()


# --- In the nursery -------------------------------------------------------------------------------


def _serve() -> None:
    from importlib import import_module

    for name in _LOADED:
        with contextlib.suppress(ModuleNotFoundError):  # an extra that is not installed
            import_module(name)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    living: set[int] = set()
    while line := sys.stdin.readline():
        question = json.loads(line)
        answer: dict[str, Any] = {}
        if "start" in question:
            pid = os.fork()
            if pid == 0:
                _become(**question["start"])
            living.add(pid)
            answer = {"pid": pid}
        elif "wait" in question:
            status = _wait(question["wait"], question["seconds"])
            if status is not None:
                living.discard(question["wait"])
            answer = {"status": status}
        answers.write(json.dumps(answer) + "\n")
    for pid in living:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _wait(pid: int, seconds: float) -> int | None:
    until = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > until:
            return None
        time.sleep(0.002)


def _become(arguments: list[str], folder: str, streams: str, most_bytes: int | None) -> None:
    """In the child: the command, from its first line on."""
    code = 1
    try:
        for number, end in ((2, "told"), (1, "shown")):
            file = os.open(f"{streams}.{end}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(file, number)
            os.close(file)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        os.environ["PWD"] = folder
        if most_bytes is not None:
            import resource

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
        sys.argv = ["oddslip", *arguments]
        if arguments[0] == "experiments":
            del sys.argv[1]
            from experiments.__main__ import main
        else:
            from oddslip.__main__ import main

        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        # What the interpreter does at its end, less its teardown: the nursery's modules are shared.
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
