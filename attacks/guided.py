"""``python -m attacks.guided 100000``: Atheris on the saved-repair loader, along its branches.

Atheris is no dependency: ``pip install atheris`` where it has a wheel. It is given the header and
the arrays of good repairs, changes them as coverage grows, and seals what it made; any exception
but a refusal ends the run with a traceback and a file that repeats it.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import tempfile
from pathlib import Path

_START = struct.Struct("<8sIQ")


def main(count: int) -> None:
    """So many executions, or an end at the first finding."""
    import atheris

    with atheris.instrument_imports(include=["oddslip.calibrators", "oddslip.core.panel", "json"]):
        from oddslip import load_repair
    from attacks.repairs import make_repairs
    from oddslip.errors import OddslipError

    folder = Path(tempfile.mkdtemp(prefix="oddslip-guided-"))
    (folder / "corpus").mkdir()
    for number, raw in enumerate(make_repairs(folder)):
        (folder / "corpus" / str(number)).write_bytes(raw[:-32])
    path = folder / "changed.oddslip"

    def try_one(data: bytes) -> None:
        _, version, _ = _START.unpack(data[:20].ljust(20, b"\0"))
        body = data[20:]
        length = body.find(b"}", max(0, body.rfind(b"]]"))) + 1  # where the header may end
        sealed = _START.pack(b"oddslip\0", version % 3, length or len(body)) + body
        path.write_bytes(sealed + hashlib.sha256(sealed).digest())
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


if __name__ == "__main__":
    main(int(sys.argv[1]))
