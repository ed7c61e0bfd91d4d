"""Leaf saturation, counted and measured (Tables S8 and S9)."""
