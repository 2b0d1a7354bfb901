"""The random generator that compiled code draws from: NumPy's SFC64, bit for bit.

It is written out here because its state must live in the learner's state: four integers that
kernels advance, files store and copies copy. Reference: C. Doty-Humphrey, PractRand (2010).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from onebit.core.compiling import called_from_python, lean_kernel


def new_generator(random_state: Any) -> np.ndarray:
    """Return the state of a generator seeded from a scikit-learn `random_state`."""
    seed = random_state_of(random_state).randint(2**32, size=4, dtype=np.uint32)
    return np.random.SFC64(np.random.SeedSequence(seed.tolist())).state["state"]["state"].copy()


def random_state_of(random_state: Any) -> np.random.RandomState:
    """Return a `random_state` as scikit-learn does, but for None with entropy of its own.

    NumPy's global generator, which scikit-learn takes, is the same in all processes of a fork.
    """
    if random_state is None:
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence()))
    return check_random_state(random_state)


LEAST_PROBABILITY = 1e-30
"""The least probability of a decision to learn from: learners divide by it."""


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
    """Draw from N(0, 1), by the formula of Box and Muller."""
    length = math.sqrt(-2.0 * math.log(1.0 - uniform(rng)))
    return length * math.cos(2.0 * math.pi * uniform(rng))


@lean_kernel
def below(rng, n):
    """Draw an integer from 0 .. n-1."""
    return np.int64(uniform(rng) * n)


@lean_kernel
def draw(rng, p):
    """Draw a label with the probabilities `p`, of those that can be learned from."""
    left = uniform(rng)
    for k in range(p.size):
        left -= p[k]
        if left < 0.0 and p[k] >= LEAST_PROBABILITY:
            return k
    # Rounding left the sum of p below one, and the draw above it: the last possible label.
    last = p.size - 1
    while p[last] < LEAST_PROBABILITY:
        last -= 1
    return last


@called_from_python
def draw_rows(rng, p, labels):
    """Draw a label for each row of `p`, one after the other."""
    for i in range(labels.size):
        labels[i] = draw(rng, p[i])
