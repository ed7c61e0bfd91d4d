"""Results as text, figures and HTML. Computes nothing; imports results, never raw panels.

From sources it takes the writing of whole files alone.
"""
