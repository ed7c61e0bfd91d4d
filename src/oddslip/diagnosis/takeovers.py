"""Dead-label takeover: slots that labels without a map win when they keep their raw score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.results import plain


@dataclass(frozen=True, slots=True, eq=False)
class Takeover:
    """What the identity policy hands to dead labels, against the prior policy.

    ``n_rows`` rows show more dead labels than under the prior; ``slots`` counts, per label, the
    rows in which a dead label is shown under the identity policy.
    """

    n_dead: int
    n_rows: int
    slots: NDArray[np.int64]

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {"n_dead": self.n_dead, "n_rows": self.n_rows, "n_slots": int(self.slots.sum())}
        )


def find_takeover(
    identity: NDArray[np.int32], prior: NDArray[np.int32], dead: NDArray[np.bool_]
) -> Takeover:
    """Compare the two rankings of the same rows.

    Examples
    --------
    >>> found = find_takeover(np.array([[1]]), np.array([[0]]), np.array([False, True]))
    >>> found.n_rows, found.slots
    (1, array([0, 1]))
    """
    shown = dead[identity]
    risen = shown.sum(axis=1) > dead[prior].sum(axis=1)
    return Takeover(
        n_dead=int(dead.sum()),
        n_rows=int(risen.sum()),
        slots=np.bincount(identity[shown], minlength=dead.size),
    )
