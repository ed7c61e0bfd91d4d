"""Files: atomic writes and locks, arrays, JSON, paths, progress bars."""
