"""Readers, fetchers and synthetic data: everything here only makes panels and what belongs to them.

It may import panels, errors, the writing of whole files and progress bars.
"""

from __future__ import annotations

from oddslip.datasets.arffs import Arff, read_arff
from oddslip.datasets.basket_parquets import read_baskets
from oddslip.datasets.downloads import fetch_mulan
from oddslip.datasets.files import MulanFiles, find_data
from oddslip.datasets.generated import generate_baskets, generate_instacart, generate_santander
from oddslip.datasets.instacarts import read_instacart
from oddslip.datasets.mulans import MulanData, read_mulan
from oddslip.datasets.recommendations import Period, Recommendation
from oddslip.datasets.santander_samples import read_santander_sample
from oddslip.datasets.santanders import read_santander
from oddslip.datasets.synthetic import SyntheticPair, synthetic_pair
from oddslip.datasets.synthetic_rows import synthetic_rows
from oddslip.datasets.tafengs import read_tafeng

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
