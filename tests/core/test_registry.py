"""Learners are found by their names; an error suggests similar ones."""

import pytest

import onebit
from onebit import lab, warm_up
from onebit.core.registry import chosen_class
from onebit.serve.replayable import ReplayableLearner
from onebit.serve.rows import LearnerSpec, ModelSpec


@pytest.mark.parametrize("name", onebit.learners.__all__)
def test_a_name_in_any_case(name):
    cls = getattr(onebit.learners, name)
    assert onebit.learners.named(name.lower()) is onebit.learners.named(name.upper()) is cls


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("onebit", "OneBitClassifier"),
        ("one_bit_classifier", "OneBitClassifier"),
        ("OneBitClasifier", "OneBitClassifier"),
        ("ucb", "LinUCB"),
        ("PNewtron", "Newtron"),
        ("adaboost", "AdaBoostOL or AdaBoostOLM or AdaBoostOLMpp"),
        ("banditeon", "Banditron"),
    ],
)
def test_the_likely_name_is_told(name, meant):
    with pytest.raises(ValueError, match=rf"^no learner '{name}': did you mean {meant}\b"):
        onebit.learners.named(name)


@pytest.mark.parametrize("name", ["nobody", "", "-"])
def test_without_a_likely_name_all_are_told(name):
    with pytest.raises(
        ValueError, match=rf"^no learner '{name}': there are Aioli, .*SoftmaxThompson$"
    ):
        onebit.learners.named(name)


def test_all_ways_find_the_same_learners():
    spec = ModelSpec(labels=["a", "b"])
    for find in (
        warm_up,
        lambda name: lab.sweep([name]),
        lambda name: ReplayableLearner.begin(spec, LearnerSpec(learner=name), ["a", "b"]),
    ):
        with pytest.raises(ValueError, match="no learner 'onebit': did you mean OneBitClassifier"):
            find("onebit")


def test_only_learners_that_can_be_chosen_are_told():
    with pytest.raises(ValueError, match=r"no learner 'Soba2': there are Banditron$"):
        chosen_class("Soba2", [onebit.Banditron])
