"""Compiled loops over trusted arrays: keys, top-K, hits, positives, resampling and more.

No validation and no classes live here, and nothing here imports another room. Importing this
package is cheap; numba is loaded with the first kernel.
"""

from typing import Literal

Kind = Literal["probability", "margin"]
