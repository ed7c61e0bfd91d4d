"""Wasserstein gradient boosting as a learner: the third model of the paper's Table S1."""
