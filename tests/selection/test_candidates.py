"""Candidates: names that read back, and what does not exist is refused."""

import pytest

from oddslip.errors import InvalidInput
from oddslip.selection.candidates import PAPER, WIDE, Candidate, read_candidate

EVERY = sorted({*PAPER, *WIDE, Candidate("beta")}, key=lambda candidate: candidate.name)


@pytest.mark.parametrize("candidate", EVERY, ids=lambda candidate: candidate.name)
def test_a_name_reads_back(candidate):
    assert read_candidate(candidate.name) == candidate


def test_the_papers_seven_are_the_papers_seven():
    assert {candidate.name for candidate in PAPER} == {
        "raw",
        "pooled",
        "isotonic-0",
        "isotonic-1",
        "isotonic-2",
        "isotonic-5",
        "isotonic-10",
    }


def test_simpler_means_raw_then_pooled_then_the_larger_tau():
    order = sorted(PAPER, key=lambda candidate: candidate.complexity)
    assert [candidate.name for candidate in order] == [
        "raw",
        "pooled",
        "isotonic-10",
        "isotonic-5",
        "isotonic-2",
        "isotonic-1",
        "isotonic-0",
    ]


@pytest.mark.parametrize(
    "name", ["", "best", "isotonic-", "isotonic--1", "raw-3", "Raw", "isotonic-1.5"]
)
def test_an_unknown_name_is_refused(name):
    with pytest.raises(InvalidInput, match=r'rule must be "auto", "paper" or a candidate'):
        read_candidate(name)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"form": "best"}, "form must be one of"),
        ({"form": "isotonic", "tau": -1}, "tau must be a whole number"),
        ({"form": "isotonic", "tau": True}, "tau must be a whole number"),
        ({"form": "shrunk", "strength": 0.5}, "strength must be a whole number"),
        ({"form": "raw", "tau": 2}, "tau belongs to 'isotonic' alone"),
        ({"form": "isotonic", "strength": 2}, "strength belongs to 'shrunk' alone"),
    ],
)
def test_a_candidate_that_does_not_exist_is_refused(options, line):
    with pytest.raises(InvalidInput, match=line):
        Candidate(**options)
