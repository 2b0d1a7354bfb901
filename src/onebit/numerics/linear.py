"""Linear scores s = Wx, with W stored (n_features, n_classes).

In this layout, one feature of a sparse row touches one run of memory.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from onebit.core.compiling import kernel, lean_kernel, no_alias
from onebit.core.example import Example
from onebit.core.state import LIMIT, Count, Field, Weights

_SMALLEST_SCALE = 1e-30
"""A smaller scale is multiplied into V before W changes, so that ||V||^2 cannot overflow."""


@lean_kernel
def linear_scores(state, x, scores):
    """Fill ``scores[k] = w_k . x``."""
    products(state.W, x, scores)


@lean_kernel
def products(W, x, scores):
    """Fill ``scores[k] = w_k . x`` for the weights W."""
    no_alias()
    # Four features at a time: the scores then go through memory a fourth as often.
    at, v, n = x.indices, x.values, x.indices.size
    whole = n - n % 4
    for k in range(scores.size):
        scores[k] = 0.0
    for i in range(0, whole, 4):
        a, b, c, d = at[i], at[i + 1], at[i + 2], at[i + 3]
        v_a, v_b, v_c, v_d = v[i], v[i + 1], v[i + 2], v[i + 3]
        for k in range(scores.size):
            scores[k] += (W[a, k] * v_a + W[b, k] * v_b) + (W[c, k] * v_c + W[d, k] * v_d)
    for i in range(whole, n):
        a, v_a = at[i], v[i]
        for k in range(scores.size):
            scores[k] += W[a, k] * v_a


@kernel
def assign(target, values):
    """Do ``target[:] = values`` for two C-ordered arrays of one shape.

    For the statement itself, Numba takes seconds to compile code that checks shapes.
    """
    to, of = target.reshape(-1), values.reshape(-1)
    for i in range(to.size):
        to[i] = of[i]


@lean_kernel
def add_to_class(W, x, k, amount):
    """Add `amount` times x to the weights of class `k`."""
    for i in range(x.indices.size):
        W[x.indices[i], k] += amount * x.values[i]


@lean_kernel
def squared_norm(x):
    """Return ||x||^2."""
    # Four sums, as each addition to a sum waits for the last.
    v, n = x.values, x.values.size
    whole = n - n % 4
    a = b = c = d = 0.0
    for i in range(0, whole, 4):
        a += v[i] * v[i]
        b += v[i + 1] * v[i + 1]
        c += v[i + 2] * v[i + 2]
        d += v[i + 3] * v[i + 3]
    for i in range(whole, n):
        a += v[i] * v[i]
    return (a + b) + (c + d)


@lean_kernel
def norm(x):
    """Return ||x||, also where its square is too large or too small for a float."""
    square = squared_norm(x)
    if 1e-200 < square < 1e200:
        return math.sqrt(square)
    largest = 0.0
    for i in range(x.values.size):
        largest = max(largest, abs(x.values[i]))
    if largest == 0.0:
        return 0.0
    square = 0.0
    for i in range(x.values.size):
        square += (x.values[i] / largest) ** 2
    return largest * math.sqrt(square)


@lean_kernel
def fill_unit(x, values, squares):
    """Fill the values of x / ||x||, and their squares; an x that is too short stays as it is."""
    size = norm(x)
    c = 1.0 / size if size > 1e-300 else 1.0
    for i in range(x.values.size):
        values[i] = c * x.values[i]
        squares[i] = values[i] * values[i]


@lean_kernel
def with_values(x, values):
    """Return an example with the features of x and the first of `values`, which may be scratch."""
    return Example(x.indices, values[: x.indices.size], x.n_features)


class Scaled(NamedTuple):
    """Weights W = scale V of known norm: shrinking all of W changes one number.

    Attributes
    ----------
    V
        The weights, divided by `scale`.
    scale
        The factor.
    squares
        ||V||^2, kept up to date by those who change V and need its norm.
    changes
        Number of changes of V since `squares` was last summed anew.
    """

    V: Weights
    scale: Annotated[np.ndarray, Field(least=1e-200)]
    squares: Annotated[np.ndarray, Field(least=-1e300, most=1e300)]
    changes: Count

    def check(self) -> None:
        """Check that W itself is as small as any weights."""
        largest = float(self.scale) * float(np.abs(self.V).max(initial=0.0))
        if not largest <= LIMIT:
            raise ValueError(f"scale times V is {largest:g}, and should be at most {LIMIT:g}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.scale * self.V, dtype=dtype)


def new_scaled(n_features: int, n_classes: int) -> Scaled:
    """Return zero weights."""
    V = np.zeros((n_features, n_classes))
    return Scaled(V, np.ones(()), np.zeros(()), np.zeros((), dtype=np.int64))


@lean_kernel
def scaled_scores(state, x, scores):
    """Fill ``scores[k] = w_k . x`` for scaled weights."""
    products(state.W.V, x, scores)
    scale = state.W.scale[()]
    for k in range(scores.size):
        scores[k] *= scale


@lean_kernel
def count_squares(W):
    """Sum the squares of V anew."""
    total = 0.0
    for j in range(W.V.shape[0]):
        for k in range(W.V.shape[1]):
            total += W.V[j, k] * W.V[j, k]
    W.squares[()] = total
    W.changes[()] = 0


@lean_kernel
def weight_norm(W):
    """Return ||W||_F.

    Sums of differences drift, so the squares are summed anew once in as many changes as there are
    weights: a constant cost for each change.
    """
    if W.changes[()] >= W.V.size:
        count_squares(W)
    return W.scale[()] * math.sqrt(max(W.squares[()], 0.0))


@lean_kernel
def add_outer(W, c, x, scores):
    """Do W += c (x) x, where `scores` are W x: then ||W||^2 grows by 2 c . W x + ||c||^2 ||x||^2.

    The squares are rounded once, not once for each weight, so a feature counts as one change. Zeros
    are skipped, so that dense and sparse copies of a row count the same.
    """
    no_alias()
    if W.scale[()] < _SMALLEST_SCALE:
        multiply_out(W)
    V, scale, changes = W.V, W.scale[()], 0
    for i in range(x.indices.size):
        j, share = x.indices[i], x.values[i] / scale
        if share != 0.0:
            changes += 1
            for k in range(c.size):
                V[j, k] += c[k] * share
    W.changes[()] += changes
    growth, c_squares = 0.0, 0.0
    for k in range(c.size):
        growth += 2.0 * c[k] * scores[k]
        c_squares += c[k] * c[k]
    W.squares[()] += (growth + c_squares * squared_norm(x)) / (scale * scale)


@lean_kernel
def project(W, radius):
    """Replace W by the nearest weights with ||W||_F <= radius."""
    norm = weight_norm(W)
    if norm > radius:
        W.scale[()] *= radius / norm


@lean_kernel
def multiply_out(W):
    """Replace V by W, and the scale by one."""
    for j in range(W.V.shape[0]):
        for k in range(W.V.shape[1]):
            W.V[j, k] *= W.scale[()]
    W.scale[()] = 1.0
    count_squares(W)
