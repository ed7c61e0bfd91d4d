"""What each stage of a study took: seconds, CPU seconds and peak memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

Stages = dict[str, dict[str, float]]


def peak_memory() -> int:
    """The most memory this process ever held, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    told = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return told if sys.platform == "darwin" else told * 1024


@contextmanager
def stage(log: Stages, name: str) -> Iterator[None]:
    """Add to ``log`` what the block takes. A stage entered twice adds up.

    Peak memory is that of the process until the end of the stage, earlier stages included.

    Examples
    --------
    >>> log = {}
    >>> with stage(log, "read"):
    ...     pass
    >>> sorted(log["read"])
    ['cpu_seconds', 'peak_memory_mb', 'seconds']
    """
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        before = log.get(name, {"seconds": 0.0, "cpu_seconds": 0.0})
        log[name] = {
            "seconds": round(before["seconds"] + time.perf_counter() - wall, 2),
            "cpu_seconds": round(before["cpu_seconds"] + time.process_time() - cpu, 2),
            "peak_memory_mb": round(peak_memory() / 2**20, 1),
        }
