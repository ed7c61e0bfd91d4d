"""Every threshold a finding or a verdict depends on, by name. None of them enters a number.

They say when a number is worth a sentence. The paper draws no sharp lines either: its regimes are
an empirical association (Section 3), and it found no safe count of calibration positives.
"""

from __future__ import annotations

# A difference in the metric at K is material from this share of the better of the two on.
MATERIAL = 0.01

# What scores say within a label.
FAINT = 0.6  # an AUC about chance that may reach this far is not called absent
CLEAR = 0.44  # of a lead: an interval from there on is some 3.5 standard errors above 0
UNLIKE = 0.2  # a rank correlation surely below it may be that of a twin with other rows
# A twin has its columns in another order if this share of its labels lead by so much with another
# column, and correlate so much with it. Set on 14 pairs of MULAN, each as it is (no label leads)
# and shuffled (half of the labels or more); a saturated pair has 4 of 13, which correlate by 0.26.
MOVED_SHARE, MOVED_LEAD, MOVED_CORRELATION = 0.4, 0.2, 0.4
SHUFFLED_Z = 4.0  # standard deviations of shuffled rows' correlation: above, rows are the same

# Cells at exactly 1.0.
SATURATED_SHARE = 1e-4  # of all cells: "essentially none" below it
TIED_SHARE = 0.05  # of the evaluated rows decided by ties
TIE_RESIDUE = 0.05  # of the loss: below it, ties cost nothing a per-label map does not return

# Realized over intended shift.
FELL_SHORT = 0.8  # a label below it fell short
SHORT_LABELS = 0.1  # share of labels that fell short, from which on we say so
NEAR = (0.8, 1.25)  # a median ratio inside counts as near the intended shift
UNKNOWN_LABELS = 0.05  # share of weighted labels whose shift cannot be read

# Weights held against the label-free shifts, label by label.
MIN_LABELS = 5  # whose shift can be read; fewer say nothing of a line through them
UNTRACED = 0.15  # of the size of ln w: smaller shifts are no trace of the weights
RELATED = 0.5  # a correlation from which on shifts and ln w go together, or against each other
OVERSHOT = 0.5  # nat beyond ln w, which no learner that falls short of it explains
OVERSHOOTING = 0.15  # share of labels that overshot, from which on the weights are not theirs

# Inputs that contradict one another.
LOGARITHMS = 0.4  # of the weights' size: shifts that fit the weights themselves so closely
UNSHIFTED = 0.25  # nat: labels that fit their prevalence so closely carry no shift
SWAPPED_SLOPE = 0.3  # of ln w: what the twin has above the scores, from which on it carries it
MIN_UNIT_CELLS = 1000  # margins, all between 0 and 1, from which on that is no chance
MIN_LEAKED_POSITIVES = 50  # all above every negative of their label, likewise

# Share of the loss from which on a repair counts as having regained it.
REGAINED = 0.5

# Dead labels and scarce positives.
TAKEN_ROWS = 0.01  # share of rows in which dead labels take slots
IDENTITY_KEEPS = 0.5  # share of isotonic's gain; a takeover that leaves less is in the verdict
SCARCE_POSITIVES = 10  # calibration positives below which a per-label map is a guess
SCARCE_LABELS = 0.5  # share of labels that scarce, from which on we say so
UNSEEN_POSITIVES = 0.005  # share of evaluation positives on labels without calibration positives

# Calibration rows against evaluated rows.
DRIFT_Z = 4.0  # standard errors
DRIFT_RATIO = 1.5  # factor between the two prevalences
DRIFT_SHARE = 0.05  # of the positives held by drifted labels: worth a finding
DRIFT_RULES = 0.2  # of the positives held by drifted labels: the verdict itself
SHARED_ROWS = 0.01  # share of calibration rows that are evaluated too
SAME_ROWS = 0.5  # of the calibration rows, equal to evaluated ones: no chance, ids or not

# Weights closer than this factor are common to all labels.
COMMON_WEIGHT = 1 + 1e-9


def conditions_hold(ratio: float | None, saturated_share: float) -> bool:
    """Both conditions of the paper's regime picture: shift realized, nothing saturated.

    An association: they explain or predict what the inversion does, and never decide it.
    """
    realized = ratio is not None and NEAR[0] <= ratio <= NEAR[1]
    return realized and saturated_share <= SATURATED_SHARE
