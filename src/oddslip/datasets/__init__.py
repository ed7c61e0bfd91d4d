"""Readers, fetchers and synthetic data: everything here only makes panels and what belongs to them.

It may import panels and errors, and nothing else of ours.
"""

from __future__ import annotations

from oddslip.datasets.synthetic import SyntheticPair, synthetic_pair

__all__ = ["SyntheticPair", "synthetic_pair"]
