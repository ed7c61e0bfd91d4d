"""The figure class. It inherits from matplotlib's, so it is imported only to draw."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

SCREEN_DPI = 110


class Canvas(Figure):
    """A matplotlib figure without pyplot, so it needs no display and no closing."""

    def _repr_png_(self) -> bytes:
        """The picture for notebooks, which otherwise only show figures of pyplot."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=SCREEN_DPI)
        return buffer.getvalue()
