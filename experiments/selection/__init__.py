"""Which rule: every candidate and every rule on the arms of the other studies."""
