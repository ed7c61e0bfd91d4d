"""What a diagnosis reads off the rows: rungs, shifts, drift and signal, here or keyed in tasks."""
