"""Each array in the file of a mixture, altered: it is refused, or the learner lives on."""

import contextlib
import os
import subprocess
import sys
from functools import cache
from itertools import islice

import numpy as np
import pytest

from mutations import misshapen, packed, unpacked, with_each_value
from onebit import OneBitClassifier, play
from onebit.core.storage import from_bytes, to_bytes
from onebit.numerics.bins import IS_NUMERIC, LEVELS, N_LEVELS

LEARNERS = {"exclusive": {}, "not exclusive": {"views": "line", "exclusive": False}}
one_learner = pytest.mark.parametrize("name", LEARNERS)


def examples():
    """Return rows with columns of numbers and of levels, and their labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1e3, 1.0, 1.0, 1e-3]
    X[:, 1] = rng.integers(0, 5, size=300)
    X[::50, 2] = 1e6
    return X, (X[:, 1].astype(int) + (X[:, 0] > 0)) % 3


@cache
def parts_of(name):
    """Return the header and the arrays of a learner that noticed a change."""
    X, y = examples()
    learner = OneBitClassifier(classes=[0, 1, 2], random_state=0, **LEARNERS[name])
    learner.describe({0: X[0], 1: X[1]})
    play(learner, np.concatenate([X, X]), np.concatenate([y, (y + 1) % 3]))
    if name == "exclusive":
        assert learner.changes_
        n_pairs, n_triples = 6, 4
        assert learner.members_[-2][::2] == ("pairs", n_pairs + n_triples)
    return unpacked(to_bytes(learner))


def refusal(name, key, altered):
    """Return the message with which a file with another array is refused, if it is."""
    header, arrays = parts_of(name)
    try:
        from_bytes(packed(header, arrays | {key: altered}))
    except ValueError as error:
        return str(error)
    return ""


@one_learner
@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_arrays_of_other_shapes_and_types_are_refused(name, step):
    _, arrays = parts_of(name)
    every = [(key, *altered) for key, array in arrays.items() for altered in misshapen(array)]
    for key, what, altered in every[::step]:
        array = arrays[key]
        if altered.dtype == array.dtype and (
            # A number with an axis is read as a number.
            altered.shape == array.shape or array.size == altered.size == 1
        ):
            continue
        assert key.rpartition(".")[2] in refusal(name, key, altered), f"{key}, {what}"


@one_learner
@pytest.mark.parametrize("value", [np.nan, pytest.param(np.inf, marks=pytest.mark.slow)])
def test_arrays_with_a_value_that_is_not_finite_are_refused(name, value):
    _, arrays = parts_of(name)
    for key, array in arrays.items():
        if array.dtype.kind == "f" and array.size:
            altered = array.copy()
            altered.reshape(-1)[-1] = value
            assert key.rpartition(".")[2] in refusal(name, key, altered), key


def live(learner, X):
    """Decide, learn, explain, grow and play, more than any buffer of the learner holds."""
    rng = np.random.default_rng(0)
    for i in range(30):
        x = X[i] if i % 2 else rng.normal(size=X.shape[1]) * 10.0 ** rng.integers(-6, 7)
        decision = learner.decide(x)
        assert 0.0 < decision.probability <= 1.0
        if i % 7:
            learner.learn(decision, correct=bool(rng.integers(2)))
        else:
            learner.learn(decision, truth=0)
    learner.rank(X[0])
    assert np.isfinite([*learner.worth_, *(member.weight for member in learner.members_)]).all()
    with contextlib.suppress(ValueError):  # reasons that do not add up are refused
        learner.explain(X[0])
    learner.add_classes([7])
    play(learner, X[:140], rng.choice(learner.classes_, size=140))
    p = learner.policy(X[:5])
    assert np.allclose(p.sum(axis=1), 1.0)


def live_with_altered_values(name):
    """Return how many files are refused, and in how many the learner lives on."""
    header, arrays = parts_of(name)
    X, _ = examples()
    rng, counts = np.random.default_rng(0), [0, 0]
    every = ((key, *one) for key, array in arrays.items() for one in with_each_value(array, rng))
    for key, what, altered in islice(every, None, None, 3):  # all of them take ten minutes
        try:
            learner = from_bytes(packed(header, arrays | {key: altered}))
        except ValueError:
            counts[0] += 1
            continue
        try:
            live(learner, X)
        except Exception as error:
            raise AssertionError(f"{key}: {what}") from error
        counts[1] += 1
    return counts


def live_with_indices_beyond_their_arrays():
    """Let compiled code read where it must not; it raises IndexError if indices are checked."""
    learner, (X, _) = from_bytes(packed(*parts_of("exclusive"))), examples()
    kinds = learner._run.state.mixture.members.cells.view_of_x.kinds
    kinds[:, N_LEVELS], kinds[:, IS_NUMERIC] = LEVELS + 1, 0
    with pytest.raises(IndexError):
        live(learner, X)


@pytest.mark.slow
@one_learner
def test_with_altered_values_nothing_is_read_out_of_bounds(name, tmp_path):
    """Compiled code that checks each index raises IndexError where it would read elsewhere."""
    code = """
import sys
from test_altered_arrays import live_with_altered_values, live_with_indices_beyond_their_arrays
print(*live_with_altered_values(sys.argv[1]))
if sys.argv[1] == "exclusive":
    live_with_indices_beyond_their_arrays()
"""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    path = os.pathsep.join([*sys.path, os.path.dirname(__file__)])
    found = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, name],
        env=os.environ | checked | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    refused, lived = map(int, found.stdout.split())
    assert refused > 300
    assert lived > 300
