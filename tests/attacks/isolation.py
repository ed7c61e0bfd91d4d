"""Cases run one after another in a child process, which may die of any of them.

A module with a function ``attack(case)`` names its cases; the child imports it by path, runs one
case per line of its input and answers with what happened. If it dies or hangs, that is the
answer, and a new child goes on with the next case.
"""

import importlib.util
import json
import os
import select
import subprocess
import sys
from pathlib import Path

REFUSALS = ("InvalidInput", "UnreadableFile")


def run_cases(path, cases, *, seconds=60.0, environment=None):
    """What became of each case: "passed ...", "refused ...", "raised ...", "signal ...", "hung"."""
    child, outcomes = None, []
    try:
        for case in cases:
            child = child or _start(path, environment)
            child.stdin.write(json.dumps(case) + "\n")
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], seconds)
            line = child.stdout.readline() if ready else ""
            if line:
                outcomes.append(json.loads(line))
                continue
            if ready:
                code = child.wait()
                outcomes.append(f"signal {-code}" if code < 0 else f"exit {code}")
            else:
                outcomes.append("hung")
            _end(child)
            child = None
    finally:
        if child is not None:
            _end(child)
    return outcomes


def _start(path, environment):
    return subprocess.Popen(
        [sys.executable, __file__, str(path)],
        text=True,
        bufsize=1,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
    )


def _end(child):
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def outcome_of(attack, case):
    """What an attack came to, as one line."""
    try:
        return f"passed {attack(case)}"
    except MemoryError:
        return "raised MemoryError"
    except Exception as error:
        name = type(error).__name__
        lines = str(error).count("\n")
        if name in REFUSALS and not lines:
            return f"refused {name}: {error}"
        return f"raised {name}: {str(error)[:200]!r}"


def _serve(path):
    # Libraries write where they like; answers go through a copy of the true output.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for line in sys.stdin:
        answers.write(json.dumps(outcome_of(module.attack, json.loads(line))) + "\n")


if __name__ == "__main__":
    _serve(sys.argv[1])
