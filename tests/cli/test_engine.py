"""--engine: what is refused before any engine starts."""

import numpy as np
import pytest

from oddslip.cli.app import main


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--engine", "dask"], "--engine must be local or spark, got 'dask'."),
        (["--row-id", "customer"], "--row-id names a column for --engine spark"),
        (["--engine", "spark"], "with --engine spark scores must be Parquet files"),
    ],
    ids=["another engine", "an id here", "not Parquet"],
)
def test_what_does_not_fit_an_engine_is_one_line(arguments, line, tmp_path, capsys):
    np.save(tmp_path / "scores.npy", np.full((2, 2), 0.5))
    assert main(["evaluate", str(tmp_path / "scores.npy"), "-k", "1", *arguments]) == 2
    output = capsys.readouterr().err
    assert line in output
    assert output.count("\n") == 1
