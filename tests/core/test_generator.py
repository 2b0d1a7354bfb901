import multiprocessing

import numpy as np
from scipy.stats import chisquare

from onebit.core.generator import below, draw, new_generator, uniform
from problems import numpy_generator


def test_generator_is_numpys():
    rng = new_generator(3)
    expected = numpy_generator(rng).random(1_000)
    np.testing.assert_array_equal([uniform(rng) for _ in range(1_000)], expected)


def test_generator_follows_random_state():
    np.testing.assert_array_equal(new_generator(5), new_generator(5))
    np.testing.assert_array_equal(
        new_generator(np.random.RandomState(5)), new_generator(np.random.RandomState(5))
    )
    assert not np.array_equal(new_generator(5), new_generator(6))
    assert not np.array_equal(new_generator(None), new_generator(None))


def test_draws_have_their_probabilities():
    rng = new_generator(0)
    p = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    counts = np.bincount([draw(rng, p) for _ in range(20_000)], minlength=6)
    assert (counts[p == 0] == 0).all()
    assert chisquare(counts[p > 0], 20_000 * p[p > 0]).pvalue > 1e-6
    counts = np.bincount([below(rng, 7) for _ in range(20_000)], minlength=7)
    assert chisquare(counts).pvalue > 1e-6


def test_draw_never_leaves_the_support():
    """Where probabilities sum to less than one by rounding, the last possible label is drawn."""
    rng = new_generator(0)
    p = np.array([0.0, 1e-9, 0.0])
    assert {int(draw(rng, p)) for _ in range(1_000)} == {1}


def first_numbers(_):
    return new_generator(None).tolist()


def test_forked_processes_draw_differently_without_a_seed():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        drawn = pool.map(first_numbers, range(8), chunksize=1)
    assert len(set(map(tuple, drawn))) == 8
    np.random.seed(0)  # noqa: NPY002  (NumPy's global generator has no part in it)
    first = first_numbers(0)
    np.random.seed(0)  # noqa: NPY002
    assert first_numbers(0) != first


def test_seeds_give_the_numbers_they_always_gave():
    assert new_generator(0).tolist() == SEED_0
    assert new_generator(np.random.RandomState(0)).tolist() == SEED_0


SEED_0 = (
    np.random.SFC64(
        np.random.SeedSequence(
            np.random.RandomState(0).randint(2**32, size=4, dtype=np.uint32).tolist()
        )
    )
    .state["state"]["state"]
    .tolist()
)


def test_labels_too_improbable_to_learn_from_are_not_drawn():
    """A generator whose state is zero draws zero, as every other one may."""
    for p, expected in [([1e-200, 1.0, 0.0], 1), ([0.0, 1.0, 1e-200], 1), ([1e-20, 1.0], 0)]:
        assert draw(np.zeros(4, dtype=np.uint64), np.array(p)) == expected
