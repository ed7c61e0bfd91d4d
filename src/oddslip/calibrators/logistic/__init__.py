"""Logistic maps of the log-odds, fitted for all labels at once."""
