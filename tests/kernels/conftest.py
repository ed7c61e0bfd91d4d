"""What kernel tests share."""

import numpy as np
import pytest


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def frozen():
    """Makes arrays read-only, as those of a memory map are: kernels must take them."""

    def freeze(*arrays):
        copies = [np.array(array, order="C") for array in arrays]
        for array in copies:
            array.flags.writeable = False
        return copies[0] if len(copies) == 1 else copies

    return freeze
