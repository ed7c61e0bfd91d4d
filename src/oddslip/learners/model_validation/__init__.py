"""Validation of model files, whose checksum shows that they are undamaged, not that they are safe.

LightGBM, XGBoost and our kernels follow children, features and lengths without checks. So the
contents of a file are validated completely first: the head and its groups (`head`), LightGBM's text
(`lightgbm`), XGBoost's UBJSON (`xgboost`), and coefficients, layers and the trees of scikit-learn
(`arrays`). Anything unknown raises `UnreadableFile` with one line.
"""
