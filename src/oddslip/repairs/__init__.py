"""What was fitted: maps of labels, the record of what became of each, files of repairs."""
