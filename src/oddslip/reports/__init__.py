"""Results as text, figures and HTML. Computes no statistic."""
