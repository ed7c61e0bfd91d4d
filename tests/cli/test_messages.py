"""Messages speak of options on the command line, and of arguments in Python."""

import numpy as np
import pytest
import typer

import oddslip
from oddslip.cli.app import app, main
from oddslip.cli.messages import in_options, options_of

COMMAND = typer.main.get_command(app)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("margins.npy", np.array([[2.0, -1.0], [0.5, 3.0], [-2.0, 1.0]]))
    np.save("chances.npy", np.array([[0.9, 0.2], [0.4, 0.7], [0.1, 0.6]]))
    np.save("labels.npy", np.array([[1, 0], [0, 1], [0, 1]]))
    np.save("X.npy", np.arange(6.0).reshape(3, 2))
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("evaluate margins.npy labels.npy -k 1", "pass --kind margin."),
        ("rank margins.npy -k 1", "pass --kind margin."),
        ("rank chances.npy -k 5", "-k must be between 1 and n_labels=2, got -k 5."),
        ("evaluate chances.npy labels.npy -k 1 --ties odd", "--ties must be one of"),
        ("evaluate chances.npy labels.npy -k 1 --kind odds", "--kind must be"),
        ("fit chances.npy labels.npy -k 1 --rule best -o r", "--rule must be"),
        ("train X.npy labels.npy -o m --learner forest", "--learner must be one of"),
        ("train X.npy labels.npy -o m --max-delta-step -1", "--max-delta-step must be at least 0"),
    ],
)
def test_a_refusal_names_options(folder, capsys, typed, words):
    assert main(typed.split()) == 2
    output = capsys.readouterr().err
    assert words in output
    assert len(output.splitlines()) == 1


def test_python_names_arguments():
    with pytest.raises(oddslip.InvalidInput, match='pass kind="margin"'):
        oddslip.evaluate([[2.0, 1.0]], [[1, 0]], k=1)


@pytest.mark.parametrize(
    "message",
    [
        'OneVsRest(learner="mlp") needs torch. Run: pip install "oddslip[mlp]"',
        "path/kind=margin.npy cannot be read.",
        "my_kind=3 is no option, nor is n_labels=4.",
        "the kind must fit",
    ],
)
def test_what_is_no_option_stays_as_it_is(message):
    options = options_of(COMMAND, ["train"]) | options_of(COMMAND, ["rank", "scores.npy"])
    assert in_options(message, options) == message


def test_options_are_those_of_the_command_that_was_typed():
    assert options_of(COMMAND, ["rank", "scores.npy", "-k", "3"])["k"] == "-k"
    assert options_of(COMMAND, ["fit"])["output"] == "--output"
    assert "kind" not in options_of(COMMAND, ["export"])


def test_what_was_written_is_said(folder, capsys):
    assert (
        main(["fit", "chances.npy", "labels.npy", "--calibrator", "offset", "-o", "r.oddslip"]) == 0
    )
    capsys.readouterr()
    for typed, words in {
        "apply r.oddslip chances.npy -o out.npy": "Repaired probabilities of 3 rows x 2 labels in out.npy.",
        "apply r.oddslip chances.npy --top-k 1 -o top.npy": "Top 1 of 3 rows, repaired, in top.npy.",
        "rank chances.npy -k 2 -o ranked.npy": "Top 2 of 3 rows in ranked.npy.",
    }.items():
        assert main(typed.split()) == 0
        assert capsys.readouterr().out.strip() == words


@pytest.fixture
def repairs(tmp_path, monkeypatch):
    """Repairs of both kinds with their scores; margins that all lie between 0 and 1 among them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    chances = rng.random((300, 4))
    labels = rng.random(chances.shape) < chances
    np.save("labels.npy", labels)
    for kind, scores in (("probability", chances), ("margin", np.log(chances / (1 - chances)))):
        np.save(f"{kind}.npy", scores)
        isotonic = oddslip.calibrators.Isotonic(kind=kind)
        isotonic.fit(scores, labels).save(f"{kind}.oddslip")
    return tmp_path


VERBS_OF_REPAIRS = {
    "apply": "apply {repair} {scores} -o repaired.npy",
    "apply --top-k": "apply {repair} {scores} --top-k 2 -o ranked.npy",
    "check": "check {repair} {scores} -k 2",
    "decide": "decide {repair} {scores} labels.npy -o decision.oddslip",
}
OF_THE_OTHER_KIND = {
    "probability": ("margin", "fitted on probabilities, got scores from -"),
    "margin": ("probability", "fitted on margins, got scores that all lie between 0 and 1"),
}


@pytest.mark.parametrize("kind", OF_THE_OTHER_KIND)
@pytest.mark.parametrize("verb", VERBS_OF_REPAIRS)
def test_scores_of_the_other_kind_than_the_repair_are_refused(repairs, capsys, verb, kind):
    other, words = OF_THE_OTHER_KIND[kind]
    typed = VERBS_OF_REPAIRS[verb].format(repair=f"{kind}.oddslip", scores=f"{other}.npy")
    assert main(typed.split()) == 2
    message = capsys.readouterr().err
    assert words in message
    assert "open_source" not in message
    assert ("--kind margin" in message) == (kind == "margin")
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize("verb", VERBS_OF_REPAIRS)
def test_the_option_that_the_refusal_names_is_accepted(repairs, verb):
    typed = VERBS_OF_REPAIRS[verb].format(repair="margin.oddslip", scores="probability.npy")
    assert main([*typed.split(), "--kind", "margin"]) in (0, 3)


@pytest.mark.parametrize("verb", VERBS_OF_REPAIRS)
def test_a_declared_kind_that_is_not_the_repairs_is_refused(repairs, capsys, verb):
    typed = VERBS_OF_REPAIRS[verb].format(repair="margin.oddslip", scores="margin.npy")
    assert main([*typed.split(), "--kind", "probability"]) == 2
    assert "fitted on margin scores, got probability scores" in capsys.readouterr().err


def test_python_names_a_call_for_scores_of_the_other_kind(repairs):
    repair, scores = oddslip.load_repair("margin.oddslip"), np.load("probability.npy")
    for verb in (repair.rank, lambda scores, k: oddslip.check(repair, scores, k=k)):
        with pytest.raises(oddslip.InvalidInput, match=r'open_source\(scores, kind="margin"\)'):
            verb(scores, k=2)
