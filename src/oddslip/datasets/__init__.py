"""Readers, fetchers and synthetic data: everything here only makes panels and what belongs to them.

It may import panels, errors, the writing of whole files and progress bars.
"""

from __future__ import annotations

from oddslip.datasets.baskets.instacart import read_instacart
from oddslip.datasets.baskets.table import read_baskets
from oddslip.datasets.baskets.tafeng import read_tafeng
from oddslip.datasets.generated import generate_baskets, generate_instacart, generate_santander
from oddslip.datasets.mulan.arff import Arff, read_arff
from oddslip.datasets.mulan.files import MulanFiles, fetch_mulan, find_data
from oddslip.datasets.mulan.reader import MulanData, read_mulan
from oddslip.datasets.recommendation import Period, Recommendation
from oddslip.datasets.santander.reader import read_santander
from oddslip.datasets.santander.sample import read_santander_sample
from oddslip.datasets.synthetic import SyntheticPair, synthetic_pair, synthetic_rows

__all__ = [
    "Arff",
    "MulanData",
    "MulanFiles",
    "Period",
    "Recommendation",
    "SyntheticPair",
    "fetch_mulan",
    "find_data",
    "generate_baskets",
    "generate_instacart",
    "generate_santander",
    "read_arff",
    "read_baskets",
    "read_instacart",
    "read_mulan",
    "read_santander",
    "read_santander_sample",
    "read_tafeng",
    "synthetic_pair",
    "synthetic_rows",
]
