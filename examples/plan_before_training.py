"""
Plan before training
====================

What will a weight do? Label counts and the booster's rounds, learning rate and cap of the leaf step
tell before anything is trained.
"""

import oddslip
from oddslip.datasets import synthetic_rows

data = synthetic_rows(5000, 25, prevalence=(0.002, 0.3), seed=42)

plan = oddslip.plan(
    data.labels,
    rounds=60,
    learning_rate=0.05,
    max_delta_step=1.2,
    label_names=data.label_names,
)
print(plan.recommendation)

# %%
# ln w of every label. Orange lies beyond what 60 rounds of steps of at most 0.05 x 1.2 can reach.

figure = plan.plot()

# %%
# If the weights must stay: a cap that admits every shift.

print(f"budget {plan.budget:.1f} nat, largest intended shift {plan.intended.max():.1f} nat")
print(f"{plan.unrealizable.sum()} of {plan.n_labels} labels cannot get their shift")
print(f"smallest cap that admits all: {plan.admitting_cap:.2f}")

wider = oddslip.plan(
    data.labels, rounds=60, learning_rate=0.05, max_delta_step=1.001 * plan.admitting_cap
)
assert plan.unrealizable.any()
assert not wider.unrealizable.any()
print(f"Claim holds: {plan.unrealizable.sum()} labels beyond the budget now, 0 with that cap.")
