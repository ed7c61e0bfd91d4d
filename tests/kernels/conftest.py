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
        made = [np.array(array, order="C") for array in arrays]
        for array in made:
            array.flags.writeable = False
        return made[0] if len(made) == 1 else made

    return freeze
