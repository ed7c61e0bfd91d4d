from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.kernels import Kind

UNSIGNED: dict[np.dtype[Any], np.dtype[Any]]
LIMITS: dict[tuple[np.dtype[Any], str], int]

def keys_of(scores: NDArray[Any], kind: Kind) -> NDArray[Any]: ...
def scores_of(keys: NDArray[Any], kind: Kind) -> NDArray[Any]: ...
def largest_key(keys: NDArray[Any]) -> int: ...
