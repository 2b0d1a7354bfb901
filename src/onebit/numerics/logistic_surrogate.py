"""Quadratic surrogates of the logistic losses of the rounds so far, and their sum.

The surrogate of the loss of (x, y), a lower bound of it, is taken around the scores z that the
learner gave x. With p = sigma(z) the softmax and S(p) = diag(p) - pp', it is

    <Wx - z, p - y> + c (Wx - z)' S(p) (Wx - z) + a constant.

With lambda ||W||^2, the sum over all rounds is W'AW + G . W, where A = lambda I + the sum of
c S(p) (x) xx' and G is the sum of (p - y - 2c S(p) z) (x) x.

A state has the fields A_inv, A^{-1}; h, A^{-1} G; Q, parameters and scratch. Q, K x (K-1), is an
orthonormal basis of the vectors that sum to zero, and W = Q U. The orthogonal complement does not
matter: G is always zero there and A is lambda, as S(p) 1 = 0. So A has size d (K-1), not d K, and h
has shape (d, K-1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from onebit.core.compiling import kernel, lean_kernel
from onebit.numerics.cholesky import factor, forward, forward_rows
from onebit.numerics.linear import squared_norm
from onebit.numerics.second_order import SETTLED, subtract, times_each
from onebit.numerics.softmax import covariance_root, softmax


class Parameters(NamedTuple):
    """What the surrogates and the prediction depend on.

    Attributes
    ----------
    c
        Curvature of the surrogate losses.
    shift
        2c, or 0 to leave the linear term out.
    lookahead
        Whether the A of the regularizer phi_t contains the curvature of round t.
    """

    c: float
    shift: float
    lookahead: bool = False


def safe_parameters(B: float, R: float, n_classes: int) -> Parameters:
    """Return parameters for which a surrogate is a lower bound wherever ||Wx||_inf <= B R.

    The derivation is in the notes of `onebit.Folklore`.
    """
    c = 1.0 / (2.0 * B * R + math.log(n_classes - 1) + 2.0)
    return Parameters(c, 2.0 * c)


@lean_kernel
def binary_surrogate(u, is_right, c):
    """Return what the surrogate of a binary loss adds to A and b, as factors of xx' and x.

    u are the predicted log odds of the event that `is_right` states. With s = sigma(u) and s' = s
    (1 - s), the factors are c s' and s - 1[is right] - 2 c s' u.
    """
    s, not_s = 1.0 / (1.0 + math.exp(-u)), 1.0 / (1.0 + math.exp(u))
    bend = c * s * not_s
    return bend, (-not_s if is_right else s) - 2.0 * bend * u


class BoostingParameters(NamedTuple):
    """Parameters of the boosting regression.

    Attributes
    ----------
    c
        Curvature of the surrogate losses.
    regularization
        lambda.
    B, R
        Largest norms of its weights and examples.
    """

    c: float
    regularization: float
    B: float
    R: float


def boosting_parameters(T: int, constants: str = "tight") -> BoostingParameters:
    """Return FOLKLORE's constants for the boosting regression in T rounds.

    Its examples are (h, 1) with |h| <= ln T. The weights it competes with have the rows (1, alpha /
    2) and (-1, -alpha / 2) for alpha in [-2, 2]: their norm is at most sqrt(2), and scores are at
    most 1 + ln T, which takes the place of B R in `safe_parameters`.

    With constants="paper", they are those of FOLKLORE with the paper's B = 2 and R = 1 + ln T,
    which are upper bounds of the two norms.
    """
    most = math.log(T)
    if constants == "paper":
        B, R = 2.0, 1.0 + most
        return BoostingParameters(safe_parameters(B, R, 2).c, 2.0 * R / B, B, R)
    B, R = math.sqrt(2.0), math.hypot(1.0, most)
    return BoostingParameters(1.0 / (2.0 * (1.0 + most) + 2.0), 2.0 * R / B, B, R)


class Scratch(NamedTuple):
    """P = A^{-1} (I (x) x), one row per class; T = (I (x) x)' P; hx = mat(h) x."""

    P: np.ndarray
    T: np.ndarray
    hx: np.ndarray


def new_scratch(n_features: int, n_classes: int) -> Scratch:
    """Return scratch for `fill_products` to fill."""
    m = n_classes - 1
    return Scratch(np.zeros((m, n_features * m)), np.zeros((m, m)), np.zeros(m))


def class_basis(n_classes: int) -> np.ndarray:
    """Return Q."""
    return np.ascontiguousarray(helmert(n_classes).T)


def check_basis(Q: np.ndarray) -> None:
    """Raise ValueError for a Q that is not `class_basis`."""
    if not np.allclose(Q, class_basis(len(Q)), rtol=0.0, atol=1e-12):
        raise ValueError(f"Q is not the basis of {len(Q)} classes")


@kernel
def fill_products(state, x):
    """Fill the scratch with the products of x with A^{-1} and h."""
    P, T, hx = state.scratch
    times_each(state.A_inv, x, P)
    m = hx.size
    T[:] = 0.0
    hx[:] = 0.0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        for k in range(m):
            hx[k] += x_j * state.h[j, k]
            for k_2 in range(m):
                T[k, k_2] += x_j * P[k, j * m + k_2]


@kernel
def has_digits(A_inv, x, T):
    """Return whether any number on the diagonal of T is more than rounding error."""
    return np.diag(T).max() > SETTLED * A_inv.first * squared_norm(x)


@kernel
def first_settled(A_inv, x, L, F, V, c):
    """Return the first column of L along which the weights are settled, as in `is_settled`, or -1.

    Given the columns before k, z' A^{-1} z is (F_kk^2 - 1) / c for z = L_k (x) x, and row k of V is
    A^{-1} z / F_kk. Where q vanishes in 1 + q, nothing can be said.
    """
    square = c * A_inv.first * squared_norm(x)
    for k in range(V.shape[0]):
        largest = 0.0
        for i in range(L.shape[0]):
            largest += square * L[i, k] * L[i, k]
        known = largest > 1.0 and F[k, k] * F[k, k] - 1.0 < SETTLED * largest
        if known or c * np.dot(V[k], V[k]) > 1.01 * A_inv.first:
            return k
    return -1


@kernel
def update(state, x, scores, y):
    """Do A += c S(p) (x) xx' and G += (p - y - 2c S(p) z) (x) x, for a distribution y.

    With S(p) = L L', V = P L and F F' = I + c L'TL, A^{-1} loses c V F'^{-1} F^{-1} V' (Woodbury).
    Columns of L along which A^{-1} is only rounding error are left out.
    """
    Q, (P, T, hx), c = state.Q, state.scratch, state.parameters.c
    K, m = Q.shape
    if not has_digits(state.A_inv, x, T):  # x is zero, or known along all classes
        return False
    p, L = np.empty(K), np.empty((K, m))
    softmax(scores, 1.0, p)
    mean = np.dot(p, scores)
    q = np.empty(K)
    for k in range(K):
        q[k] = p[k] - y[k] - state.parameters.shift * p[k] * (scores[k] - mean)
    covariance_root(p, L)
    q, L = np.dot(q, Q), np.dot(Q.T, L)
    while True:
        F = c * np.dot(L.T, np.dot(T, L))
        for k in range(m):
            F[k, k] += 1.0
        factor(F)
        V = np.dot(L.T, P)
        forward_rows(F, V)
        settled = first_settled(state.A_inv, x, L, F, V, c)
        if settled < 0:
            break
        for k in range(m):
            L[k, settled] = 0.0
    a = np.dot(hx + np.dot(T, q), L)
    forward(F, a)
    # h becomes A^{-1} (G + q (x) x), with the new A^{-1}.
    flat = state.h.reshape(-1)
    flat += np.dot(q, P)
    flat -= c * np.dot(a, V)
    for k in range(m):
        subtract(state.A_inv, V[k], c)
    return True
