"""Where the collapse begins, told from label counts and the booster's parameters alone."""
