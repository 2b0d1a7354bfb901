"""Learners in files of skops, which makes no object of a type that its reader did not trust."""

import sys
from importlib import import_module

import numpy as np
import pytest
from numba import typeof
from sklearn.base import clone

from forms import FORMS, n_classes
from onebit import BanditReduction, Banditron, OneBitClassifier, Perceptron, make_pipeline, play
from onebit.core.engine import PythonKernels, kernels_named
from onebit.features import Records
from problems import logistic
from processes import run_python

EVERY_DAY = {BanditReduction, Banditron, OneBitClassifier, Perceptron}


def skops_io():
    """Import skops, and with it all of scikit-learn, in the one process that needs it."""
    return import_module("skops.io")


def written_and_read(model):
    """Return a model from what skops writes of it, and the types that its reader trusts."""
    data = skops_io().dumps(model)
    types = skops_io().get_untrusted_types(data=data)
    return skops_io().loads(data, trusted=types), types


@pytest.mark.parametrize(
    "learner",
    [
        pytest.param(
            form, id=str(form), marks=[] if type(form) in EVERY_DAY else [pytest.mark.slow]
        )
        for form in FORMS
    ],
)
def test_a_learner_goes_on_from_a_file_of_skops(learner):
    X, y = logistic(60, 4, n_classes(learner, 3), 5.0)
    learner = clone(learner).set_params(random_state=0)
    learner.partial_fit(np.abs(X), y, classes=np.unique(y))
    other, types = written_and_read(learner)
    assert all(name.startswith("onebit.") for name in types)
    if not isinstance(learner._run.kernels, PythonKernels):  # compiled code trusts the types
        assert typeof(other._run.state) == typeof(learner._run.state)
    assert learner.decide(abs(X[0])).label == other.decide(abs(X[0])).label
    expected = play(learner, np.abs(X), y).mistakes
    np.testing.assert_array_equal(play(other, np.abs(X), y).mistakes, expected)
    np.testing.assert_array_equal(other.policy(np.abs(X)), learner.policy(np.abs(X)))


def test_copies_are_independent():
    learner = Banditron(random_state=0).fit(np.eye(3), ["a", "b", "c"])
    before = learner.coef_
    other, _ = written_and_read(learner)
    other.partial_fit(np.eye(3), ["c", "b", "a"])
    np.testing.assert_array_equal(learner.coef_, before)
    assert not np.array_equal(other.coef_, before)


def test_pipelines_and_learners_before_the_first_round():
    router = make_pipeline(Records(64), OneBitClassifier(classes=["a", "b"], random_state=0))
    for _ in range(2):
        other, _ = written_and_read(router)
        assert other.decide({"x": 1.0}).label == router.decide({"x": 1.0}).label
        for model in (router, other):
            model.learn(model.decide({"x": 1.0}), truth="b")
    np.testing.assert_array_equal(other.policy([{"x": 1.0}]), router.policy([{"x": 1.0}]))


GO_ON = """
import sys
import numpy as np
from skops import io

types = io.get_untrusted_types(file=sys.argv[1])
learner = io.load(sys.argv[1], trusted=types)
print(learner.partial_fit(np.eye(3), [2, 1, 0]).coef_.tolist())
"""


def test_goes_on_in_a_new_process(tmp_path):
    learner = Banditron(random_state=0).fit(np.eye(3), [0, 1, 2])
    skops_io().dump(learner, tmp_path / "learner.skops")
    output = run_python(GO_ON, tmp_path / "learner.skops", check=True).stdout
    assert output.strip() == str(learner.partial_fit(np.eye(3), [2, 1, 0]).coef_.tolist())


def test_kernels_are_not_imported_by_name():
    """Else a file could have any module imported."""
    sys.modules.pop("antigravity", None)
    with pytest.raises(ValueError, match=r"no kernels are named antigravity\.KERNELS"):
        kernels_named("antigravity", "KERNELS")
    assert "antigravity" not in sys.modules
