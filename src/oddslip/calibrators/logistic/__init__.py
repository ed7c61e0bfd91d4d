"""Logistic maps of the log-odds: the estimators, and how all labels are fitted at once."""
