"""Names of types that many signatures share."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of any dtype
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
FilePath = str | os.PathLike[str]

# Inputs that are read at one gate and have no common base class.
ScoresLike = Any  # scores in any form that `oddslip.open_source` takes
LabelsLike = Any  # true or excluded labels in any form that `oddslip.open_source` takes
PerLabel = Any  # a number, or one number per label: an array, a mapping by name, a series, a rule
FeaturesLike = Any  # features of rows: a matrix, sparse or dense, or a frame

JsonObject = dict[str, Any]  # built-in types only
