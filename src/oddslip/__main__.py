"""``python -m oddslip`` is the `oddslip` command."""

from oddslip.cli import interrupts


def main() -> None:
    """Entry point. Signal handlers are installed before the parser is loaded."""
    interrupts.run(_run)


def _run() -> int:
    from oddslip.cli.app import main

    return main()


if __name__ == "__main__":
    main()
