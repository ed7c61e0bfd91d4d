"""``python -m oddslip`` is the `oddslip` command."""

from oddslip.cli.app import main

main()
