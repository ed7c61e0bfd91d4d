"""Boosted models by rounds: what stopping by the raw metric costs."""
