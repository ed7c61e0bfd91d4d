"""oddslip: has a per-label class weight broken your top-K ranker, and how to repair it."""

__version__ = "0.1.0"
