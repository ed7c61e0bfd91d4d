"""Tallies and jobs in Spark tasks; the only package that imports pyspark.

A task rebuilds a tally, adds its rows, and returns the state as plain arrays.
"""
