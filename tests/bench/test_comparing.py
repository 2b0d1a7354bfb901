"""What comparisons count."""

import numpy as np
import pytest

from rounds import FEEDBACK, Feedback, Rounds, choose_and_learn


@pytest.mark.parametrize("name", FEEDBACK)
def test_feedback_comes_when_it_should(name):
    feedback, n, late = FEEDBACK[name], 3_000, FEEDBACK[name].late
    rounds = Rounds(np.zeros((n, 1)), np.arange(n) % 2, 2, since=n // 2)
    now, told = [], []

    def decide(t):
        now.append(t)
        return 0, t

    def learn(decision, correct):
        assert correct == (decision % 2 == 0)
        assert now[-1] == decision + late
        told.append(decision)

    assert choose_and_learn(feedback, rounds, 0, decide, learn) == n // 4
    assert told == sorted(set(told))
    expected = (n - late) * feedback.share
    assert abs(len(told) - expected) <= 5 * np.sqrt(n * feedback.share * (1 - feedback.share))
    assert feedback.is_usual == (told == list(range(n)))


def test_only_counted_rounds_count():
    rounds = Rounds(np.zeros((4, 1)), np.array([0, 1, 0, 1]), 2, since=3)
    assert rounds.counted == 1
    assert rounds.mistakes(np.array([1, 0, 1, 1])) == 0
    assert rounds.mistakes(np.array([0, 1, 0, 0])) == 1
    assert Feedback(share=0.5).comes(8, 1).tolist() == Feedback(share=0.5).comes(8, 1).tolist()
