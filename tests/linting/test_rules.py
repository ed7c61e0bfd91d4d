"""Each rule fires on code that weights labels apart, and not on its innocent twin."""

import ast
from pathlib import Path

import pytest

from oddslip.linting.lint import lint
from oddslip.linting.rules import RULES

ROOT = Path(__file__).parents[2]
RANK = "\ntop = np.argsort(-probabilities, axis=1)\n"

GUILTY = {
    "a ratio in a loop over columns": (
        "OS901",
        """
for j in range(Y.shape[1]):
    w = (Y[:, j] == 0).sum() / Y[:, j].sum()
    models.append(LGBMClassifier(scale_pos_weight=w).fit(X, Y[:, j]))
""",
    ),
    "a dict of weights by label": (
        "OS901",
        "for label in labels:\n    XGBClassifier(scale_pos_weight=weights[label])",
    ),
    "a comprehension": (
        "OS901",
        "[CatBoostClassifier(scale_pos_weight=r) for tag, r in zip(tags, ratios)]",
    ),
    "an entry of parameters": (
        "OS901",
        "for target in targets:\n    params['scale_pos_weight'] = ratio(y[target])\n    lgb.train(params, d)",
    ),
    "a dict of parameters": (
        "OS901",
        "for cls in range(n_classes):\n    lgb.train({'scale_pos_weight': ratio[cls]}, d)",
    ),
    "set_params": (
        "OS901",
        "for c in classes:\n    m = clone(model).set_params(clf__scale_pos_weight=ratio(y == c))",
    ),
    "a function that gets the label": (
        "OS901",
        "def train(label):\n    return XGBClassifier(scale_pos_weight=ratios[label])",
    ),
    "a function that a loop over labels calls": (
        "OS901",
        """
def train(X, y):
    w = (len(y) - y.sum()) / y.sum()
    return XGBClassifier(scale_pos_weight=w).fit(X, y)

models = Parallel()(delayed(train)(X, Y[label]) for label in labels)
""",
    ),
    "a method that a loop over labels calls": (
        "OS901",
        """
class Ranker:
    def fit(self, X, Y):
        for j in range(Y.shape[1]):
            self._fit_one(X, Y[:, j])

    def _fit_one(self, X, y):
        return XGBClassifier(scale_pos_weight=1 / y.mean()).fit(X, y)
""",
    ),
    "classes that are compared with the truth": (
        "OS901",
        "for k in range(7):\n    t = (y == k)\n    XGBClassifier(scale_pos_weight=(~t).sum() / t.sum())",
    ),
    "class weights in a dict": (
        "OS901",
        "for label in labels:\n    w = ratio(y[label])\n    LogisticRegression(class_weight={0: 1, 1: w})",
    ),
    "is_unbalance": ("OS902", "for label in labels:\n    LGBMClassifier(is_unbalance=True)"),
    "is_unbalance in parameters outside of the loop": (
        "OS902",
        "params = {'is_unbalance': True}\nfor label in labels:\n    lgb.train(params, d[label])",
    ),
    "auto_class_weights": (
        "OS902",
        "MultiOutputClassifier(CatBoostClassifier(auto_class_weights='Balanced'))",
    ),
    "class_weights auto": ("OS902", "OneVsRestClassifier(Booster(class_weights='auto'))"),
    "balanced in one-vs-rest": (
        "OS903",
        "OneVsRestClassifier(LogisticRegression(class_weight='balanced'))",
    ),
    "balanced in a chain": (
        "OS903",
        "base = SGDClassifier(class_weight='balanced')\nchain = ClassifierChain(base)",
    ),
    "balanced in a pipeline of a wrapper": (
        "OS903",
        """
def build():
    return make_pipeline(scaler, LogisticRegression(class_weight="balanced"))

model = MultiOutputClassifier(estimator=build())
""",
    ),
    "balanced models that are wrapped in turn": (
        "OS903",
        """
models = {"lr": LogisticRegression(class_weight="balanced")}
for name, model in models.items():
    OneVsRestClassifier(model).fit(X, Y)
""",
    ),
    "balanced by keywords": (
        "OS903",
        "kw = dict(class_weight='balanced')\nMultiOutputClassifier(RandomForestClassifier(**kw))",
    ),
    "balanced in a loop over labels": (
        "OS903",
        "for j, name in enumerate(label_names):\n    LogisticRegression(class_weight='balanced')",
    ),
    "a copy in a loop over labels": (
        "OS903",
        "m = LogisticRegression(class_weight='balanced')\nfor tag in tags:\n    clone(m).fit(X, Y[tag])",
    ),
    "computed weights of rows": (
        "OS903",
        "for label in labels:\n    w = compute_sample_weight('balanced', Y[label])",
    ),
    "a vector of positive weights": (
        "OS904",
        "w = (len(Y) - Y.sum(axis=0)) / Y.sum(axis=0)\nnn.BCEWithLogitsLoss(pos_weight=torch.tensor(w))",
    ),
    "a list of positive weights": (
        "OS904",
        "F.binary_cross_entropy_with_logits(z, y, pos_weight=torch.tensor([1.0, 7.5]).to(device))",
    ),
    "a function that returns a vector": (
        "OS904",
        """
def pos_weights(Y):
    positives = Y.sum(0)
    return (len(Y) - positives) / positives

loss = BCEWithLogitsLoss(pos_weight=pos_weights(Y))
""",
    ),
    "an attribute": (
        "OS904",
        """
class Trainer:
    def __init__(self, Y):
        self.weight = torch.tensor([ratio(y) for y in Y.T])

    def loss(self, z, y):
        return F.binary_cross_entropy_with_logits(z, y, pos_weight=self.weight)
""",
    ),
    "the third argument of TensorFlow": (
        "OS904",
        "tf.nn.weighted_cross_entropy_with_logits(y, z, np.array([3.0, 4.0]))",
    ),
    "an unknown weight of a multi-label loss": (
        "OS904",
        "def multilabel_loss(z, y, w):\n    return BCEWithLogitsLoss(pos_weight=w)(z, y)",
    ),
    "a raw column": (
        "OS905",
        """
for j in range(n_labels):
    if len(np.unique(y[:, j])) < 2:
        out[:, j] = scores[:, j]
    else:
        out[:, j] = IsotonicRegression().fit(scores[:, j], y[:, j]).predict(scores[:, j])
""",
    ),
    "a skipped label of a copy": (
        "OS905",
        """
out = scores.copy()
for j in range(n_labels):
    if y[:, j].sum() == 0:
        continue
    out[:, j] = IsotonicRegression().fit_transform(scores[:, j], y[:, j])
""",
    ),
    "no calibrator": (
        "OS905",
        """
for label in labels:
    if not y[label].any():
        calibrators.append(None)
        continue
    calibrators.append(LogisticRegression().fit(logits[label].reshape(-1, 1), y[label]))
""",
    ),
    "no calibrator in the other branch": (
        "OS905",
        """
for label in labels:
    if y[label].nunique() > 1:
        calibrators.append(IsotonicRegression().fit(scores[label], y[label]))
    else:
        calibrators.append(None)
""",
    ),
    "the identity": (
        "OS905",
        """
for j in range(n_labels):
    iso = IsotonicRegression()
    if len(np.unique(y[:, j])) < 2:
        iso.fit([0.0, 1.0], [0.0, 1.0])
    else:
        iso.fit(scores[:, j], y[:, j])
""",
    ),
    "a failed fit": (
        "OS905",
        """
for j in range(n_labels):
    try:
        calibrators.append(IsotonicRegression().fit(scores[:, j], y[:, j]))
    except ValueError:
        calibrators.append(None)
""",
    ),
}
INNOCENT = {
    "a binary task": "w = (y == 0).sum() / y.sum()\nXGBClassifier(scale_pos_weight=w).fit(X, y)",
    "classes of a binary task": "XGBClassifier(scale_pos_weight=weights[0] / weights[1])",
    "folds": "for train, test in kf.split(X, y):\n    XGBClassifier(scale_pos_weight=ratio(y[train]))",
    "trials": "for t in range(9):\n    w = ratio(sample(y))\n    XGBClassifier(scale_pos_weight=w)",
    "a grid": "grid = {'scale_pos_weight': [1, 5, 25]}\nGridSearchCV(XGBClassifier(), grid).fit(X, y)",
    "models": "for name, model in models.items():\n    w = 3 * y.mean()\n    model.set_params(scale_pos_weight=w)",
    "one number for all labels": "for label in labels:\n    LGBMClassifier(scale_pos_weight=10)",
    "one ratio for all labels": (
        "w = (Y == 0).sum() / Y.sum()\nfor label in labels:\n    LGBMClassifier(scale_pos_weight=w)"
    ),
    "one ratio in a wrapper": "MultiOutputClassifier(XGBClassifier(scale_pos_weight=ratio))",
    "no unbalance": "for label in labels:\n    LGBMClassifier(is_unbalance=False)",
    "one unbalanced model": "LGBMClassifier(is_unbalance=True).fit(X, y)",
    "one balanced CatBoost": "CatBoostClassifier(auto_class_weights='Balanced').fit(X, y)",
    "one model with several classes": "RandomForestClassifier(class_weight='balanced').fit(X, y)",
    "a wrapper without weights": "OneVsRestClassifier(LogisticRegression(class_weight=None))",
    "one model that is measured per class": """
model = RandomForestClassifier(class_weight="balanced").fit(X, y)
scores = model.predict_proba(X)
for j in range(n_classes):
    roc_auc_score(y == j, scores[:, j])
""",
    "another function with the same name": """
def one(X, Y):
    model = LogisticRegression()
    return OneVsRestClassifier(model).fit(X, Y)

def two(X, y):
    model = LogisticRegression(class_weight="balanced")
    return model.fit(X, y)
""",
    "labels of batches": (
        "for inputs, labels in loader:\n    w = ratio(labels)\n    XGBClassifier(scale_pos_weight=w)"
    ),
    "a number": "nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.2]).to(device))",
    "a ratio": "w = (y == 0).sum() / (y == 1).sum()\nnn.BCEWithLogitsLoss(pos_weight=torch.tensor(w))",
    "the weight of one class": "w = torch.tensor([a, b])\nBCEWithLogitsLoss(pos_weight=w[1])",
    "equal entries": "BCEWithLogitsLoss(pos_weight=torch.tensor([2.0, 2.0, 2.0]))",
    "ones": "BCEWithLogitsLoss(pos_weight=5 * torch.ones([64]))",
    "a limited ratio": "BCEWithLogitsLoss(pos_weight=torch.tensor([min(neg / len(y), 8.0)]))",
    "an unknown weight": "def loss(z, y, w):\n    return BCEWithLogitsLoss(pos_weight=w)(z, y)",
    "a weight of something else": "cost(pos_weight=np.array([1.0, 2.0]))",
    "a prior for dead labels": """
out = scores.copy()
for j in range(n_labels):
    if y[:, j].sum() == 0:
        out[:, j] = prior[j]
        continue
    out[:, j] = IsotonicRegression().fit_transform(scores[:, j], y[:, j])
""",
    "zero for dead labels": """
out = np.zeros(shape)
for j in range(n_labels):
    if y[:, j].sum() == 0:
        continue
    out[:, j] = IsotonicRegression().fit_transform(p_j, y[:, j])
""",
    "an error for dead labels": """
for j in range(n_labels):
    if y[:, j].sum() == 0:
        raise ValueError(scores)
    out[:, j] = IsotonicRegression().fit_transform(scores[:, j], y[:, j])
""",
    "all calibrated or none": """
for j in range(n_labels):
    if y[:, j].sum() == 0:
        calibrators.append(None)
        continue
    calibrators.append(IsotonicRegression().fit(scores[:, j], y[:, j]))
if all(c is not None for c in calibrators):
    apply(calibrators)
""",
    "labels that cannot be trained": """
for label in labels:
    if Y[label].nunique() < 2:
        models.append(None)
        continue
    models.append(LogisticRegression().fit(X, Y[label]))
""",
}


@pytest.fixture
def codes(tmp_path):
    def find(text):
        path = tmp_path / "code.py"
        path.write_text(text, encoding="utf-8")
        return [(each.code, each.severity) for each in lint([path]).findings]

    return find


@pytest.mark.parametrize("what", GUILTY)
def test_a_weight_per_label_is_a_note_and_with_a_ranking_a_warning(codes, what):
    code, text = GUILTY[what]
    ast.parse(text)
    assert codes(text) == [(code, RULES[code].severity)]
    assert codes(text + RANK) == [(code, "warning")]


@pytest.mark.parametrize("what", INNOCENT)
def test_an_innocent_twin_is_not_reported(codes, what):
    ast.parse(INNOCENT[what])
    assert codes(INNOCENT[what] + RANK) == []


def test_every_rule_is_tried():
    assert {code for code, _ in GUILTY.values()} == set(RULES) - {"OS900"}


RANKINGS = [
    "probs.argsort()",
    "np.argpartition(scores, -k, axis=-1)",
    "torch.topk(logits, 5)",
    "model(x).topk(3, dim=1)",
    "np.argmax(model.predict_proba(X), axis=1)",
    "outputs.argmax(dim=1)",
    "predictions.nlargest(3)",
    "sorted(labels, key=lambda label: -probabilities[label])",
    "heapq.nlargest(3, scores)",
    "ndcg_score(Y, P, k=5)",
    "label_ranking_average_precision_score(Y, P)",
    "precision_at_k(Y, P)",
]
OTHER_SORTS = [
    "np.argsort(model.feature_importances_)",
    "np.argsort(scores, axis=0)",
    "y_test.argmax(axis=1)",
    "np.argmax(f1_scores)",
    "sorted(results, key=lambda r: r[1])",
    "series.nlargest(20)",
    "np.argsort(dates)",
]
WEIGHTED = GUILTY["balanced in one-vs-rest"][1] + "\n"


@pytest.mark.parametrize("ranking", RANKINGS)
def test_a_ranking_makes_a_warning(codes, ranking):
    assert codes(WEIGHTED + ranking) == [("OS903", "warning")]


@pytest.mark.parametrize("other", OTHER_SORTS)
def test_another_sort_makes_none(codes, other):
    assert codes(WEIGHTED + other) == [("OS903", "note")]


def test_every_code_has_its_section_and_each_section_a_code():
    page = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    sections = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## OS")]
    assert sections == list(RULES)
