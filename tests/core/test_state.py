from typing import Annotated, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone

from forms import every_form, first_forms, n_classes
from onebit import play
from onebit.core.growing import Growing
from onebit.core.state import (
    LABELS,
    ROWS,
    Count,
    Field,
    Generator,
    Weights,
    Within,
    at,
    check_state,
    declared,
    sizes_of,
    stacked,
)
from onebit.numerics.linear import Scaled, new_scaled
from onebit.numerics.second_order import PENDING, Inverse, new_inverse, new_inverses, subtract


def trained(learner, rounds=100):
    K = n_classes(learner, 3)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rounds, 4)), rng.integers(K, size=rounds)
    learner = clone(learner).set_params(random_state=0, classes=list(range(K)))
    play(learner, X, y)
    return learner, sizes(learner)


def sizes(learner):
    found = sizes_of(learner.n_features_in_, learner.classes_.size, learner.get_params())
    return {name.rpartition("__")[2]: size for name, size in found.items()}


@every_form
def test_every_array_is_declared(learner):
    """Without a round, which would have to be compiled."""
    learner = clone(learner)
    learner._start(np.arange(n_classes(learner, 3)), 4)
    assert_declared(learner, sizes(learner))


@first_forms()
def test_every_array_is_as_declared(learner):
    assert_declared(*trained(learner))


def assert_declared(learner, found):
    for name, _, field in declared(learner._run.state):
        if not name.endswith("updates"):  # of a classifier of another library
            assert field is not None, name
    check_state(learner._run.state, found)


class State(NamedTuple):
    W: Weights
    A_inv: Annotated[Inverse, Within(n="weights")]
    each: Annotated[Inverse, Within(n="features", each="classes")]
    scaled: Scaled
    labels: Annotated[Growing, LABELS]
    values: Annotated[Growing, Field(ROWS)]
    t: Count
    rng: Generator


def state(d=2, K=3):
    return State(
        W=np.zeros((d, K)),
        A_inv=new_inverse(d * K, 1.0),
        each=new_inverses(K, d, 1.0),
        scaled=new_scaled(d, K),
        labels=Growing(np.array([0, 2, 1])),
        values=Growing(np.zeros(3)),
        t=np.zeros((), dtype=np.int64),
        rng=np.zeros(4, dtype=np.uint64),
    )


SIZES = sizes_of(2, 3, {})


def test_axes_have_names():
    axes = {name: field.axes for name, _, field in declared(state())}
    assert axes["W"] == ("features", "classes")
    assert axes["A_inv.base"] == ("weights", "weights")
    assert axes["A_inv.vectors"] == (PENDING, "weights")
    assert axes["each.n_pending"] == ("classes", 1)
    assert axes["labels.rows"] == (ROWS,)


def test_a_sound_state_passes():
    good = state()
    rng = np.random.default_rng(0)
    for _ in range(PENDING + 10):
        v = rng.normal(size=6)
        v /= np.linalg.norm(v)
        subtract(good.A_inv, v, 1e-3)
    check_state(good, SIZES)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"W": np.zeros((3, 2))}, r"W is float64\[3, 2\], and should be float64\[2, 3\]"),
        ({"W": np.zeros((2, 3), dtype=np.float32)}, "W is float32"),
        ({"W": np.full((2, 3), np.nan)}, r"W\[0, 0\] is nan"),
        ({"W": np.array([[0, 0, 0], [0, np.inf, 0]])}, r"W\[1, 1\] is inf"),
        ({"W": np.full((2, 3), 1e200)}, "W"),
        ({"rng": np.zeros(0, dtype=np.uint64)}, r"rng is uint64\[0\]"),
        ({"t": np.array(-1)}, "t is -1, and should be from 0"),
        ({"t": np.array(2**62)}, "t is"),
        ({"labels": Growing(np.array([0, 1, 3]))}, r"labels.rows\[2\] is 3"),
        ({"labels": Growing(np.array([0, -1, 2]))}, r"labels.rows\[1\] is -1"),
        ({"labels": Growing(np.array([0, 1]))}, r"values.rows is float64\[3\]"),
        ({"scaled": new_scaled(2, 3)._replace(scale=np.zeros(()))}, "scaled.scale is 0"),
        ({"A_inv": new_inverse(5, 1.0)}, "A_inv.base"),
        *(
            ({"A_inv": new_inverse(6, 1.0)._replace(n_pending=np.array([n]))}, "A_inv.n_pending")
            for n in (PENDING, PENDING + 1, 10**6, 2**40, -PENDING - 1, -1)
        ),
        ({"A_inv": new_inverse(6, 1.0)._replace(base=-2.0 * np.eye(6))}, "A_inv.base minus what"),
    ],
)
def test_what_kernels_rely_on_is_checked_by_name(change, words):
    with pytest.raises(ValueError, match=words):
        check_state(state()._replace(**change), SIZES)


def test_inverses_are_symmetric_and_positive():
    for n in (new_inverse(6, 1.0), new_inverses(3, 2, 1.0)):
        name = "A_inv" if n.base.ndim == 2 else "each"
        n.base[..., 0, 1] = 1e-3
        with pytest.raises(ValueError, match=f"{name}.base is not symmetric"):
            check_state(state()._replace(**{name: n}), SIZES)
    with pytest.raises(ValueError, match=r"each.base is larger than 1, which it was at first"):
        check_state(state()._replace(each=new_inverses(3, 2, 0.5)._replace(first=1.0)), SIZES)
    pending = new_inverse(6, 1.0)
    subtract(pending, np.ones(6), 1.9)
    with pytest.raises(ValueError, match="is not positive semidefinite"):
        check_state(state()._replace(A_inv=pending), SIZES)


def test_states_without_declarations_are_finite():
    class Plain(NamedTuple):
        W: np.ndarray

    check_state(Plain(np.zeros(2)), SIZES)
    with pytest.raises(ValueError, match="W contains NaN"):
        check_state(Plain(np.array([np.nan])), SIZES)


class Outer(NamedTuple):
    A_inv: Annotated[Inverse, Within(n="features")]
    t: Count


class Stacked(NamedTuple):
    many: Annotated[tuple, Within(each="n_copies")]


def test_states_are_stacked_with_an_axis_more():
    copies = [Outer(new_inverse(2, 1.0 + i), np.array(i)) for i in range(3)]
    copies = [one._replace(A_inv=one.A_inv._replace(first=1.0)) for one in copies]
    state = Stacked(stacked(copies))
    axes = {found.name: found.field.axes for found in declared(state)}
    assert axes["many.A_inv.base"] == ("n_copies", "features", "features")
    assert axes["many.t"] == ("n_copies",)
    for i, one in enumerate(copies):
        view = at(state.many, i)
        assert isinstance(view, Outer)
        np.testing.assert_array_equal(view.A_inv.base, one.A_inv.base)
        view.t[()] += 10
    assert state.many.t.tolist() == [10, 11, 12]
    check_state(state, {"features": 2, "n_copies": 3})
    state.many.A_inv.base[1, 0, 1] = 7.0
    with pytest.raises(ValueError, match="base is not symmetric"):
        check_state(state, {"features": 2, "n_copies": 3})
