"""Tallies that several packages share: counts of cells, isotonic buckets, histograms."""
