"""Every use of a learner holds its lock."""

import copy
import threading

import numpy as np
import pytest

from onebit import Banditron, play
from onebit.core.storage import to_bytes

pytestmark = pytest.mark.xdist_group("banditron")

X = np.eye(3)
USES = {
    "decide": lambda learner, made: learner.decide(X[0]),
    "decide among": lambda learner, made: learner.decide(X[0], among=[0, 1]),
    "decide_many": lambda learner, made: learner.decide_many(X),
    "learn": lambda learner, made: learner.learn(made, correct=True),
    "learn_many": lambda learner, made: learner.learn_many([made], correct=[True]),
    "teach": lambda learner, made: learner.teach(X, [0, 1, 2]),
    "replay": lambda learner, made: learner.replay(X, [0, 1, 2], [0.5] * 3, [1, 0, 1]),
    "add_classes": lambda learner, made: learner.add_classes([3]),
    "retire_classes": lambda learner, made: learner.retire_classes([1]),
    "scores": lambda learner, made: learner.scores(X),
    "policy": lambda learner, made: learner.policy(X),
    "predict": lambda learner, made: learner.predict(X),
    "coef_": lambda learner, made: learner.coef_,
    "partial_fit": lambda learner, made: learner.partial_fit(X, [0, 1, 2]),
    "play": lambda learner, made: play(learner, X, [0, 1, 2]),
    "copy": lambda learner, made: copy.deepcopy(learner),
    "save": lambda learner, made: to_bytes(learner),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_learner_waits_for_its_lock(use):
    learner = Banditron(classes=range(3), random_state=0)
    made = learner.decide(X[0])
    done = threading.Event()

    def work():
        USES[use](learner, made)
        done.set()

    other = copy.deepcopy(learner)
    USES[use](other, other.decide(X[0]))  # which compiles
    thread = threading.Thread(target=work)
    with learner._run.lock:
        thread.start()
        assert not done.wait(0.03)
    thread.join(10)
    assert done.is_set()


@pytest.mark.parametrize("use", sorted(USES.keys() - {"coef_"}))  # which asks for its type before
def test_every_use_of_the_state_holds_the_lock(use, monkeypatch):
    learner = Banditron(classes=range(3), random_state=0)
    learner.learn(learner.decide(X[0]), correct=True)  # compiles, by the type of the state
    made = learner.decide(X[0])
    plain, holds_lock = type(learner._run), []

    class Watched(plain):
        """The same run; it records for each use of its state whether this thread has the lock."""

        __slots__ = ()

        @property
        def state(self):
            holds_lock.append(self.lock._is_owned())
            return plain.state.__get__(self)

        @state.setter
        def state(self, new):
            holds_lock.append(self.lock._is_owned())
            plain.state.__set__(self, new)

        @property
        def packed(self):
            holds_lock.append(self.lock._is_owned())
            return plain.packed.__get__(self)

        @packed.setter
        def packed(self, new):
            plain.packed.__set__(self, new)

    run = learner._run
    loops = run.kernels.evaluate

    def evaluate(kernels, n):
        def loop(*arguments):
            holds_lock.append(run.lock._is_owned())
            loops(n)(*arguments)

        return loop

    run.__class__ = Watched
    monkeypatch.setattr(type(run.kernels), "evaluate", evaluate)
    USES[use](learner, made)
    assert holds_lock
    assert all(holds_lock)
