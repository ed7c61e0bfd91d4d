"""Scores and labels in Parquet: wide, list and long tables, one file or a folder of them."""
