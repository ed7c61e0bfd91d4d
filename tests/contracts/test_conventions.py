"""One convention in all public verbs: the same name has the same place, default and meaning."""

import inspect
import re
import threading
from importlib import import_module

import numpy as np
import pytest
import typer

import oddslip
import oddslip.metrics.bootstrap as bootstraps
import oddslip.sources.base as sources
from oddslip import calibrators, datasets, learners, metrics, shifts
from oddslip.cli.app import app

PACKAGES = ("", ".shifts", ".calibrators", ".metrics", ".selection", ".datasets", ".learners")
NAMES = ("k", "threads", "seed", "kind", "label_names", "weights")
# Not ours, or not a verb: scikit-learn's own methods, and fields of results, which are read.
INHERITED = re.compile(r"^(_|set_\w+_request|set_output|set_params|get_)")
# Results are made by verbs, not by users; a field of a NamedTuple or dataclass has its place.
REQUIRED = inspect.Parameter.empty


def is_record(thing):
    return hasattr(thing, "__dataclass_fields__") or hasattr(thing, "_fields")


def find_verbs():
    """Every public function, constructor and method, by name."""
    verbs = {}
    for package in PACKAGES:
        module = import_module(f"oddslip{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                verbs[name] = thing
            elif inspect.isclass(thing) and not issubclass(thing, Exception):
                if not is_record(thing):
                    verbs[name] = thing
                for inner, method in inspect.getmembers(thing, inspect.isfunction):
                    if not INHERITED.match(inner):
                        verbs[f"{name}.{inner}"] = method
    return verbs


VERBS = find_verbs()
HAVING = {
    wanted: {
        verb: inspect.signature(thing).parameters[wanted]
        for verb, thing in VERBS.items()
        if wanted in inspect.signature(thing).parameters
    }
    for wanted in NAMES
}


def default_of(wanted, verb):
    return HAVING[wanted][verb].default


def list_options():
    """Pairs of a shared parameter and a verb that may be called without it or must name it."""
    for wanted in NAMES:
        for verb in HAVING[wanted]:
            # Weights without a default are what the verb is about: shift_odds(scores, weights).
            if wanted != "weights" or default_of(wanted, verb) is not REQUIRED:
                yield wanted, verb


def test_shared_parameters_are_passed_by_name():
    assert [
        f"{wanted} of {verb}"
        for wanted, verb in list_options()
        if HAVING[wanted][verb].kind is not inspect.Parameter.KEYWORD_ONLY
    ] == []


@pytest.mark.parametrize("wanted", ["threads", "label_names"])
def test_what_may_be_left_out_is_none(wanted):
    assert {default_of(wanted, verb) for verb in HAVING[wanted]} == {None}


def test_every_seed_is_42_by_default():
    assert oddslip.DEFAULT_SEED == 42
    assert {default_of("seed", verb) for verb in HAVING["seed"]} == {oddslip.DEFAULT_SEED}


def test_k_is_required_where_it_decides_and_7_where_it_may_be_left_out():
    defaults = {verb: default_of("k", verb) for verb in HAVING["k"]}
    for verb in (
        "Repair.rank",
        "Repaired.predict_topk",
        "RepairedClassifier.predict_topk",
        "check",
        "FittedRepair.to_onnx",
        "FittedRepair.to_sql",
    ):
        assert defaults.pop(verb) is None  # as many as the repair was chosen for
    optional = {verb: k for verb, k in defaults.items() if k is not REQUIRED}
    assert optional == {
        "diagnose": 7,
        "plan": 7,
        "RepairedClassifier": 7,
        "map_at_k_scorer": 7,
        "OneVsRest": 7,
    }


def test_kind_is_left_to_the_scores_by_verbs_and_fixed_by_what_keeps_it():
    keeps = {name for name in calibrators.__all__ if inspect.isclass(getattr(calibrators, name))}
    # An estimator and a panel remember a kind; a file of scores has to be of one.
    keeps |= {"Panel", "Repair", "score_to_file"}
    for verb in HAVING["kind"]:
        assert default_of("kind", verb) == ("probability" if verb in keeps else None), verb


def test_weights_mean_none_known_or_the_usual_ones():
    defaults = {verb: default_of("weights", verb) for verb in HAVING["weights"]}
    optional = {verb: value for verb, value in defaults.items() if value is not REQUIRED}
    assert optional == {
        "diagnose": None,  # what they were is not known
        "evaluate": None,  # propensities are those of the labels
        "Hierarchical": None,
        "HierarchicalIsotonic": None,
        "plan": "balanced",
        "Repair": None,
        "synthetic_pair": "balanced",
        "MatchedPair": "balanced",
        "OneVsRest": "none",
        "RoundsRecorder": None,
        "by_rounds": None,
    }


BY_REFERENCE = re.compile(r"arguments of `|\bAs (in|for) `")


def is_documented(doc, parameter):
    """Whether a docstring describes a parameter, or names the verb that does."""
    entry = re.compile(rf"^(\w+, )*{parameter}(, \w+)*( :.*)?\n +\S", re.MULTILINE)
    doc = inspect.cleandoc(doc or "")
    return bool(entry.search(doc) or BY_REFERENCE.search(doc))


def test_every_shared_parameter_is_documented():
    assert [
        f"{wanted} of {verb}"
        for wanted, verb in list_options()
        if not is_documented(VERBS[verb].__doc__, wanted)
    ] == []


def test_a_parameter_without_a_description_would_be_found():
    assert is_documented("Verb.\n\nParameters\n----------\nk, seed : int\n    Slots.\n", "seed")
    assert not is_documented("Verb.\n\nParameters\n----------\nk : int\n\nReturns", "k")
    assert not is_documented("Verb with k.", "k")


COMMANDS = {
    "evaluate": [oddslip.evaluate],
    "rank": [oddslip.rank],
    "diagnose": [oddslip.diagnose],
    "plan": [oddslip.plan],
    "fit": [oddslip.Repair, oddslip.Repair.fit, calibrators.Isotonic],
    "apply": [oddslip.FittedRepair.transform_blocks],
    "train": [oddslip.OneVsRest, oddslip.OneVsRest.fit],
    "score": [learners.score_to_file],
}
# What these read may say its own kind, so there is no default.
BRING_KINDS = {"evaluate", "rank", "diagnose", "plan", "fit"}
SAME = {"bootstrap": "n_replicates"}  # two names of one thing
# What a command line may leave out though Python may not, or the other way round.
OTHERWISE = {
    ("fit", "k"): None,  # --calibrator needs none
    ("plan", "labels"): REQUIRED,  # Python may give counts instead
    ("train", "learner"): None,  # a preset may say it
    ("train", "engine"): "local",  # as in every command; Python takes a session, or none
}


def command_defaults(name):
    command = typer.main.get_command(app).commands[name]
    return {
        parameter.name: REQUIRED if parameter.required else parameter.default
        for parameter in command.params
        if parameter.name != "help"
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_defaults_of_the_verb(name):
    shared = 0
    for option, default in command_defaults(name).items():
        for verb in COMMANDS[name]:
            parameter = inspect.signature(verb).parameters.get(SAME.get(option, option))
            if parameter is None:
                continue
            shared += 1
            wanted = OTHERWISE.get((name, option), parameter.default)
            if option == "kind" and name in BRING_KINDS:
                wanted = None
            assert default == wanted, option
    assert shared


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_threads(name):
    assert command_defaults(name)["threads"] is None


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_the_seed_of_its_verb(name):
    drawn = any("seed" in inspect.signature(verb).parameters for verb in COMMANDS[name])
    assert ("seed" in command_defaults(name)) == drawn


PAIR = datasets.synthetic_pair(900, 12, prevalence=(0.01, 0.3), noise=0.5, saturate=0.05, n_dead=1)
OTHER = datasets.synthetic_pair(900, 12, prevalence=(0.01, 0.3), noise=0.5, seed=3)
CALIBRATORS = {
    name: thing
    for name in calibrators.__all__
    if inspect.isclass(thing := getattr(calibrators, name)) and not is_record(thing)
}


def make_calibrator(name):
    return CALIBRATORS[name](*([PAIR.weights] if name == "Inversion" else []))


def diagnose_all(threads):
    return oddslip.diagnose(
        PAIR.weighted,
        PAIR.labels,
        k=3,
        weights=PAIR.weights,
        unweighted=PAIR.unweighted,
        calibration=(OTHER.weighted, OTHER.labels),
        n_replicates=50,
        threads=threads,
    ).to_dict()


def plan_all(threads):
    return oddslip.plan(
        PAIR.labels,
        rounds=60,
        learning_rate=0.1,
        unweighted=PAIR.unweighted,
        k=3,
        n_replicates=50,
        threads=threads,
    ).to_dict()


def compare_all(threads):
    both = [
        oddslip.evaluate(arm, PAIR.labels, k=3, auc=True, n_replicates=50, threads=threads)
        for arm in (PAIR.weighted, PAIR.unweighted)
    ]
    return both[0].to_dict() | both[0].compare(both[1], threads=threads).to_dict()


def repair_all(rule):
    def run(threads):
        repair = oddslip.Repair(k=3, rule=rule, dead="identity")
        repair.fit(PAIR.weighted, PAIR.labels, threads=threads)
        return {
            "table": repair.table_.to_dict(),
            "transformed": repair.transform(PAIR.weighted, threads=threads).tolist(),
            "ranked": repair.rank(PAIR.weighted, threads=threads).tolist(),
        }

    return run


def calibrate_all(name):
    def run(threads):
        calibrator = make_calibrator(name)
        transformed = calibrator.fit_transform(PAIR.weighted, PAIR.labels, threads=threads)
        return {
            "transformed": transformed.tolist(),
            "ranked": calibrator.rank(PAIR.weighted, k=3, threads=threads).tolist(),
            "margins": calibrator.fitted_.transform(
                PAIR.weighted, threads=threads, dtype="f8"
            ).tolist(),
        }

    return run


WHOLE_RUNS = {
    "evaluate and compare": compare_all,
    "rank": lambda threads: oddslip.rank(PAIR.weighted, k=3, threads=threads).tolist(),
    "diagnose": diagnose_all,
    "plan": plan_all,
    "Repair, auto": repair_all("auto"),
    "Repair, beta": repair_all("beta"),
    "what_if": lambda threads: shifts.what_if(
        PAIR.unweighted, PAIR.weights, k=3, threads=threads
    ).to_dict(),
    "saturation": lambda threads: shifts.saturation(PAIR.weighted, k=3, threads=threads).to_dict(),
    "realized_shift": lambda threads: shifts.realized_shift(
        PAIR.weighted, PAIR.prior, threads=threads
    ).to_dict(),
    "mean_auc": lambda threads: metrics.mean_auc(PAIR.weighted, PAIR.labels, threads=threads),
    **{
        name: lambda threads, name=name: getattr(metrics, name)(
            PAIR.weighted, PAIR.labels, k=3, threads=threads
        )
        for name in metrics.__all__
        if name.endswith("_at_k") and name != "reliability_at_k"
    },
    "reliability_at_k": lambda threads: metrics.reliability_at_k(
        PAIR.weighted, PAIR.labels, k=3, threads=threads
    ).to_dict(),
    **{name: calibrate_all(name) for name in CALIBRATORS},
}
ABOUT_DEAD = "ignore:.*dead labels keep their raw score"


@pytest.fixture
def many_blocks(monkeypatch):
    """Blocks so small that threads have something to do."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(bootstraps, "BLOCK_ROWS", 100)


@pytest.fixture
def started(monkeypatch, many_blocks):
    """Threads that were started, by name."""
    names = []
    start = threading.Thread.start

    def note(thread):
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note)
    return names


@pytest.mark.filterwarnings(ABOUT_DEAD)
@pytest.mark.parametrize("run", WHOLE_RUNS.values(), ids=WHOLE_RUNS)
def test_one_thread_starts_none_and_two_start_some(run, started):
    run(1)
    assert started == []
    run(2)
    assert started


@pytest.mark.filterwarnings(ABOUT_DEAD)
@pytest.mark.parametrize("run", WHOLE_RUNS.values(), ids=WHOLE_RUNS)
def test_threads_do_not_change_a_bit(run, many_blocks):
    one = run(1)
    for threads in (2, 5):
        np.testing.assert_equal(run(threads), one)


@pytest.mark.parametrize("run", WHOLE_RUNS.values(), ids=WHOLE_RUNS)
def test_no_threads_are_refused_in_the_same_words(run):
    with pytest.raises(
        oddslip.InvalidInput, match=r"^threads must be at least 1, got threads=0\.$"
    ):
        run(0)


def test_a_plan_that_ranks_nothing_refuses_them_too():
    with pytest.raises(oddslip.InvalidInput, match="threads must be at least 1"):
        oddslip.plan(counts=[1, 2], n_rows=9, rounds=60, learning_rate=0.1, threads=0)


def test_threads_given_to_fit_are_those_of_the_intervals_drawn_later(started):
    repair = oddslip.Repair(k=3, rule="paper").fit(PAIR.weighted, PAIR.labels, threads=1)
    assert repair.table_.lines
    assert started == []
