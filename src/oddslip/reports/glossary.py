"""Words of the paper that reports use. docs/glossary.md explains each at more length."""

GLOSSARY = {
    "row": "One case to rank labels for: a customer, a document, a patient.",
    "label": "One thing that may be shown: a product, a tag, a diagnosis.",
    "cell": "One score: that of one label in one row.",
    "K": "The number of labels shown per row.",
    "panel": "A table of scores, one line per row and one column per label, with the true labels.",
    "prior": "The share of the training rows in which a label is true.",
    "twin": "The same model trained without weights.",
    "ln w": "The logarithm of a label's weight: the shift of its log-odds that the weight intends.",
    "odds shift": "What a weight does to the ranking when a learner realizes it exactly.",
    "slippage": "What the learner lost beyond the odds shift.",
    "what-if": "The twin with ln w added to its log-odds: an ideal weighted model.",
    "rung": "One way to rank the rows: the raw scores, a repair, or a reference to compare with.",
    "ceiling": "Isotonic maps fitted on the evaluated rows themselves: the best that maps can do.",
    "dead label": "A label that is true in no calibration row, so that no map can be fitted to it.",
    "saturated": "Stored as exactly 1.0, so that the order of such cells is lost.",
}
