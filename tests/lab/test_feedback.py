"""When bits come."""

import numpy as np
import pytest

from onebit import SOBA, Perceptron, play, streams
from onebit.lab.feedback import FEEDBACK, IMMEDIATE, Feedback
from onebit.lab.measures import Online
from onebit.lab.tools import BoostedTrees, ConstantLabel


@pytest.mark.parametrize("name", FEEDBACK)
def test_bits_come_when_they_should(name):
    feedback, n = FEEDBACK[name], 3_000
    y, now, told = np.arange(n) % 2, [], []

    def decide(t):
        now.append(t)
        return 0, t

    def learn(decision, correct):
        assert correct == (decision % 2 == 0)
        assert now[-1] == decision + feedback.late
        told.append(decision)

    np.testing.assert_array_equal(feedback.labels(y, 0, decide, learn), 0)
    assert told == sorted(set(told))
    expected = (n - feedback.late) * feedback.share
    assert abs(len(told) - expected) <= 5 * np.sqrt(n * feedback.share * (1 - feedback.share))
    assert feedback.is_immediate == (told == list(range(n)))


def test_the_seed_determines_which_bits_come():
    feedback = Feedback(share=0.5)
    assert feedback.comes(8, 1).tolist() == feedback.comes(8, 1).tolist()
    assert feedback.comes(80, 1).tolist() != feedback.comes(80, 2).tolist()


def test_only_rounds_after_the_change_count():
    measure = Online(change="A-B-A")
    assert (measure.first_counted(9), Online().first_counted(9)) == (3, 0)
    y = np.array([0, 0, 0, 1, 1, 1, 1, 1, 0])
    found = ConstantLabel().play(np.ones((9, 1)), y, 2, 0, measure)
    assert (found["rounds"], found["mistakes"]) == (6, 1)
    X, y = streams.synsep(600, seed=0)
    mistakes = play(SOBA(classes=range(9), random_state=0), X, y).mistakes
    found = measure(SOBA(classes=range(9), random_state=0), X, y, 1)
    assert (found["rounds"], found["mistakes"]) == (400, mistakes[200:].sum())


def test_late_bits_are_learned_late_and_labels_at_once():
    X, y = streams.synsep(400, seed=0)
    late = Online(feedback=Feedback(late=400))
    assert late(SOBA(classes=range(9), random_state=0), X, y, 1)["mistakes"] > 300
    one_late = Online(feedback=Feedback(late=1))
    learner = SOBA(classes=range(9), random_state=0)
    by_hand, waiting = 0, []
    for x, truth in zip([X[t : t + 1] for t in range(400)], y, strict=True):
        decision = learner.decide(x)
        by_hand += decision.label != truth
        waiting.append((decision, decision.label == truth))
        if len(waiting) > 1:
            learner.learn(waiting[0][0], correct=bool(waiting.pop(0)[1]))
    assert one_late(SOBA(classes=range(9), random_state=0), X, y, 1)["mistakes"] == by_hand
    told = late(Perceptron(classes=range(9)), X, y, 1)
    assert told["mistakes"] == play(Perceptron(classes=range(9)), X, y).n_mistakes
    assert Feedback() == IMMEDIATE


def test_tools_that_cannot_wait_say_so():
    with pytest.raises(ValueError, match="takes each bit at once"):
        BoostedTrees().play(np.ones((9, 1)), np.zeros(9, int), 2, 0, Online(feedback=Feedback(1)))
