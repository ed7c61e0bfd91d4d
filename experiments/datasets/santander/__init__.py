"""Santander's product recommendation: raw CSV to features and labels of three periods."""
