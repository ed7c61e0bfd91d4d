"""Readers, downloads and generators of the data sets of the studies."""
