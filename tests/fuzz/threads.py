"""Several threads, forked processes and signals, with one learner."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import forms, values
from fuzz.soundness import REFUSALS, assert_distribution, assert_sound, copied, tell
from onebit import load, play
from onebit.core.learner import Learner


class Interrupt(BaseException):
    """Raised by a signal handler, as KeyboardInterrupt is."""


TIMEOUT = 60.0
"""Seconds after which a thread counts as stuck."""


def case(form: str, rng: np.random.Generator) -> None:
    """Let three threads use one learner at once, or a signal interrupt what one of them does."""
    learner = forms.made(form, int(rng.integers(2, 5)), seed=int(rng.integers(2**31)))
    d = int(rng.integers(1, 6))
    learner.decide(np.ones(d))
    n = 5 if forms.is_python(learner) else 25
    chosen = rng.random()
    if chosen < 0.3 and threading.current_thread() is threading.main_thread():
        interrupted(learner, rng, n)
    elif chosen < 0.5:
        deciding_together(learner, rng, 3, 20 * n)
    else:
        together(learner, [(int(rng.integers(2**31)), n) for _ in range(3)])
    assert_sound(learner)


def together(learner: Learner, work: list[tuple[int, int]]) -> None:
    """Let a thread for each (seed, n) do `n` things that the seed chooses."""
    run([lambda seed=seed, n=n: _do(learner, seed, n) for seed, n in work])


def deciding_together(learner: Learner, rng: np.random.Generator, threads: int, n: int) -> None:
    """Let threads decide, each for an x of its own: each decision has the probability of its x."""
    X = values.matrix(rng, threads, learner.n_features_in_, "gentle")
    policies = learner.policy(X)
    classes = learner.classes_.tolist()

    def decide(i: int) -> None:
        for _ in range(n):
            decision = learner.decide(X[i])
            p = policies[i, classes.index(decision.label)]
            assert decision.probability == p, f"{decision!r} for row {i}, with policies {policies}"

    run([lambda i=i: decide(i) for i in range(threads)])


def run(tasks: list[Any]) -> None:
    """Run each task in a thread; raise what one of them raised, or if one is stuck."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(tasks))

    def guarded(task: Any) -> None:
        try:
            start.wait()
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,), daemon=True) for task in tasks]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads), "a thread is stuck"
    if errors:
        raise errors[0]


def interrupted(learner: Learner, rng: np.random.Generator, n: int) -> None:
    """Interrupt the main thread, again and again, while another thread uses the learner, too.

    Half of the signals raise; the others use the learner. None may leave it locked, or unsound.
    """
    raises = rng.random() < 0.5
    if raises and forms.is_python(learner):
        return  # a round that is Python is interrupted half-way: its state is what it then is
    errors: list[BaseException] = []

    def handle(*_: Any) -> None:
        if raises:
            raise Interrupt
        _do(learner, int(rng.integers(2**31)), 1)

    def use() -> None:
        try:
            _do(learner, seed, n)
        except BaseException as error:
            errors.append(error)

    seed, before = int(rng.integers(2**31)), signal.signal(signal.SIGALRM, handle)
    other = threading.Thread(target=use, daemon=True)
    other.start()
    try:
        for _ in range(n):
            with suppress(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 2e-3))
                # Python's own handlers of forks, such as that of logging, bear no interrupt.
                _do(learner, int(rng.integers(2**31)), 3, forks=not raises)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:
        with suppress(Interrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    other.join(TIMEOUT)
    assert not other.is_alive(), "a thread is stuck after signals"
    if errors:
        raise errors[0]
    run([lambda: _do(learner, seed, 3)] * 2)


def _do(learner: Learner, seed: int, n: int, *, forks: bool = True) -> None:
    rng = np.random.default_rng(seed)
    pending: list[Any] = []
    names = ["decide"] * 4 + ["learn"] * 4 + ["rows", "rows", "play", "look", "save", "copy"]
    names += ["fit", "fork"] if forks and hasattr(os, "fork") else ["fit"]
    for _ in range(n):
        # Another thread may have changed the number of features or classes at any moment.
        try:
            _one(learner, rng, rng.choice(names), pending)
        except REFUSALS:
            pending.clear()


def _one(learner: Learner, rng: np.random.Generator, name: str, pending: list[Any]) -> None:
    d = learner.n_features_in_
    if name == "decide":
        decision = learner.decide(values.matrix(rng, 1, d, "gentle")[0])
        assert 0.0 < decision.probability <= 1.0, decision
        pending.append(decision)
    elif name == "learn" and pending:
        decision = pending.pop(rng.integers(len(pending)))
        tell(learner, decision, forms.labels(rng, learner, 1)[0])
    elif name == "rows" or name == "play":
        n = int(rng.integers(1, 12 if forms.is_python(learner) else 300))
        X, y = values.matrix(rng, n, d, "gentle"), forms.labels(rng, learner, n)
        if name == "rows":
            learner.partial_fit(X, y)
        else:
            assert play(learner, X, y).rounds == n
    elif name == "look":
        X = values.matrix(rng, 4, d, "gentle")
        assert_distribution(learner.policy(X))
        assert not np.isnan(learner.decision_function(X)).any()
        learner.predict(X)
    elif name == "save":
        if not forms.is_of_another_library(learner):
            assert_sound(saved_and_loaded(learner))
    elif name == "copy":
        assert_sound(copied(learner) if rng.random() < 0.5 else pickle.loads(pickle.dumps(learner)))
    elif name == "fit" and rng.random() < 0.2:
        d, K = int(rng.integers(1, 6)), len(learner.classes)
        X = values.matrix(rng, 2 * K, d, "gentle")
        learner.fit(X, [learner.classes[i % K] for i in range(2 * K)])
    elif name == "fork" and rng.random() < 0.1:
        _fork(learner)


def saved_and_loaded(learner: Learner) -> Learner:
    with tempfile.TemporaryDirectory(prefix="onebit-fuzz-") as folder:
        path = Path(folder) / "learner.safetensors"
        learner.save(path)
        return load(path)


def _fork(learner: Learner) -> None:
    """A forked process has a whole learner, whatever the threads were doing."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(int(TIMEOUT))
            X = np.ones((1, learner.n_features_in_))
            tell(learner, learner.decide(X[0]), learner.classes_.tolist()[0])
            assert_sound(learner)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"a forked process ended with status {status}"
