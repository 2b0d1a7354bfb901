"""Learners of a sweep, as they may be given."""

import pytest

from onebit import Banditron, Perceptron, lab
from onebit.lab.sweeps import ONLINE
from onebit.streams.stream_spec import StreamSpec

STREAM = {"synsep": StreamSpec("synsep", 100)}


def played(learners, tmp_path):
    """Return the names and learners of the runs of a sweep."""
    runs = lab.runs_of(learners, {}, STREAM, 1, ONLINE, tmp_path)
    return [(run.name, repr(run.learner)) for run in runs]


@pytest.mark.parametrize("kind", [list, tuple])
def test_one_name_may_stand_for_several_learners(kind, tmp_path):
    some = kind([Banditron(gamma=0.1), Banditron(gamma=0.2)])
    assert played({"few": some, "plain": Perceptron()}, tmp_path) == [
        ("few", "Banditron(gamma=0.1)"),
        ("few", "Banditron(gamma=0.2)"),
        ("plain", "Perceptron()"),
    ]


def test_learners_are_named_by_their_class(tmp_path):
    assert played(["banditron", Perceptron, Banditron(gamma=0.1)], tmp_path) == [
        ("Banditron", "Banditron()"),
        ("Perceptron", "Perceptron()"),
        ("Banditron", "Banditron(gamma=0.1)"),
    ]
