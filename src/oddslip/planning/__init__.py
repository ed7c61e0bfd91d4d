"""Planning: what weights will do to a training, and what they do while it goes on."""

from oddslip.planning.plan import Plan, WhatIfLoss, plan
from oddslip.planning.rounds import Rounds, RoundsRecorder, by_rounds

__all__ = ["Plan", "Rounds", "RoundsRecorder", "WhatIfLoss", "by_rounds", "plan"]
