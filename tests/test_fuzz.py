"""The short form of the fuzz suite: a few cases of each part, always the same ones."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz import arrays, files, forms, ranges, soundness, states, threads

pytestmark = pytest.mark.filterwarnings("ignore")  # what counts is what comes of it

SHORT = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # `python -m fuzz` finds smaller examples
    suppress_health_check=list(HealthCheck),
)

# Between them: compiled and Python kernels, full and diagonal matrices, bandit and full feedback.
FORMS = ["OneBitClassifier-0", "Newtron-0", "Gaptron-3", "SOBA-1", "KernelSeparableBandit-0"]
one_form = pytest.mark.parametrize("form", FORMS)


def test_states():
    run_state_machine_as_test(
        states.machine(*FORMS), settings=settings(SHORT, max_examples=15, stateful_step_count=15)
    )


def test_ranges():
    settings(SHORT, max_examples=60)(ranges.lives(*FORMS))()


@one_form
def test_arrays(form):
    for number in range(60):
        arrays.case(form, np.random.default_rng([0, number]))


@one_form
def test_files(form):
    for number in range(60):
        files.case(form, np.random.default_rng([0, number]))


@one_form
def test_threads(form):
    threads.case(form, np.random.default_rng(0))


def test_what_is_not_sound_is_found():
    """The suite can fail."""
    learner = forms.trained("SOBA-0", np.random.default_rng(0), 3, 2)
    soundness.assert_sound(learner)

    def harm():
        learner._run.state.W[0, 0] += 1.0
        raise ValueError("refused, but too late")

    with pytest.raises(AssertionError, match="changed by a refused call"):
        soundness.attempt(learner, harm)
    with pytest.raises(AssertionError, match="refused what is allowed"):
        soundness.attempt(learner, lambda: learner.decide([1.0]), must="accept")
    with pytest.raises(AssertionError, match="accepted"):
        soundness.attempt(learner, lambda: learner.decide([1.0, 2.0]), must="refuse")
    other = soundness.copied(learner)
    learner.decide([1.0, 2.0])
    with pytest.raises(AssertionError, match="a copy differs"):
        soundness.assert_continues_identically(learner, other, np.random.default_rng(0))
    learner._run.state.W[0, 0] = np.nan
    with pytest.raises(AssertionError, match="not finite"):
        soundness.assert_sound(learner)
