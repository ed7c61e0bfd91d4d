"""``python -m attacks.guided 100000``: Atheris on the saved-repair loader, along its branches.

Atheris is no dependency: ``pip install atheris`` where it has a wheel. It is given the header and
the arrays of good repairs, changes them as coverage grows, and seals what it made; any exception
but a refusal ends the run with a traceback and a file that repeats it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from attacks.containers import Bodies, put_together, take_apart

SEPARATOR = b"\n"  # between header and arrays of a corpus file


def main(count: int) -> None:
    """So many executions, or an end at the first finding."""
    import atheris

    with atheris.instrument_imports(
        include=["oddslip.repairs", "oddslip.calibrators", "oddslip.core.panel", "json"]
    ):
        from oddslip import load_repair
    from attacks.repairs import make_repairs
    from oddslip.errors import OddslipError

    folder = Path(tempfile.mkdtemp(prefix="oddslip-guided-"))
    (folder / "corpus").mkdir()
    for number, raw in enumerate(make_repairs(folder)):
        header, bodies = take_apart(raw)
        (folder / "corpus" / str(number)).write_bytes(
            json.dumps(header).encode() + SEPARATOR + b"".join(bodies.values())
        )
    path = folder / "changed.oddslip"

    def try_one(data: bytes) -> None:
        text, _, body = data.partition(SEPARATOR)
        path.write_bytes(put_together(*_parse(text, body)))
        try:
            load_repair(path)
        except OddslipError as error:
            if "\n" in str(error):
                raise AssertionError("a refusal must be one line") from error

    arguments = [
        sys.argv[0],
        f"-runs={count}",
        "-max_len=8192",
        "-timeout=20",
        "-print_final_stats=1",
    ]
    atheris.Setup([*arguments, str(folder / "corpus")], try_one)
    atheris.Fuzz()


def _parse(text: bytes, body: bytes) -> tuple[Any, Bodies]:
    """The header, and the body cut into members as far as the header lists them."""
    bodies, start = {}, 0
    try:
        header = json.loads(text)
        for entry in header["members"]:
            bodies[str(entry["name"])] = body[start : start + entry["bytes"]]
            start += entry["bytes"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return text, {"x": body}
    return header, bodies


if __name__ == "__main__":
    main(int(sys.argv[1]))
