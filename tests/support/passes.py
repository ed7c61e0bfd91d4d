"""Computations in passes as plain functions of a source."""

from oddslip.core.passes import run


def plain(computation):
    """A function that runs the passes of this computation over the source it is given."""

    def run_over(source, *arguments, **options):
        return run(source, computation(source, *arguments, **options))

    return run_over
