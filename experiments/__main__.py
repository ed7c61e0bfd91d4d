"""``python -m experiments``: reproduce the paper, from a clone of the repository."""

from __future__ import annotations

from oddslip.cli import interrupts


def main() -> None:
    """Run a study."""
    interrupts.run(_run)


def _run() -> int:
    from experiments.app import main

    return main()


if __name__ == "__main__":
    main()
