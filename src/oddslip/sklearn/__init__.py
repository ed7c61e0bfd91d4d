"""scikit-learn estimators and scorers that combine a model with its repair."""
