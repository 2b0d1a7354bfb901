"""The life of a learner, as a state machine: any call, in any order, with sound and hostile input.

After each step all that the learner holds and says is finite, and a call that was refused has
changed nothing (`soundness`).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import scipy.sparse as sp
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sklearn.base import clone

from fuzz import arrays, forms, threads, values
from fuzz.soundness import (
    assert_continues_identically,
    assert_distribution,
    assert_same,
    assert_sound,
    attempt,
    copied,
    probability_of,
    snapshot,
    tell,
)
from onebit import Decision, play
from onebit.core.learner import Learner

KINDS = st.sampled_from(["gentle", "mixed", "wide"])
SEEDS = st.integers(0, 2**32 - 1)
ANSWERS: list[Any] = [True, False, 1, 0, np.True_, 0.5, "yes", None, np.array([1, 0]), np.nan]


class Life(RuleBasedStateMachine):
    """Everything that can be done with one learner."""

    learner: Learner
    each_step: Callable[[], Any] = staticmethod(int)

    def start(self, form: str, d: int, n_classes: int, words: bool, seed: int) -> None:
        self.learner = forms.made(form, n_classes, words=words, seed=seed)
        self.learner.decide(np.ones(d))
        self.wide = "gentle" if forms.is_of_another_library(self.learner) else "wide"
        self.pending: list[Decision] = []
        self.told: list[Decision] = []

    @invariant()
    def sound(self) -> None:
        self.each_step()
        assert_sound(self.learner)

    # Rounds

    @rule(kind=KINDS, sparse=st.booleans(), seed=SEEDS)
    def decide(self, kind, sparse, seed):
        rng = np.random.default_rng(seed)
        x = self.row(rng, kind, sparse)
        before = snapshot(self.learner)
        refused, decision = attempt(self.learner, lambda: self.learner.decide(x), must=self.must)
        if refused:
            return
        after = snapshot(self.learner)
        before.pop("rng"), after.pop("rng")
        assert_same(before, after, "decide changed more than the generator")
        X = x if sparse else x[np.newaxis]
        assert decision.probability == probability_of(self.learner, decision, X)
        self.pending.append(decision)

    @rule(which=st.integers(0, 99), seed=SEEDS)
    def learn(self, which, seed):
        if self.pending:
            decision = self.pending.pop(which % len(self.pending))
            truth = forms.labels(np.random.default_rng(seed), self.learner, 1)[0]
            # Its features or its label may be gone since a `fit`.
            refused, _ = attempt(self.learner, lambda: tell(self.learner, decision, truth))
            if not refused:
                self.told.append(decision)

    @rule(which=st.integers(0, 99))
    def learn_twice(self, which):
        if self.told:
            decision = self.told[which % len(self.told)]
            truth = forms.labels(np.random.default_rng(which), self.learner, 1)[0]
            attempt(self.learner, lambda: tell(self.learner, decision, truth), must="refuse")

    @rule(which=st.integers(0, 99))
    def wait_as_json(self, which):
        if self.pending:
            i = which % len(self.pending)
            text = json.dumps(self.pending[i].to_dict())
            self.pending[i] = Decision.from_dict(json.loads(text))

    @rule(n=st.integers(1, 5), kind=KINDS, sparse=st.booleans(), seed=SEEDS)
    def many(self, n, kind, sparse, seed):
        rng = np.random.default_rng(seed)
        X, truths = self.matrix(rng, n, kind, sparse), forms.labels(rng, self.learner, n)
        refused, decisions = attempt(
            self.learner, lambda: self.learner.decide_many(X), must=self.must
        )
        if not refused:
            told = {"correct": [d.label == y for d, y in zip(decisions, truths, strict=True)]}
            told = {"truth": truths} if self.learner.feedback == "full" else told
            learn = partial(self.learner.learn_many, decisions, **told)
            attempt(self.learner, learn, must="either" if n > 1 else self.must)

    # Labels

    @rule(seed=SEEDS)
    def retire(self, seed):
        label = forms.labels(np.random.default_rng(seed), self.learner, 1)[0]
        attempt(self.learner, lambda: self.learner.retire_classes([label]))

    @rule(seed=SEEDS)
    def add(self, seed):
        labels = self.learner.classes_.tolist()
        new = f"new {seed}" if isinstance(labels[0], str) else max(labels) + 1
        back = self.learner.retired_classes_.tolist()
        if len(labels) < 8:
            back.append(new)
        for label in back[-1:]:
            attempt(self.learner, lambda label=label: self.learner.add_classes([label]))

    @rule(kind=KINDS, p=st.sampled_from(values.PROBABILITIES), sparse=st.booleans(), seed=SEEDS)
    def learn_from_log(self, kind, p, sparse, seed):
        rng = np.random.default_rng(seed)
        label, truth = forms.labels(rng, self.learner, 2)
        decision = Decision(self.row(rng, kind, sparse), label, p)
        attempt(self.learner, lambda: tell(self.learner, decision, truth), must=self.must)

    @rule(p=st.sampled_from(values.IMPROBABLE), seed=SEEDS)
    def learn_from_improbable(self, p, seed):
        rng = np.random.default_rng(seed)
        label, truth = forms.labels(rng, self.learner, 2)
        decision = Decision(self.row(rng, "gentle", False), label, p)
        attempt(self.learner, lambda: tell(self.learner, decision, truth), must="refuse")

    @rule(p=st.sampled_from(range(len(values.STRANGE_PROBABILITIES))), seed=SEEDS)
    def learn_from_strange_log(self, p, seed):
        rng = np.random.default_rng(seed)
        label, truth = forms.labels(rng, self.learner, 2)
        x, p = self.row(rng, "gentle", False), values.STRANGE_PROBABILITIES[p]
        attempt(self.learner, lambda: tell(self.learner, Decision(x, label, p), truth))

    @rule(answer=st.sampled_from(range(len(ANSWERS))), as_truth=st.booleans(), seed=SEEDS)
    def learn_strange_answer(self, answer, as_truth, seed):
        rng = np.random.default_rng(seed)
        x, label = self.row(rng, "gentle", False), forms.labels(rng, self.learner, 1)[0]
        decision = Decision(x, label, 0.5)
        told = {"truth" if as_truth else "correct": ANSWERS[answer]}
        attempt(self.learner, lambda: self.learner.learn(decision, **told))

    @rule(seed=SEEDS)
    def hostile_array(self, seed):
        before = self.learner._run
        arrays.one_array(self.learner, np.random.default_rng(seed))
        if self.learner._run is not before:  # it was fitted, and knows no decision from before
            self.told = []

    @rule(kind=KINDS, n=st.integers(1, 80), sparse=st.booleans(), way=st.booleans(), seed=SEEDS)
    def rows(self, kind, n, sparse, way, seed):
        rng = np.random.default_rng(seed)
        n = min(n, 8) if forms.is_python(self.learner) else n
        X, y = self.matrix(rng, n, kind, sparse), forms.labels(rng, self.learner, n)
        if way:
            attempt(self.learner, lambda: self.learner.partial_fit(X, y), must=self.must)
        else:
            attempt(self.learner, lambda: play(self.learner, X, y), must=self.must)

    @rule(d=st.integers(1, 5), n_classes=st.integers(2, 4), kind=KINDS, seed=SEEDS)
    def fit(self, d, n_classes, kind, seed):
        rng = np.random.default_rng(seed)
        if not self.learner.__sklearn_tags__().classifier_tags.multi_class:
            n_classes = 2
        classes = forms.WORDS[-n_classes:]
        self.learner.set_params(classes=None if seed % 2 else classes)
        X = values.matrix(rng, 2 * n_classes, d, kind if self.wide == "wide" else "gentle")
        refused, _ = attempt(self.learner, lambda: self.learner.fit(X, classes * 2), must=self.must)
        if not refused:
            self.told = []
            assert (self.learner.n_features_in_, self.learner.classes_.size) == (d, n_classes)

    # Looking, files and copies

    @rule(kind=KINDS, n=st.integers(1, 5), sparse=st.booleans(), seed=SEEDS)
    def look(self, kind, n, sparse, seed):
        X = self.matrix(np.random.default_rng(seed), n, kind, sparse)
        before = snapshot(self.learner)
        refused, p = attempt(self.learner, lambda: self.learner.policy(X), must=self.must)
        if not refused:
            assert_distribution(p)
            assert not np.isnan(self.learner.decision_function(X)).any()
            self.learner.predict(X)
        assert_same(before, snapshot(self.learner), "changed by looking")

    @rule(way=st.sampled_from(["file", "pickle", "deepcopy"]), swap=st.booleans(), seed=SEEDS)
    def copy(self, way, swap, seed):
        if way == "file" and forms.is_of_another_library(self.learner):
            attempt(self.learner, lambda: threads.saved_and_loaded(self.learner), must="refuse")
            return
        other = {
            "file": threads.saved_and_loaded,
            "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),
            "deepcopy": copied,
        }[way](self.learner)
        assert_continues_identically(self.learner, other, np.random.default_rng(seed))
        if swap:
            self.learner = (
                other  # which knows all since the last `fit`, also one in `hostile_array`
            )
            self.told = [decision for decision in self.told if other.has_learned(decision)]

    @rule()
    def clone(self):
        before = snapshot(self.learner)
        other = clone(self.learner)
        assert not other._started
        assert str(other.get_params()) == str(self.learner.get_params())
        assert_same(before, snapshot(self.learner), "changed by cloning")

    # Threads

    @rule(seeds=st.lists(SEEDS, min_size=2, max_size=3), n=st.integers(1, 8))
    def together(self, seeds, n):
        self.pending = []
        threads.together(self.learner, [(seed, n) for seed in seeds])

    @rule(seed=SEEDS, count=st.integers(2, 3))
    def decide_together(self, seed, count):
        threads.deciding_together(self.learner, np.random.default_rng(seed), count, 10)

    # What they are made of

    @property
    def must(self) -> str:
        """Compiled kernels take every value that is allowed; Python ones may refuse some."""
        return "either" if forms.is_python(self.learner) else "accept"

    def matrix(self, rng: np.random.Generator, n: int, kind: str, sparse: bool) -> Any:
        kind = kind if self.wide == "wide" else "gentle"
        X = values.matrix(rng, n, self.learner.n_features_in_, kind)
        return sp.csr_array(X) if sparse else X

    def row(self, rng: np.random.Generator, kind: str, sparse: bool) -> Any:
        X = self.matrix(rng, 1, kind, sparse)
        return X if sparse else X[0]


def machine(*names: str) -> type[Life]:
    """Return the life of any of these forms."""

    class OneLife(Life):
        @initialize(
            form=st.sampled_from(names),
            d=st.integers(1, 4),
            n_classes=st.integers(2, 4),
            words=st.booleans(),
            seed=st.integers(0, 1000),
        )
        def begin(self, form, d, n_classes, words, seed):
            self.start(form, d, n_classes, words, seed)

    return OneLife
