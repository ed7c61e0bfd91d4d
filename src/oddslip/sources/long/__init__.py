"""Long tables: one line per row and label."""
