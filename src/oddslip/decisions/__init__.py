"""From calibrated probabilities to lists: thresholds, list lengths, and a guarantee."""
