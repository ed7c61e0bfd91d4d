"""Beyond per-label maps: what a ranker that sees the row adds to a repair."""
