"""MULAN's multi-label data sets: files, ARFF, label lists, and the paper's protocol."""
