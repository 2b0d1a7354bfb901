"""What threads may do with one learner: any number decide, and its lock is handed on fairly."""

import copy
import itertools
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from onebit import BanditReduction, Banditron, Folklore, Obama, OneBitClassifier, load, play
from onebit.core import fair_lock
from onebit.core.compiling import compiler_lock
from onebit.core.fair_lock import FairLock
from problems import assert_finite
from processes import run_python

FULL = {"covariance": "full", "classes": range(4), "random_state": 0}


def stream(n, d=12, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, K)) + rng.normal(size=(n, K)), axis=1)


@contextmanager
def meanwhile(*work):
    """Run functions over and over in threads of their own; what they raise is raised here."""
    stop = threading.Event()

    def repeat(function):
        count = 0
        while not stop.is_set():
            function()
            count += 1
        return count

    with ThreadPoolExecutor(len(work)) as threads:
        futures = [threads.submit(repeat, function) for function in work]
        try:
            yield
        finally:
            stop.set()
        assert all(future.result() > 0 for future in futures)


def assert_sound(learner, X):
    assert_finite(learner, X)
    n_pending = learner._run.state.line.S.n_pending
    assert 0 <= n_pending.min() <= n_pending.max() < 64


def crashes(code):
    """Run code in another process, where compiled code may do its worst; return its exit code."""
    return run_python(code).returncode


several_seconds = pytest.mark.parametrize(
    "seconds", [1.0, pytest.param(10.0, marks=pytest.mark.slow)]
)
pytestmark = pytest.mark.xdist_group("one_bit_classifier")


@pytest.mark.parametrize(
    "other",
    ["learner.partial_fit(X, y)", "learner.learn(learner.decide(X[0]), correct=True)"],
    ids=["partial_fit", "single rounds"],
)
@several_seconds
def test_learning_threads_take_turns(other, seconds):
    """Two threads in one full matrix wrote behind its array."""
    assert (
        crashes(f"""
        import threading, time
        import numpy as np
        from onebit import OneBitClassifier
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(3000, 12)), rng.integers(4, size=3000)
        learner = OneBitClassifier(covariance="full", classes=range(4), random_state=0)
        learner.partial_fit(X[:100], y[:100])
        learner.learn(learner.decide(X[0]), correct=True)
        end = time.monotonic() + {seconds}
        def play():
            while time.monotonic() < end:
                learner.partial_fit(X, y)
        def other():
            while time.monotonic() < end:
                {other}
        threads = [threading.Thread(target=f) for f in (play, other, other)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert np.isfinite(learner.coef_).all()
    """)
        == 0
    )


@several_seconds
def test_fit_with_other_features_while_a_thread_decides(seconds):
    assert (
        crashes(f"""
        import threading, time
        import numpy as np
        from onebit import OneBitClassifier
        rng = np.random.default_rng(0)
        y = rng.integers(4, size=50)
        narrow, wide = rng.normal(size=(50, 3)), rng.normal(size=(50, 20000))
        learner = OneBitClassifier(classes=range(4)).fit(narrow, y)
        learner.decide(narrow[0])
        end = time.monotonic() + {seconds}
        def decide():
            while time.monotonic() < end:
                for x in (narrow[0], wide[0]):
                    try:
                        decision = learner.decide(x)
                        learner.learn(decision, correct=True)
                        learner.predict(x[None])
                    except ValueError as error:
                        assert "features" in str(error), error
        threads = [threading.Thread(target=decide) for _ in range(2)]
        [t.start() for t in threads]
        while time.monotonic() < end:
            learner.fit(wide, y)
            learner.fit(narrow, y)
        [t.join() for t in threads]
    """)
        == 0
    )


def test_saves_and_copies_while_it_plays_are_whole(tmp_path):
    X, y = stream(2_000)
    learner = OneBitClassifier(**FULL).fit(X[:100], y[:100])
    seen = []

    def save():
        path = tmp_path / "learner.safetensors"
        learner.save(path)
        seen.append(load(path))

    def copied():
        seen.append(copy.deepcopy(learner))
        seen.append(pickle.loads(pickle.dumps(learner)))

    with meanwhile(lambda: learner.partial_fit(X, y), save, copied):
        while len(seen) < 20:
            time.sleep(0.1)
    for other in seen:
        assert_sound(other, X[:50])
        other.partial_fit(X[:70], y[:70])
        assert_sound(other, X[:50])


@pytest.mark.xdist_group("obama")
def test_a_decision_has_the_probability_of_its_own_example():
    """Python kernels shared room for the scores between threads."""
    X, y = stream(20, d=3, K=3)
    learner = Obama(mu=0.3, n_samples=10, classes=range(3), random_state=0).fit(X, y)
    p = learner.policy(X)

    def decide():
        for x, expected in zip(X, p, strict=True):
            decision = learner.decide(x)
            assert decision.probability == expected[decision.label]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with meanwhile(decide, decide):
            time.sleep(0.5)
    finally:
        sys.setswitchinterval(interval)


def test_every_lesson_counts_once():
    """As many rounds are counted as feedback was given, by any number of threads."""
    X, _ = stream(500)
    learner = OneBitClassifier(**FULL)
    decisions = [learner.decide(x) for x in X]
    refused = []

    def learn():
        for decision in decisions:
            try:
                learner.learn(decision, correct=True)
            except ValueError as error:
                refused.append(str(error))

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(learn) for _ in range(4)]:
            future.result()
    assert learner._run.state.rounds == 500
    assert len(refused) == 3 * 500
    assert all("already learned" in words for words in refused)


def test_threads_that_start_a_learner_together_start_it_once():
    for _ in range(20):
        learner = Banditron(classes=range(3))
        barrier, runs = threading.Barrier(4), []

        def start(learner=learner, barrier=barrier, runs=runs):
            barrier.wait()
            learner.decide([1.0, 2.0])
            runs.append(learner._run)

        with ThreadPoolExecutor(4) as threads:
            for future in [threads.submit(start) for _ in range(4)]:
                future.result()
        assert len({id(run) for run in runs}) == 1


def test_a_run_lets_others_in_between_its_blocks():
    """Deciding waits for a block of rounds, not for the end of the stream."""
    X, y = stream(50_000)
    learner = OneBitClassifier(**FULL).fit(X[:100], y[:100])
    learner.decide(X[0])
    done, waits = threading.Event(), []

    def run():
        play(learner, X, y)
        done.set()

    thread = threading.Thread(target=run)
    start = time.perf_counter()
    thread.start()
    while not done.is_set():
        before = time.perf_counter()
        learner.decide(X[0])
        waits.append(time.perf_counter() - before)
        time.sleep(0.01)
    thread.join()
    whole = time.perf_counter() - start
    assert len(waits) > 5
    assert np.median(waits) < max(0.2, whole / 10)


def test_the_lock_is_handed_on():
    """Who comes back at once for the lock does not overtake who waits."""
    lock, order, ready = FairLock(), [], threading.Event()

    def other():
        ready.set()
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock:
        thread.start()
        ready.wait()
        time.sleep(0.1)
        with lock:  # the same thread may take it again
            order.append("inner")
    with lock:
        order.append("again")
    thread.join()
    assert order == ["inner", "other", "again"]


def forks(test):
    """Mark a test that forks while there are threads."""
    test = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")(test)


def in_child(work):
    """Run a function in a forked process; return its exit code, which a hang makes negative."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def held(lock):
    """Let another thread hold a lock."""
    ready, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            ready.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert ready.wait(60)
    try:
        yield done
    finally:
        done.set()
        thread.join()


def small_learner():
    X, y = stream(20, d=3, K=3)
    learner = Banditron(classes=range(3), random_state=0).partial_fit(X, y)
    learner.learn(learner.decide(X[0]), correct=True)
    return learner, X, y


def use(learner, X, y):
    learner.decide_many(X)
    learner.partial_fit(X, y)
    learner.learn(learner.decide(X[0]), correct=True)


@forks
def test_a_forked_child_finds_a_whole_learner():
    X, y = stream(2_000)
    learner = OneBitClassifier(**FULL).fit(X[:100], y[:100])
    learner.learn(learner.decide(X[0]), correct=True)
    learner.policy(X[:50])
    with meanwhile(lambda: learner.partial_fit(X, y)):
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    assert_sound(learner, X[:50])
                    learner.learn(learner.decide(X[0]), correct=True)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0


@forks
def test_nobody_waits_for_a_learner_that_another_thread_starts():
    """A lock for starting made started learners wait, in a process forked meanwhile for ever."""
    learner, X, y = small_learner()
    other = Banditron(classes=range(3), random_state=0)
    begun, go, begin = threading.Event(), threading.Event(), other._begin

    def slowly(*sizes):
        begun.set()
        go.wait(60)
        return begin(*sizes)

    def in_forked_process():
        use(learner, X, y)
        assert not hasattr(other, "classes_")
        other._begin = begin
        use(other, X, y)

    other._begin = slowly
    with ThreadPoolExecutor(1) as threads:
        started = threads.submit(other.decide, X[0])
        try:
            assert begun.wait(60)
            assert in_child(in_forked_process) == 0
            before = time.perf_counter()
            use(learner, X, y)
            assert time.perf_counter() - before < 5.0
            assert not started.done()
        finally:
            go.set()
        started.result()
    assert other.n_features_in_ == 3


class Forking(ClassifierMixin, BaseEstimator):
    """A classifier that forks while another thread waits for the learner around it."""

    learner = code = thread = None

    def partial_fit(self, X, y, classes=None):
        if self.learner is None:
            return
        self.thread = threading.Thread(target=self.learner.decide, args=(X[0],), daemon=True)
        self.thread.start()
        queue = self.learner._run.lock._queue
        while queue.acquire(False):  # until the thread waits
            queue.release()
            time.sleep(0.01)
        self.code = in_child(partial(self.learner.decide, X[0]))

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


@forks
@pytest.mark.xdist_group("bandit_reduction")
def test_a_fork_inside_a_round_waits_for_nobody():
    """It waited for a thread that waited for the round to end."""
    learner = BanditReduction(Forking(), 1.0, classes=[0, 1], random_state=0)
    learner.decide(np.ones(2))
    classifier = learner.learner_
    classifier.learner = learner
    while classifier.thread is None:
        learner.learn(learner.decide(np.ones(2)), correct=True)
    classifier.thread.join(60)
    assert not classifier.thread.is_alive()
    assert classifier.code == 0


@forks
@pytest.mark.parametrize("inside", [False, True], ids=["too long", "inside a round"])
def test_a_learner_that_could_not_be_waited_for_is_refused_in_the_child(inside, monkeypatch):
    monkeypatch.setattr(fair_lock, "LONGEST_WAIT", 0.2)
    (learner, X, y), (other, _, _) = small_learner(), small_learner()

    def in_forked_process():
        use(other, X, y)
        for call in (lambda: use(learner, X, y), lambda: learner.policy(X)):
            with pytest.raises(RuntimeError, match="when this process was forked"):
                call()

    with held(learner._run.lock) as done:
        before = time.perf_counter()
        if inside:
            with other._run.lock:
                assert in_child(in_forked_process) == 0
        else:
            assert in_child(in_forked_process) == 0
        assert time.perf_counter() - before < 15.0
        done.set()
        use(learner, X, y)


@forks
def test_a_fork_waits_until_nobody_compiles():
    """Its child could never compile, as nobody there releases Numba's lock."""

    def compile_nothing():
        with compiler_lock:
            pass

    with held(compiler_lock) as done:
        threading.Timer(0.2, done.set).start()
        assert in_child(compile_nothing) == 0


@forks
def test_a_fork_inside_a_round_while_another_thread_forks():
    """Each waited for what the other held."""
    (learner, X, y), (other, _, _) = small_learner(), small_learner()
    with ThreadPoolExecutor(1) as threads:
        with other._run.lock:
            waits = threads.submit(in_child, lambda: use(learner, X, y))
            while fair_lock._FORKING.acquire(False):  # until the thread forks
                fair_lock._FORKING.release()
                time.sleep(0.01)
            time.sleep(0.1)
            assert in_child(lambda: (use(other, X, y), use(learner, X, y))) == 0
        assert waits.result() == 0


def test_an_interrupt_leaves_no_lock_held():
    """One right after a lock was acquired left it so, and other threads waited for ever."""
    ended = run_python(
        """
        import signal, threading, time
        import numpy as np
        from onebit import Banditron

        class Interrupt(BaseException):
            pass

        def interrupt(*_):
            raise Interrupt

        X, y = np.eye(3), [0, 1, 2]
        learner = Banditron(classes=range(3), random_state=0).partial_fit(X, y)
        learner.learn(learner.decide(X[0]), correct=True)
        signal.signal(signal.SIGALRM, interrupt)
        count, rng, end = 0, np.random.default_rng(0), time.monotonic() + 1.0
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 2e-4))
                while True:
                    learner.learn(learner.decide(X[0]), correct=True)
                    learner.partial_fit(X[:1], y[:1])
            except Interrupt:
                count += 1
        thread = threading.Thread(target=learner.decide, args=(X[0],), daemon=True)
        thread.start()
        thread.join(20)
        print(count > 100, thread.is_alive())
        """
    )
    assert (ended.stdout.split(), ended.stderr) == (["True", "False"], "")


def test_a_signal_handler_may_use_the_learner():
    """It waited for the place in the queue that its own thread had."""
    ended = run_python(
        """
        import signal, threading, time
        import numpy as np
        from onebit import Banditron

        learner = Banditron(classes=range(3), random_state=0).partial_fit(np.eye(3), [0, 1, 2])
        learner.decide([1.0, 2.0, 3.0])
        signal.signal(signal.SIGALRM, lambda *_: print(learner.decide([1.0, 2.0, 3.0]).label < 3))
        ready = threading.Event()

        def hold():
            with learner._run.lock:
                ready.set()
                time.sleep(0.5)

        threading.Thread(target=hold).start()
        ready.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        learner.decide([1.0, 2.0, 3.0])
        print("done")
        """
    )
    assert (ended.stdout.split(), ended.stderr) == (["True", "done"], "")


@forks
def test_threads_that_fork_at_once_wait_for_each_other():
    """Learners that started meanwhile were released by the wrong thread, and others never."""
    ended = run_python(
        """
        import os, sys, threading, warnings
        from onebit.core.fair_lock import FairLock

        def fork():
            for _ in range(40):
                started.append(FairLock())
                child = os.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)

        warnings.simplefilter("ignore")
        sys.setswitchinterval(1e-5)
        started = []
        threads = [threading.Thread(target=fork, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        print(*(thread.is_alive() for thread in threads))
        print(all(lock.acquire(False) and lock._queue.acquire(False) for lock in started))
        """
    )
    assert (ended.stdout.split(), ended.stderr) == (["False", "False", "False", "True"], "")


@pytest.mark.xdist_group("bandit_reduction")
def test_the_learner_inside_shares_the_lock():
    """`learner_` of a reduction is the same state, so it has the same lock."""
    X, y = stream(500)
    learner = BanditReduction(Folklore(), 0.9, random_state=0).fit(X, y)
    assert learner.learner_._run.lock is learner._run.lock
    with meanwhile(lambda: learner.partial_fit(X, y), lambda: learner.learner_.partial_fit(X, y)):
        time.sleep(0.5)
    assert_finite(learner, X)


def test_threads_that_fit_leave_the_features_of_one_of_them(monkeypatch):
    """The number of features could be that of one thread, and the weights those of another."""
    delays = itertools.cycle([0.06, 0.03, 0.0])  # who comes first is slowest

    def slowly(*arguments, **options):
        time.sleep(next(delays))
        return validate_data(*arguments, **options)

    monkeypatch.setattr("onebit.core.base.validate_data", slowly)
    learner = Banditron(random_state=0)
    fits = [partial(learner.fit, np.eye(d, 7 - d), np.arange(d) % 2) for d in (2, 3, 4)]
    for _ in range(5):
        with ThreadPoolExecutor(len(fits)) as threads:
            for future in [threads.submit(fit) for fit in fits]:
                future.result()
        assert learner.policy(np.ones((1, learner.n_features_in_))).shape == (1, 2)
