"""A model file with a right checksum is still a stranger's file.

A checksum says that a file was not damaged, not that it is well meant. LightGBM, XGBoost and our
kernels follow children, features and lengths without a look, so what a file says is checked
completely before they see it: the head and its groups (`head`), LightGBM's text (`lightgbm`),
XGBoost's UBJSON (`xgboost`), coefficients and layers (`arrays`), and the shape of any tree
(`trees`). What is unknown here is refused, in one line.
"""
