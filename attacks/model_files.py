"""Good models of every learner, what is in their files, and crafted ones with wrong contents."""

import functools
import hashlib
import io
import json
import re
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from attacks.containers import put_together, take_apart

HEAD = "model.json"
N_ROWS, N_FEATURES, N_LABELS = 240, 5, 3


def make_rows():
    """Rows of which the last label is never true."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    Y = X @ rng.normal(size=(N_FEATURES, N_LABELS)) + rng.logistic(size=(N_ROWS, N_LABELS)) > 1
    Y[:, -1] = False
    return X, Y


QUICK = {
    "lightgbm": {"num_iterations": 3, "num_leaves": 6},
    "linear": {"num_iterations": 2, "num_leaves": 4, "linear_tree": True},
    "xgboost": {"n_estimators": 3, "max_depth": 3},
    "dart": {"n_estimators": 3, "max_depth": 2, "booster": "dart"},
    "logistic": {},
    "mlp": {"hidden": [4], "epochs": 1},
}


@functools.cache
def saved(name):
    """Head and groups of a good model."""
    from oddslip.learners import OneVsRest

    learner = {"linear": "lightgbm", "dart": "xgboost"}.get(name, name)
    mode = {"mode": "exact"} if name == "linear" else {}
    model = OneVsRest(learner, parameters=QUICK[name], threads=1, **mode).fit(*make_rows())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        header, bodies = take_apart(path.read_bytes())
    return {HEAD: json.dumps(header["meta"]).encode(), **bodies}


def seal(path, head, groups):
    """Write a model whose checksums are right, whatever it says."""
    header = {"kind": "model", "meta": head, "members": []}
    path.write_bytes(put_together(head if isinstance(head, bytes) else header, groups))


def seal_older(path, head, groups):
    """The same, as versions 0.1 and 0.2 wrote it: a ZIP archive."""
    if isinstance(head, dict):
        digests = {name: hashlib.sha256(body).hexdigest() for name, body in groups.items()}
        head = {"format": 1, "sha256": digests, **head}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(HEAD, head if isinstance(head, bytes) else json.dumps(head))
        for name, body in groups.items():
            archive.writestr(name, body)


def use(head, groups, write=seal):
    """Seal a model, load it, and score rows with it."""
    from oddslip.learners import OneVsRest

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.oddmodel")
        write(path, head, groups)
        model = OneVsRest.load(path)
    return float(score_rows(model).sum())


def score_rows(model):
    """Margins of rows, which must be the same for few and many, and of sparse rows finite too."""
    import scipy.sparse as sp

    X, _ = make_rows()
    if model.n_features_in_ != N_FEATURES:
        X = np.zeros((3, model.n_features_in_))
    few = model.predict_margin(X[:50])
    many = model.predict_margin(np.tile(X, (5, 1)))
    model.predict_margin(sp.csr_matrix(X))
    if not np.array_equal(few, many[:50]) or not np.isfinite(many).all():
        raise AssertionError("the same rows must have the same finite scores")
    return few


# --- LightGBM's text ------------------------------------------------------------------------------


def split_group(body):
    """The line of JSON and the text that follows."""
    line, _, text = body.partition(b"\n")
    return json.loads(line), text.decode()


def join_group(line, text, *, resize=True):
    """A group of one Booster, with its length and its tree sizes put right."""
    if resize:
        text = retell_sizes(text)
    raw = text.encode("latin-1", "replace")
    if resize:
        line = {**line, "lengths": [len(raw)]}
    return json.dumps(line).encode() + b"\n" + raw


def retell_sizes(text):
    """The text with ``tree_sizes`` as LightGBM would count them."""
    head, cut, rest = text.partition("\n\nTree=0")
    body, end, tail = ("Tree=0" + rest).partition("end of trees")
    if not cut or not end:
        return text
    sizes = " ".join(str(len(tree)) for tree in re.split(r"(?=^Tree=)", body, flags=re.M) if tree)
    head = re.sub(r"tree_sizes=.*", f"tree_sizes={sizes}", head)
    return f"{head}\n\n{body}{end}{tail}"


def line_of(key, value, tree=0):
    """Replace a line, the tree-th of its key; a function is told the old numbers."""

    def change(text):
        found = list(re.finditer(rf"^{key}=(.*)$", text, re.M))[tree]
        old = found[1].split(" ")
        new = value(old) if callable(value) else value
        new = " ".join(map(str, new)) if isinstance(new, list) else str(new)
        return text[: found.start()] + f"{key}={new}" + text[found.end() :]

    return change


def number(key, at, value, tree=0):
    """Replace one number of a line."""
    return line_of(key, lambda old: [*old[:at], value, *old[at + 1 :]], tree)


def both(*changes):
    """One change after another."""
    return lambda text: functools.reduce(lambda told, change: change(told), changes, text)


def replace(old, new):
    """Replace some text that must be there, once."""

    def change(text):
        assert old in text, old
        return text.replace(old, new, 1)

    return change


def drop_line(key):
    """Leave the first line of a key out."""
    return lambda text: re.sub(rf"^{key}=.*\n", "", text, count=1, flags=re.M)


TEXTS = {
    "left child a billion": number("left_child", 0, 10**9),
    "left child out of range": number("left_child", 1, 77),
    "right child out of range": number("right_child", 0, 77),
    "right child far below zero": number("right_child", 0, -(10**9)),
    "leaf out of range": number("right_child", 0, -40),
    "child beyond 32 bits": number("left_child", 0, 2**32 + 1),
    "root its own child": number("left_child", 0, 0),
    "node its own child": number("left_child", 1, 1),
    "node child of its child": number("left_child", 2, 1),
    "both children alike": lambda text: line_of(
        "right_child", re.search(r"left_child=(.*)", text)[1]
    )(text),
    "leaf reached twice": number("left_child", 4, -1),
    "feature out of range": number("split_feature", 0, N_FEATURES),
    "feature a billion": number("split_feature", 0, 10**9),
    "feature below zero": number("split_feature", 0, -1),
    "feature beyond 32 bits": number("split_feature", 0, 2**32),
    "too many leaves": line_of("num_leaves", 1000),
    "too few leaves": line_of("num_leaves", 2),
    "no leaves": line_of("num_leaves", 0),
    "leaves below zero": line_of("num_leaves", -5),
    "leaves beyond 32 bits": line_of("num_leaves", 2**32 + 6),
    "two billion leaves": line_of("num_leaves", 2**31 - 1),
    "one leaf with nodes": line_of("num_leaves", 1),
    "a category from nowhere": number("decision_type", 0, 1),
    "unknown decision": number("decision_type", 0, 127),
    "decision below zero": number("decision_type", 0, -3),
    "categories without bounds": line_of("num_cat", 3),
    "a million categories": both(
        line_of("num_cat", 10**6),
        replace("is_linear=", "cat_boundaries=0 1\ncat_threshold=1\nis_linear="),
        number("decision_type", 0, 1),
    ),
    "category bounds too far": both(
        line_of("num_cat", 1),
        number("decision_type", 0, 1),
        number("threshold", 0, 0),
        replace("is_linear=", "cat_boundaries=0 9000000\ncat_threshold=1\nis_linear="),
    ),
    "category index too far": both(
        line_of("num_cat", 1),
        number("decision_type", 0, 1),
        number("threshold", 0, 99999),
        replace("is_linear=", "cat_boundaries=0 1\ncat_threshold=1\nis_linear="),
    ),
    "threshold not a number": number("threshold", 0, "nan"),
    "threshold infinite": number("threshold", 0, "inf"),
    "threshold beyond float": number("threshold", 0, "1e999"),
    "threshold text": number("threshold", 0, "x" * 40),
    "leaf not a number": number("leaf_value", 0, "nan"),
    "leaf infinite": number("leaf_value", 0, "-inf"),
    "leaves too few": line_of("leaf_value", lambda old: old[:-1]),
    "leaves too many": line_of("leaf_value", lambda old: [*old, 1]),
    "thresholds too few": line_of("threshold", lambda old: old[:-2]),
    "children too few": line_of("left_child", lambda old: old[:-2]),
    "features too few": line_of("split_feature", lambda old: old[:1]),
    "decisions too few": line_of("decision_type", lambda old: old[:1]),
    "counts too few": line_of("internal_count", lambda old: old[:1]),
    "a weight of a sign": number("leaf_weight", 1, "-"),
    "a weight beyond float": number("leaf_weight", 1, "1e999"),
    "a leaf below the range of float": number("leaf_value", 1, "1e-320"),
    "a leaf far below the range of float": number("leaf_value", 1, "-1e-999"),
    "a threshold below the range of float": number("threshold", 0, "1e-310"),
    "a gain of a dot": number("split_gain", 0, "."),
    "a count of text": number("leaf_count", 0, "e"),
    "no children": drop_line("left_child"),
    "no leaf values": drop_line("leaf_value"),
    "no thresholds": drop_line("threshold"),
    "children twice": replace("left_child=", "left_child=0\nleft_child="),
    "linear without slopes": line_of("is_linear", 1),
    "linear beyond features": both(
        line_of("is_linear", 1),
        replace(
            "shrinkage=",
            "leaf_const=0 0 0 0 0 0\nnum_features=1 0 0 0 0 0\nleaf_features=900\n"
            "leaf_coeff=1\nshrinkage=",
        ),
    ),
    "linear counts below zero": both(
        line_of("is_linear", 1),
        replace(
            "shrinkage=",
            "leaf_const=0 0 0 0 0 0\nnum_features=-1 0 0 0 0 0\nleaf_features=\n"
            "leaf_coeff=\nshrinkage=",
        ),
    ),
    "fewer classes than trees": line_of("num_class", 1),
    "more classes than trees": line_of("num_class", 1000),
    "more trees per round": line_of("num_tree_per_iteration", 5),
    "no trees per round": line_of("num_tree_per_iteration", 0),
    "trees per round below zero": line_of("num_tree_per_iteration", -2),
    "a billion classes": both(
        line_of("num_class", 10**9), line_of("num_tree_per_iteration", 10**9)
    ),
    "fewer features": line_of("max_feature_idx", 1),
    "more features": line_of("max_feature_idx", 900),
    "features below zero": line_of("max_feature_idx", -1),
    "feature names too few": line_of("feature_names", "Column_0"),
    "feature infos too few": line_of("feature_infos", "none"),
    "unknown objective": replace(
        "feature_names=", "objective=multiclass num_class:9\nfeature_names="
    ),
    "ranking objective": replace("feature_names=", "objective=lambdarank\nfeature_names="),
    "unknown head line": replace("feature_names=", "surprise=1\nfeature_names="),
    "unknown tree line": replace("is_linear=", "surprise=1\nis_linear="),
    "trees out of order": replace("Tree=1\n", "Tree=4\n"),
    "one tree too many": replace(
        "end of trees",
        "Tree=6\nnum_leaves=1\nnum_cat=0\nsplit_feature=\nleaf_value=1\n\n\nend of trees",
    ),
    "no end of trees": replace("end of trees", ""),
    "quoted parameter": replace("[boosting: gbdt]", '[boosting: g"b"dt]'),
    "unknown parameter": replace("[boosting: gbdt]", "[BOOSTING gbdt]"),
    "categories of pandas": replace("pandas_categorical:null", "pandas_categorical:[[1]]"),
    "a zero byte": replace("threshold=", "thres\0hold="),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n"),
    "no text at all": lambda text: "tree",
}
STALE = {  # sizes told wrong, and not put right
    "stale sizes": number("tree_sizes", 0, 90),
    "sizes of a billion": number("tree_sizes", 0, 10**9),
    "sizes below zero": number("tree_sizes", 0, -600),
    "sizes beyond 64 bits": number("tree_sizes", 0, 2**64 + 300),
    "sizes too few": line_of("tree_sizes", lambda old: old[:-1]),
    "sizes too many": line_of("tree_sizes", lambda old: [*old, *old]),
    "sizes of text": number("tree_sizes", 0, "many"),
}
LINES = {
    "starts too few": {"starts": [0.0]},
    "starts too many": {"starts": [0.0] * 9},
    "starts not finite": {"starts": [float("nan"), 0.0]},
    "starts of text": {"starts": ["a", "b"]},
    "starts nested": {"starts": [[0.0], [0.0]]},
    "no trees for some starts": {"starts": [0.0], "lengths": []},
    "lengths too long": {"lengths": [10**9]},
    "lengths below zero": {"lengths": [-1]},
    "lengths of floats": {"lengths": [1.5]},
    "lengths of text": {"lengths": "all"},
    "lengths that overlap": {"lengths": [10**4, -(10**4) + 5]},
}

# --- The head -------------------------------------------------------------------------------------


def tell(**told):
    """Change the head."""
    return lambda head: {**head, **told}


def estimator(**told):
    """Change what the estimator was told."""
    return lambda head: {**head, "estimator": {**head["estimator"], **told}}


HEADS = {
    "overlapping groups": tell(groups=[[0, 0]]),
    "missing label": tell(groups=[[0]]),
    "no groups": tell(groups=[]),
    "one group too many": tell(groups=[[0], [1]]),
    "an empty group": tell(groups=[[0, 1], []]),
    "label beyond": tell(groups=[[0, 7]]),
    "label below zero": tell(groups=[[0, -1]]),
    "label beyond 64 bits": tell(groups=[[0, 2**70]]),
    "label that is a truth": tell(groups=[[False, True]]),
    "label of text": tell(groups=[["0", "1"]]),
    "label without a model": tell(groups=[[0, 2]]),
    "groups of numbers": tell(groups=[0, 1]),
    "groups of nothing": tell(groups=None),
    "more labels": tell(n_positives=[10, 10, 10, 10], weights=[1.0] * 4),
    "fewer labels": tell(n_positives=[10], weights=[1.0]),
    "a label brought to life": tell(n_positives=[10, 10, 10]),
    "labels without rows": tell(n_rows=0),
    "rows below zero": tell(n_rows=-240),
    "rows beyond float": tell(n_rows=10**400),
    "rows of text": tell(n_rows="many"),
    "more positives than rows": tell(n_positives=[10**6, 10, 0]),
    "positives below zero": tell(n_positives=[-1, 10, 0]),
    "positives nested": tell(n_positives=[[10], [10], [0]]),
    "weights too few": tell(weights=[1.0]),
    "weights not finite": tell(weights=[float("nan"), 1.0, 1.0]),
    "more features than the trees": tell(n_features=900),
    "fewer features than the trees": tell(n_features=1),
    "features below zero": tell(n_features=-1),
    "features of a trillion": tell(n_features=10**12),
    "names too few": tell(label_names=["a"]),
    "names alike": tell(label_names=["a", "a", "b"]),
    "names of numbers": tell(label_names=7),
    "another learner": estimator(learner="logistic"),
    "unknown learner": estimator(learner="os"),
    "learner of a list": estimator(learner=["lightgbm"]),
    "unknown argument": estimator(surprise=1),
    "a folder to write": estimator(checkpoint="/tmp/surprise"),
    "parameters of a list": estimator(parameters=[1]),
    "parameters that are refused": estimator(parameters={"objective": "multiclass"}),
    "a seed of text": estimator(seed="x"),
    "a cap below zero": estimator(max_delta_step=-1),
    "an unknown preset": estimator(preset="surprise"),
    "no estimator": tell(estimator=None),
    "a list for a head": lambda head: [head],
    "a head nested deeply": lambda head: b"[" * 100_000,
    "a head of bytes": lambda head: b"\xff\xfe\x00",
}
OLDER_HEADS = {
    **HEADS,
    "checksums of a list": tell(sha256=[]),
    "checksums of nothing": tell(sha256=None),
    "format of a list": tell(format=[1]),
}

# --- XGBoost's UBJSON -----------------------------------------------------------------------------


def bytes_at(key, offset, new):
    """Overwrite bytes some way after the first time a key is named."""

    def change(raw):
        at = raw.index(key.encode()) + len(key) + offset
        return raw[:at] + new + raw[at + len(new) :]

    return change


def put_text(key, value):
    """Replace a text of the table by one of another length."""

    def change(raw):
        at = raw.index(key.encode()) + len(key)
        assert raw[at : at + 2] == b"SL"
        size = int.from_bytes(raw[at + 2 : at + 10], "big")
        new = value.encode()
        return raw[: at + 2] + len(new).to_bytes(8, "big") + new + raw[at + 10 + size :]

    return change


UBJ = {
    "left child out of range": bytes_at("left_children", 13, (10**6).to_bytes(4, "big")),
    "left child its own": bytes_at("left_children", 13, (0).to_bytes(4, "big")),
    "left child below zero": bytes_at("left_children", 13, (2**32 - 9).to_bytes(4, "big")),
    "right child out of range": bytes_at("right_children", 13, (10**6).to_bytes(4, "big")),
    "right child shared": bytes_at("right_children", 13, (1).to_bytes(4, "big")),
    "feature out of range": bytes_at("split_indices", 13, (10**6).to_bytes(4, "big")),
    "feature below zero": bytes_at("split_indices", 13, (2**32 - 1).to_bytes(4, "big")),
    "parent out of range": bytes_at("parents", 17, (10**6).to_bytes(4, "big")),
    "split by category": bytes_at("split_type", 13, b"\x01"),
    "default of seven": bytes_at("default_left", 13, b"\x07"),
    "condition not a number": bytes_at("split_conditions", 13, b"\x7f\xc0\x00\x00"),
    "an array of a billion": bytes_at("left_children", 5, (10**9).to_bytes(8, "big")),
    "an array below zero": bytes_at("left_children", 5, (2**64 - 1).to_bytes(8, "big")),
    "an unknown type": bytes_at("left_children", 2, b"?"),
    "more nodes": put_text("num_nodes", "1000001"),
    "fewer nodes": put_text("num_nodes", "1"),
    "deleted nodes": put_text("num_deleted", "3"),
    "leaf vectors": put_text("size_leaf_vector", "9"),
    "more trees": put_text("num_trees", "1000"),
    "trees below zero": put_text("num_trees", "-1"),
    "more targets": put_text("num_target", "900"),
    "more classes": put_text("num_class", "900"),
    "starts too many": put_text("base_score", "[5E-1,5E-1,5E-1,5E-1]"),
    "starts not a chance": put_text("base_score", "[7E0]"),
    "starts of text": put_text("base_score", "surprise"),
    "another objective": lambda raw: raw.replace(b"binary:logistic", b"binary:hinge___"),
    "label of a tree out of range": bytes_at("tree_info", 11, b"i\x63"),
    "cut short": lambda raw: raw[: len(raw) // 2],
    "something after": lambda raw: raw + b"}",
    "nested deeply": lambda raw: b"[#L\0\0\0\0\0\0\0\1" * 100_000,
    "nothing": lambda raw: b"",
    "many boosters of nothing": lambda raw: b"oddslip-boosters\n[]\n",
    "many boosters of text": lambda raw: b"oddslip-boosters\n{\n",
    "many boosters too long": lambda raw: b"oddslip-boosters\n[5, 1000000000]\n" + raw,
    "JSON of another kind": lambda raw: b'{"learner": {}}',
}

# --- Arrays ---------------------------------------------------------------------------------------


def arrays_with(**told):
    """Change some arrays of an .npz; None leaves one out."""

    def change(raw):
        with np.load(io.BytesIO(raw)) as stored:
            arrays = {name: stored[name] for name in stored.files}
        for name, value in told.items():
            new = value(arrays.get(name)) if callable(value) else value
            arrays[name] = new
        file = io.BytesIO()
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
        return file.getvalue()

    return change


def nan_first(array):
    """The same with a cell that is no number."""
    array = array.copy()
    array.flat[0] = np.nan
    return array


ARRAYS = {
    "logistic": {
        "slopes of fewer features": arrays_with(slopes=lambda a: a[:2]),
        "slopes of fewer labels": arrays_with(slopes=lambda a: a[:, :1]),
        "slopes flat": arrays_with(slopes=lambda a: a.ravel()),
        "slopes of text": arrays_with(slopes=lambda a: a.astype(str)),
        "slopes complex": arrays_with(slopes=lambda a: a.astype(complex)),
        "slopes not finite": arrays_with(slopes=nan_first),
        "one slope for all": arrays_with(slopes=np.float64(1)),
        "no slopes": arrays_with(slopes=None),
        "intercepts of one label": arrays_with(intercepts=lambda a: a[:1]),
        "intercepts not finite": arrays_with(intercepts=nan_first),
        "one more array": arrays_with(surprise=np.zeros(3)),
        "no archive": lambda raw: b"\x93NUMPY" + raw,
        "cut short": lambda raw: raw[:-30],
    },
    "mlp": {
        "a first layer of fewer features": arrays_with(slope0=lambda a: a[:2]),
        "layers that do not follow": arrays_with(bias0=lambda a: a[:2]),
        "a last layer of one label": arrays_with(slope1=lambda a: a[:, :1], bias1=lambda a: a[:1]),
        "no last layer": arrays_with(slope1=None, bias1=None),
        "no layers": arrays_with(slope0=None, bias0=None, slope1=None, bias1=None),
        "a layer without bias": arrays_with(bias1=None),
        "a layer with a gap": arrays_with(slope3=np.zeros((2, 2)), bias3=np.zeros(2)),
        "means of one feature": arrays_with(means=lambda a: a[:1]),
        "scales of zero": arrays_with(scales=np.zeros_like),
        "scales of one feature": arrays_with(scales=lambda a: a[:1]),
        "slopes not finite": arrays_with(slope0=nan_first),
    },
}

CASES = [
    *(["text", name] for name in TEXTS),
    *(["stale", name] for name in STALE),
    *(["line", name] for name in LINES),
    *(["head", name] for name in HEADS),
    *(["older", name] for name in OLDER_HEADS),
    *(["xgboost", name] for name in UBJ),
    *(["dart", name] for name in ("fewer drops",)),
    *([learner, name] for learner, told in ARRAYS.items() for name in told),
]


def craft(kind, name):
    """Head and groups of a crafted model."""
    base = {"text": "lightgbm", "stale": "lightgbm", "line": "lightgbm", "head": "lightgbm"}
    parts = dict(saved("lightgbm" if kind == "older" else base.get(kind, kind)))
    head = json.loads(parts.pop(HEAD))
    first = next(iter(parts))
    if kind in ("head", "older"):
        return OLDER_HEADS[name](head), parts
    if kind in ("text", "stale", "line"):
        line, text = split_group(parts[first])
        if kind == "line":
            line = {"lengths": [len(text)], **line, **LINES[name]}
            parts[first] = join_group(line, text, resize=False)
        elif kind == "stale":
            text = STALE[name](text)
            parts[first] = join_group({**line, "lengths": [len(text)]}, text, resize=False)
        else:
            changed = TEXTS[name](text)
            assert changed != text
            parts[first] = join_group(line, changed)
        return head, parts
    if kind == "dart":
        raw = parts[first]
        at = raw.index(b"weight_drop") + len(b"weight_drop") + len("[#L")
        size = int.from_bytes(raw[at : at + 8], "big")
        assert raw[at + 8 : at + 9] == b"d", raw[at - 4 : at + 20]
        parts[first] = raw[:at] + (size - 1).to_bytes(8, "big") + raw[at + 13 :]
        return head, parts
    change = UBJ[name] if kind == "xgboost" else ARRAYS[kind][name]
    parts[first] = change(parts[first])
    return head, parts


def attack(case):
    """Load a crafted model and score with it."""
    return use(*craft(*case), seal_older if case[0] == "older" else seal)
