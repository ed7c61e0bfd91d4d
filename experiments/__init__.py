"""The paper's tables and figures, and our own studies: resumable, with provenance.

Runs from a clone: ``python -m experiments``. Nothing in `oddslip` imports it.
"""
