"""`panel_from`: a panel from a model someone has already, margins wherever there are margins.

Which library a model comes from is read off its class; none is loaded that the model did not
load itself. Every model becomes a `Scorer`, which says what it returns and how many features it
wants; several models become one scorer of their columns.
"""

from oddslip.adapters.panel import ModelReader, panel_from

__all__ = ["ModelReader", "panel_from"]
