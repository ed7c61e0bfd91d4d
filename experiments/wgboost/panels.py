"""Rows of the study: MULAN sets, the Santander sample, every tenth product of Ta-Feng."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from experiments.datasets.baskets.tafeng import read_tafeng
from experiments.datasets.mulan.reader import read_mulan
from experiments.datasets.recommendation import Recommendation
from experiments.datasets.santander.sample import read_santander_sample
from experiments.pairs.cells import choose_k
from experiments.pairs.protocols import draw_calibration_rows
from oddslip.core.types import Bools, Floats

TAFENG_STEP = 10  # every tenth of the 1,000 most frequent products: dead labels at a tenth the cost


class Panel(NamedTuple):
    """Features and labels of the rows to train on, to calibrate on and to judge by."""

    train: tuple[Any, Floats]
    calibration: tuple[Any, Bools]
    test: tuple[Any, Bools]
    k: int
    about: dict[str, Any]

    @property
    def prior(self) -> Floats:
        """Prevalence among the training rows."""
        return np.asarray(self.train[1].mean(axis=0))


def read_panel(name: str, data: Any = None) -> Panel:
    """Rows of a data set by name."""
    return READERS[name](data)


def _read_mulan(name: str, data: Any) -> Panel:
    rows = read_mulan(name, data=data, protocol="clean")
    X, Y = rows.X_train, rows.Y_train
    return Panel(
        train=(X[rows.fitted], Y[rows.fitted].astype(np.float64)),
        calibration=(X[rows.calibration], Y[rows.calibration]),
        test=(rows.X_test, rows.Y_test),
        k=rows.k,
        about={"inputs": rows.sha256, "protocol": rows.protocol},
    )


def _read_santander(data: Any) -> Panel:
    return _split_test(read_santander_sample(data), step=1)


def _read_tafeng(data: Any) -> Panel:
    return _split_test(read_tafeng(data), step=TAFENG_STEP)


def _split_test(rows: Recommendation, step: int) -> Panel:
    """The paper's protocol of section 3: 30% of the test rows calibrate, the rest judge."""
    X, Y = _columns(rows.test.X), rows.test.Y.toarray()[:, ::step].astype(np.bool_)
    chosen = draw_calibration_rows(rows.test.n_rows)
    return Panel(
        train=(_columns(rows.train.X), rows.train.Y.toarray()[:, ::step].astype(np.float64)),
        calibration=(X[chosen], Y[chosen]),
        test=(X[~chosen], Y[~chosen]),
        k=choose_k(rows),
        about={
            "inputs": rows.sha256,
            "settings": rows.settings,
            "protocol": "test-split",
            "step": step,
        },
    )


def _columns(X: Any) -> Any:
    return X.tocsr() if issparse(X) else np.asarray(X)


READERS: dict[str, Callable[[Any], Panel]] = {
    "santander-sample": _read_santander,
    "birds": lambda data: _read_mulan("birds", data),
    "medical": lambda data: _read_mulan("medical", data),
    "tafeng": _read_tafeng,
}
