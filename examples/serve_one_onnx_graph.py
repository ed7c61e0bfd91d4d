"""
Serve boosters and repair as one ONNX graph
===========================================

How do I serve the models and the repair together? The trees of all labels become one node that
gives margins, and the repair's graph takes those. Trees in ONNX are float32, which is a trap;
`oddslip.serving.trees_graph` avoids it.
"""

import lightgbm
import numpy as np
import onnxruntime
from matplotlib.figure import Figure
from onnx import compose

import oddslip
from oddslip.serving import repair_graph, trees_graph

rng = np.random.default_rng(0)
features = rng.normal(size=(4000, 6)).round(2).astype(np.float32)  # float32, as the graph has them
truth = rng.random((4000, 8)) < 1 / (1 + np.exp(3 - features @ rng.normal(size=(6, 8))))
train, calibration = slice(0, 1500), slice(1500, 3000)
setting = {"objective": "binary", "verbose": -1, "scale_pos_weight": 20.0, "num_threads": 1}
boosters = [
    lightgbm.train(setting, lightgbm.Dataset(features[train], y), 40) for y in truth[train].T
]


def run(model):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"features": features})


trees = trees_graph(boosters)
margins = run(trees)[0]
exact = np.column_stack([booster.predict(features, raw_score=True) for booster in boosters])
off = np.abs(margins - exact).max()
print(f"margins of the graph differ from LightGBM's by at most {off:.1g}")

# %%
# The repair is fitted on the graph's margins, not on LightGBM's, and joined to it:

repair = oddslip.Repair(k=3, kind="margin").fit(margins[calibration], truth[calibration])
whole = compose.merge_models(
    trees, repair_graph(repair, k=3, scores="float32"), io_map=[("margins", "scores")]
)
_, top, shown = run(whole)

# %%
# Probabilities of the labels shown, slot by slot, on fresh rows:

figure = Figure(figsize=(6, 3), layout="constrained")
axes = figure.subplots()
axes.hist(shown[3000:], bins=25, label=["first", "second", "third"])
axes.set(xlabel="calibrated probability", ylabel="rows", title="what is shown in each slot")
axes.legend()
figure  # noqa: B018

# %%

assert np.array_equal(top, repair.rank(margins))
assert off < 1e-5
size = len(whole.SerializeToString())
print(f"Claim holds: one graph of {size:,} bytes ranks {len(top):,} rows as the repair does.")
