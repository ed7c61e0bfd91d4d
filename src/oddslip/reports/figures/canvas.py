"""The figure that everything is drawn on. It needs its parent, so it is imported when drawn."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

SCREEN_DPI = 110


class Canvas(Figure):
    """A matplotlib figure that no pyplot knows, so it needs no display and no closing."""

    def _repr_png_(self) -> bytes:
        """Notebooks show figures made by pyplot; this one brings its picture along."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=SCREEN_DPI)
        return buffer.getvalue()
