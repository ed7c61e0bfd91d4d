"""Results as text, figures and HTML. Computes nothing; imports results, never raw panels."""
