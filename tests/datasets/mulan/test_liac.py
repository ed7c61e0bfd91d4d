"""The reader on liac-arff reads every genuine file as our own reader does."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from oddslip.datasets.mulan import arff, liac
from oddslip.datasets.mulan.files import PINS

NAMES = [file.name for each in PINS.values() for file in each.files if file.name.endswith("arff")]
NAMES += ["tmc2007-500-train.arff", "tmc2007-500-test.arff"]


@pytest.mark.parametrize("name", NAMES)
def test_both_readers_agree_on_every_genuine_file(name, genuine):
    (path,) = genuine("mulan").rglob(name)
    ours, theirs = arff.read_arff(path), liac.read_arff(path)
    assert theirs.relation == ours.relation
    assert [tuple(each) for each in theirs.attributes] == [tuple(each) for each in ours.attributes]
    assert theirs.sha256 == ours.sha256
    assert type(theirs.cells) is type(ours.cells)
    if isinstance(ours.cells, np.ndarray):
        assert_array_equal(theirs.cells, ours.cells)
    else:
        for part in ("data", "indices", "indptr"):
            assert_array_equal(getattr(theirs.cells, part), getattr(ours.cells, part))
