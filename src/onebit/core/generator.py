"""The random generator that compiled code draws from: NumPy's SFC64, bit for bit.

It is implemented here because its state must be part of the learner's state: four integers that
kernels advance, and that are saved and copied with it. Reference: C. Doty-Humphrey, PractRand
(2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from onebit.core.compiling import lean_kernel


def new_generator(random_state: Any) -> np.ndarray:
    """Return the state of a generator seeded from a scikit-learn `random_state`."""
    seed = random_state_of(random_state).randint(2**32, size=4, dtype=np.uint32)
    return np.random.SFC64(np.random.SeedSequence(seed.tolist())).state["state"]["state"].copy()


def random_state_of(random_state: Any) -> np.random.RandomState:
    """Return a `random_state` as scikit-learn does, but with fresh entropy for None.

    NumPy's global generator, which scikit-learn uses, is the same in all forked processes.
    """
    if random_state is None:
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence()))
    return check_random_state(random_state)


@contextmanager
def unchanged_on_error(random_state: Any) -> Iterator[None]:
    """On an error, reset a generator that was passed as a `random_state`."""
    if random_state is None or isinstance(random_state, int | np.integer):
        yield
        return
    generator = random_state_of(random_state)
    before = generator.get_state()
    try:
        yield
    except BaseException:
        generator.set_state(before)
        raise


LEAST_PROBABILITY = 1e-30
"""The smallest probability of a decision that can be learned from: learners divide by it."""


PROBABILITY_ROUNDING = 1e-4
"""By how much probabilities of other tools may exceed one, as float32 does."""


@lean_kernel
def uniform(rng):
    """Draw from [0, 1)."""
    a, b, c, counter = rng[0], rng[1], rng[2], rng[3]
    word = a + b + counter
    rng[0] = b ^ (b >> np.uint64(11))
    rng[1] = c + (c << np.uint64(3))
    rng[2] = ((c << np.uint64(24)) | (c >> np.uint64(40))) + word
    rng[3] = counter + np.uint64(1)
    return (word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@lean_kernel
def normal(rng):
    """Draw from N(0, 1), by the Box-Muller transform."""
    length = math.sqrt(-2.0 * math.log(1.0 - uniform(rng)))
    return length * math.cos(2.0 * math.pi * uniform(rng))


@lean_kernel
def below(rng, n):
    """Draw an integer from 0 .. n-1."""
    return np.int64(uniform(rng) * n)


@lean_kernel
def draw(rng, p):
    """Draw a label from the probabilities `p`, except those too small to be learned from."""
    left = uniform(rng)
    for k in range(p.size):
        left -= p[k]
        if left < 0.0 and p[k] >= LEAST_PROBABILITY:
            return k
    # Rounding left the sum of p below the draw: return the last label that can be drawn.
    last = p.size - 1
    while p[last] < LEAST_PROBABILITY:
        last -= 1
    return last
