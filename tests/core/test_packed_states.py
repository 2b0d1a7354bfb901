"""States packed into tables, which single rounds take by their addresses."""

import copy
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import typeof
from numba.core.errors import TypingError

from onebit import Banditron
from onebit.core.compiling import HOOKS, compiled, entry_point, open_state, pack, packed_type
from onebit.core.hooks import Hook
from onebit.core.packed_states import PackedState, unpacked

pytestmark = pytest.mark.skipif(Hook.STATES not in HOOKS, reason="states are not packed")


class Inner(NamedTuple):
    flag: bool
    nothing: None
    cube: np.ndarray


class Outer(NamedTuple):
    count: np.ndarray
    inner: Inner
    number: float
    whole: int
    pairs: tuple[int, int]
    columns: np.ndarray


def new_state():
    cube = np.arange(24.0).reshape(2, 3, 4)
    return Outer(np.array(7), Inner(True, None, cube), -0.25, -3, (4, 5), np.eye(3)[:, ::2])


def look(packed):
    state = open_state(packed)
    state.count[()] += 1
    cube = state.inner.cube
    cube[1, 2, 3] += 0.5
    shape = cube.shape[0] + 10 * cube.shape[1] + 100 * cube.shape[2] + 1000 * cube.size
    numbers = (state.number, state.whole, state.pairs[1], state.inner.flag)
    return shape, cube[0, 1, 2], state.columns[2, 1], state.columns.sum(), numbers


def test_compiled_code_reads_and_writes_what_the_state_has():
    state = new_state()
    function = compiled("look", look, nogil=False)
    signature = (packed_type(typeof(state)),)
    call, packed = entry_point(function, signature), pack(state)
    for n in (1, 2):
        assert call(packed) == (24_432, 6.0, 1.0, 2.0, (-0.25, -3, 5, True))
        assert state.count == 7 + n
        assert state.inner.cube[1, 2, 3] == 23.0 + 0.5 * n


def look_without_opening(state):
    inner = state.inner
    state.count[()] += 1
    cube = inner.cube
    cube[1, 2, 3] += 0.5
    nothing = 1.0 if inner.nothing is None else 0.0
    numbers = (state.number, state.whole, state.pairs[1], inner.flag)
    return cube[0, 1, 2], state.columns[2, 1], cube.shape[2], nothing, numbers


def test_compiled_code_reads_fields_of_a_packed_state_one_by_one():
    state = new_state()
    function = compiled("look", look_without_opening, nogil=False)
    call = entry_point(function, (packed_type(typeof(state)),))
    assert call(pack(state)) == (6.0, 1.0, 4, 1.0, (-0.25, -3, 5, True))
    assert state.count == 8
    assert state.inner.cube[1, 2, 3] == 23.5


def test_a_field_that_there_is_not_is_an_error():
    function = compiled("look", lambda state: state.inner.missing, nogil=False)
    with pytest.raises(TypingError, match="missing"):
        function.compile((packed_type(typeof(new_state())),))


def test_types_of_packed_states_differ_if_any_field_does():
    state = new_state()
    other = state._replace(inner=state.inner._replace(cube=np.zeros(3)))
    assert packed_type(typeof(state)) == packed_type(typeof(new_state()))
    assert packed_type(typeof(state)) != packed_type(typeof(other))


def test_an_argument_that_is_no_address_is_refused():
    """Types are trusted; a state in place of its address would be read as one."""
    learner = Banditron(classes=range(3), random_state=0)
    learner.decide(np.ones(2))
    run = learner._run
    with pytest.raises(TypeError):
        run.decide(run.state, learner.decide(np.ones(2)).x, run.scores, run.all_labels, run.p, 2)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_a_copy_has_a_table_of_its_own(copied):
    packed = pack(new_state())
    other = copied(packed)
    assert isinstance(other, PackedState)
    assert other != packed
    assert int(other) == other.table.__array_interface__["data"][0]
    assert other.table[0] == unpacked(other).count.__array_interface__["data"][0]


@pytest.mark.parametrize("odd", ["text", 2**70 * 1.0j, np.float32(1.0), [1]])
def test_a_state_with_anything_else_stays_as_it_is(odd: Any):
    state = new_state()._replace(number=odd)
    assert pack(state) is state
    assert unpacked(state) is state


def test_a_run_packs_its_state_anew_when_that_is_replaced():
    learner = Banditron(classes=range(2), random_state=0)
    learner.learn(learner.decide(np.ones(2)), correct=True)
    before = learner._run.packed
    W = np.array([[0.0, 0.0], [5.0, 5.0], [0.0, 0.0]])
    learner.add_classes([2])
    assert unpacked(learner._run.packed) is learner._run.state
    assert learner._run.packed != before
    learner._run.state = learner._run.state._replace(W=np.ascontiguousarray(W.T))
    assert learner.predict([[1.0, 1.0]]) == [1]
    assert learner.decide([1.0, 1.0]).confidence is None


def test_kernels_refuse_a_state_of_another_form():
    learner = Banditron(classes=range(3), random_state=0)
    learner.decide([1.0, 2.0])
    kernels, state = learner._run.kernels, learner._run.state
    for other in (None, np.zeros(2), np.zeros((2, 3), dtype=np.int64)):
        with pytest.raises(TypeError, match="a state of another form"):
            kernels.pack(state._replace(W=other))
    kernels.pack(state._replace(W=np.zeros((5, 3))))
