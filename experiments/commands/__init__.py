"""Commands of ``python -m experiments``, one file per group of studies."""
