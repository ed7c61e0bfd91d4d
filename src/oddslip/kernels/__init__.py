"""Compiled loops over trusted arrays: keys, top-K, positives, ranks, resampling.

No validation and no classes live here, and nothing here imports another room.
"""
