"""Maps from raw scores to probabilities, the dead-label policy, and the saved repair.

May import kernels, panels, tallies, sources and counting; knows nothing of metrics or shifts.
"""

