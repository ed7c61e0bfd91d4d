"""The paper's tables and figures, and ours: resumable, cell by cell, with provenance.

Stands on top of everything and uses the public verbs, learners, datasets and reports.
"""
