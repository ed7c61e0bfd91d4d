"""``python -m experiments``: reproduce the paper, from a clone of the repository."""

from __future__ import annotations

from oddslip.cli import stopping


def main() -> None:
    """Run a study."""
    stopping.run(_run)


def _run() -> int:
    from experiments.app import main

    return main()


if __name__ == "__main__":
    main()
