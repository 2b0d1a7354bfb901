"""Compiling ahead: a process that comes later compiles nothing."""

import os
from pathlib import Path

import numpy as np
import pytest

import onebit
from onebit import Banditron, OneBitClassifier, Perceptron, warm_up
from onebit.core.compiling import HOOKS, counts
from onebit.core.hooks import Hook
from processes import run_python

SERVICE = """
import numpy as np, scipy.sparse as sp
from onebit import {name}, play
from onebit.core.compiling import counts
from onebit.core.engine import FEW_ROWS
X, y = np.random.default_rng(0).normal(size=(20, 7)), ["abcd"[i % 4] for i in range(20)]
learner = {learner}.set_params(classes=list("abcd"))
for x, truth in zip(X, y):
    learner.learn(learner.decide(x), truth=truth)
learner.learn(learner.decide(sp.csr_array(X[:1])), truth="a")
learner.learn(learner.decide(X[0], among=["a", "c"]), truth="a")
learner.policy(X, among=["a", "c"])
play(learner, X, y)
play(learner, sp.csr_array(X), y)
learner.policy(X)
learner.policy(np.resize(X, (FEW_ROWS + 1, 7)))
if hasattr(learner, "predict_proba"):
    learner.set_utility(cost={{"a": 0.1}})
learner.set_limits(max_exploration=0.5).decide(X[0])
print(*counts())
"""


def run(code, cache):
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONPATH": str(Path(onebit.__file__).parents[1]),
    }
    ended = run_python(code, environment=environment, check=True)
    return [int(word) for word in ended.stdout.split()[-2:]]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own: what the package has compiled already is not found."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


WITHOUT_THE_PACKAGE = """
from pathlib import Path
import os, onebit.core.code_cache as code_cache
code_cache.roots = lambda: [Path(os.environ["NUMBA_CACHE_DIR"], "onebit")]
"""


@pytest.mark.skipif(
    Hook.CACHE not in HOOKS, reason="plain Numba was seen to compile one function once more"
)
@pytest.mark.parametrize(
    "learner",
    [
        Banditron(),
        pytest.param(Perceptron(), marks=pytest.mark.slow),
        pytest.param(OneBitClassifier(covariance="full"), marks=pytest.mark.slow),
        pytest.param(OneBitClassifier(covariance="diagonal"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_later_process_compiles_nothing(learner, tmp_path):
    name = type(learner).__name__
    warm = f"""
from onebit import {name}, warm_up
form, = warm_up({learner}).forms
print(form.compiled, form.loaded)
"""
    compiled, loaded = run(WITHOUT_THE_PACKAGE + warm, tmp_path)
    assert compiled >= 4
    service = SERVICE.format(name=name, learner=learner)
    assert run(WITHOUT_THE_PACKAGE + service, tmp_path) == [0, compiled + loaded]


def test_learners_classes_and_names(cache):
    learner = Banditron(gamma=0.3, classes=["a", "b"])
    forms, folder = warm_up(learner, Banditron, "Perceptron")
    assert [str(form.learner) for form in forms] == [str(learner), "Banditron()", "Perceptron()"]
    assert not hasattr(learner, "classes_")
    assert folder == cache / "onebit"
    before = counts().compiled
    assert [form.compiled for form in warm_up(learner).forms] == [0]
    assert counts().compiled == before


@pytest.mark.parametrize("given", ["Nobody", 3, int, np.ones(2)])
def test_what_is_no_learner_is_refused(given):
    with pytest.raises(ValueError, match="learner"):
        warm_up(given)


def test_counts_and_times_are_those_of_each_form(monkeypatch):
    before = counts()
    clock = iter(range(100))
    monkeypatch.setattr("onebit.warming.perf_counter", lambda: float(next(clock)))
    forms = warm_up(Banditron(gamma=0.2), Perceptron()).forms
    assert [type(form.learner) for form in forms] == [Banditron, Perceptron]
    assert [form.seconds for form in forms] == [1.0, 1.0]
    assert sum(form.compiled for form in forms) == counts().compiled - before.compiled
    assert sum(form.loaded for form in forms) == counts().loaded - before.loaded
