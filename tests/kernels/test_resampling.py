"""Poisson draws against the generator written out in Python's own integers."""

import numpy as np

from oddslip.kernels.resampling import draw_poisson

ALL = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
AT_MOST = [
    *(1580030169, 3160060337, 3950075422, 4213413783, 4279248374, 4292415292),
    *(4294609778, 4294923276, 4294962463, 4294966817, 4294967253, 4294967292),
]


def mix(z):
    z &= ALL
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
    return z ^ (z >> 31)


def draw(key, seed, replicate):
    salt = mix(mix(seed + GOLDEN) + replicate // 2 * GOLDEN)
    bits = mix(key ^ salt)
    bits = bits >> 32 if replicate % 2 else bits & (2**32 - 1)
    return sum(bits >= bound for bound in AT_MOST)


def test_draws_are_those_of_splitmix64(frozen):
    keys = np.random.default_rng(0).integers(0, 2**63, 400).astype(np.uint64)
    counts = np.full((7, 400), 9.0)
    draw_poisson(frozen(keys), 42, 4, counts)
    wanted = [[draw(key, 42, 4 + at) for key in keys.tolist()] for at in range(7)]
    np.testing.assert_array_equal(counts, wanted)
    assert counts.max() >= 5  # the rare ones too
