"""Each paper's bound as a function of the parameters. Derivations are in the learners' notes."""

from __future__ import annotations

import math


def folklore(
    T: int,
    d: int,
    K: int,
    B: float = 1.0,
    R: float = 1.0,
    regularization: float | None = None,
) -> float:
    """Return what the regret of `Folklore` cannot exceed in T rounds, in natural units.

    It is lambda K B^2 + K d / (4c) ln(1 + 2c T R^2 / (lambda K d)), for lambda >= c R^2. With
    lambda = 2 R / B, 2c R^2 / lambda = c B R <= 1/2.

    Parameters
    ----------
    T : int
        Rounds.
    d, K : int
        Features and classes.
    B, R, regularization : float
        The learner's parameters.

    Returns
    -------
    float

    Examples
    --------
    >>> round(folklore(T=10_000, d=20, K=7, B=10.0), 1)
    3140.4
    """
    c = 1.0 / (2.0 * B * R + math.log(K - 1) + 2.0)
    if regularization is None:
        return 2.0 * B * R * K + K * d / (4.0 * c) * math.log1p(T / (2.0 * K * d))
    if regularization < c * R**2:
        raise ValueError(
            f"the bound holds for a regularization of at least c R^2 = {c * R**2:.3g}; "
            f"got {regularization}"
        )
    growth = 2.0 * c * T * R**2 / (regularization * K * d)
    return regularization * K * B**2 + K * d / (4.0 * c) * math.log1p(growth)


def aioli(
    T: int, d: int, B: float = 1.0, R: float = 1.0, regularization: float | None = None
) -> float:
    """Return what the regret of `Aioli` cannot exceed in T rounds, in natural units.

    It is lambda B^2 + d (1 + B R) ln(1 + T R^2 / (8 lambda d (1 + B R))), as follows. With s the
    probability of the true label at theta_t, the regularisation by both labels has the slope
    a = 2s - 1 and the loss has -(1 - s), up to one sign for both. So a round adds at most
    1/4 x'A_t^{-1}x ((a + 1 - s)^2 - a^2) = 1/4 x'A_t^{-1}x (1 - s)(3s - 1), which is at most
    1/2 s (1 - s) x'A_t^{-1}x. As A_t gains c s (1 - s) xx', these sum to at most
    1 / (2c) ln det(A_T / lambda), with c = 1 / (2 (1 + B R)) and s (1 - s) <= 1/4.

    Parameters
    ----------
    T : int
        Rounds.
    d : int
        Features.
    B, R, regularization : float
        The learner's parameters.

    Returns
    -------
    float

    Examples
    --------
    >>> round(aioli(T=10_000, d=20, B=10.0), 1)
    1396.7
    """
    lambda_ = 1.0 / B**2 if regularization is None else regularization
    growth = T * R**2 / (8.0 * lambda_ * d * (1.0 + B * R))
    return lambda_ * B**2 + d * (1.0 + B * R) * math.log1p(growth)
