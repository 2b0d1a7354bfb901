"""Consequences of the regret of online logistic regression: one bit, and boosting."""

from __future__ import annotations

import math
from dataclasses import replace

from onebit.numerics.logistic_surrogate import boosting_parameters
from onebit.theory.bound import Bound, NotProvenError, Setting


def bandit_reduction(T: int, K: int, L: float, regret: float, gamma: float | None = None) -> float:
    """Return a bound on the expected mistakes of `BanditReduction` (Theorem 9).

    It is L + K regret / gamma + gamma T: a round teaches with probability gamma / K, whatever is
    predicted in it. For gamma = sqrt(K regret / T), the default, this is L + 2 sqrt(K T regret);
    Theorem 9 as printed lacks the factor 2.

    Parameters
    ----------
    T, K : int
    L : float
        Sum of the logistic loss, in nats.
    regret : float
        A bound on the regret of the learner inside, in nats, in T rounds.
    gamma : float in (0, 1], optional

    Returns
    -------
    float

    Examples
    --------
    >>> bandit_reduction(T=10_000, K=4, L=100.0, regret=25.0)
    2100.0
    """
    gamma = min(1.0, math.sqrt(K * regret / T)) if gamma is None else gamma
    if gamma <= 0.0:
        raise NotProvenError("without exploration the learner inside learns nothing: gamma=0")
    return L + K * regret / gamma + gamma * T


def boosting_regression(T: int, constants: str = "tight") -> float:
    """Return the regret of Algorithm 3 with FOLKLORE (Theorem 13), in nats.

    It is that of `folklore` for K = d = 2, with the constants of
    `onebit.learners.boosting.BoostingRegression`; clipping costs at most e^2 / T^2 per round.

    Parameters
    ----------
    T : int
    constants : {"tight", "paper"}
        Those of ``BoostingRegression(algorithm="folklore")``, or of "paper".

    Returns
    -------
    float

    Examples
    --------
    >>> round(boosting_regression(10_000), 1)
    215.8
    >>> round(boosting_regression(10_000, "paper"), 1)
    385.2
    """
    c, lambda_, B, R = boosting_parameters(T, constants)
    K = d = 2
    trace = 2.0 * c * T * R**2 / lambda_
    regret = lambda_ * K * B**2 + K * d / (4.0 * c) * math.log1p(trace / (K * d))
    return regret + math.e**2 / T


def hedge(best: float, N: int, delta: float) -> float:
    """Return a bound on the mistakes of Hedge with factor e^-1, with probability 1 - delta.

    With p the share of the weight on wrong experts, E exp(c 1[wrong]) = 1 + (e^c - 1) p, and the
    sum of all weights shrinks by 1 - (1 - 1/e) p. So exp(c M) times the (e^c - 1) / (1 - 1/e)-th
    power of that sum is a supermartingale; by Markov's inequality, with c = 1/2,

        M <= a (best + ln N) + 2 ln(1 / delta),   a = 2 (sqrt(e) - 1) / (1 - 1/e) < 2.06.

    Lemma 17, 4 best + 2 ln(N / delta), has a smaller factor of ln N. That is out of reach of this
    argument, and cannot hold for all N: with one perfect expert, and mistakes as late as possible,
    M is nearly Poisson of mean ln(N) / (1 - 1/e), whose upper tail is heavier for large N.

    Examples
    --------
    >>> round(hedge(best=100.0, N=10, delta=0.05), 1)
    216.0
    """
    a = 2.0 * (math.sqrt(math.e) - 1.0) / (1.0 - 1.0 / math.e)
    return a * (best + math.log(N)) + 2.0 * math.log(1.0 / delta)


def boosting(
    T: int, K: int, squared_edges: float, N: int, delta: float = 0.05, regret: float | None = None
) -> float:
    """Return a bound on the mistakes of AdaBoost.OLM++, with probability 1 - delta.

    The proof of Proposition 12: the N experts lower the logistic loss, which starts at T ln K, by
    at least 1/4 min M_i times the sum of the squared edges gamma_i^2, minus N times the regret of
    the regression. So min M_i <= 4 (T ln K + N regret) / sum of gamma_i^2, and `hedge` follows.

    Parameters
    ----------
    T, K : int
    squared_edges : float
        Sum of gamma_i^2, with the edges of the weak learners in the run: `AdaBoostOLMpp.edges_`.
    N : int
        Weak learners.
    delta : float in (0, 1)
    regret : float, optional
        Of the regression; `boosting_regression` if not given.

    Returns
    -------
    float

    Examples
    --------
    >>> round(boosting(T=100_000, K=2, squared_edges=25.0, N=50))
    28121
    """
    regret = boosting_regression(T) if regret is None else regret
    return hedge(4.0 * (T * math.log(K) + N * regret) / squared_edges, N, delta)


def boosting_weak(
    T: int,
    K: int,
    edge: float,
    excess: float,
    N: int,
    delta: float = 0.05,
    regret: float | None = None,
) -> float:
    """Return the same bound if all weak learners have an edge (Proposition 12, second part).

    With gamma_i^2 w_i >= gamma^2 w_i - 2 gamma K S, the least M_i is at most
    4 (T ln K / (N gamma^2) + regret / gamma^2 + K S / gamma).

    Parameters
    ----------
    T, K, N, delta, regret
        As in `boosting`.
    edge, excess : float
        gamma and S of the weak learning condition; `AdaBoostOLMpp.excess` is the S of a run.

    Returns
    -------
    float
    """
    regret = boosting_regression(T) if regret is None else regret
    best = T * math.log(K) / (N * edge**2) + regret / edge**2 + K * excess / edge
    return hedge(4.0 * best, N, delta)


def _without(inside: object) -> NotProvenError:
    return NotProvenError(
        "Theorem 9 needs a bound on the regret of the learner inside, and there is none for "
        f"{inside!r}"
    )


def _reduction(s: Setting) -> float:
    inside = s.learner.learner_
    bound = getattr(inside, "bound", None)
    if bound is None or bound.measure != "log_loss":
        raise _without(inside)
    regret = bound(replace(s, L=0.0, learner=inside))
    gamma = s.learner.gamma
    if gamma == "theory":
        at_horizon = bound(replace(s, T=int(s.learner.horizon), L=0.0, learner=inside))
        gamma = min(1.0, math.sqrt(s.K * at_horizon / s.learner.horizon))
    return bandit_reduction(s.T, s.K, s.L, regret, gamma)


def _ball(learner: object) -> tuple[str, float | None]:
    inside = learner.learner_  # type: ignore[attr-defined]
    bound = getattr(inside, "bound", None)
    if bound is None or bound.measure != "log_loss":
        raise _without(inside)
    return bound._ball(inside)


BANDIT_REDUCTION = Bound(
    "2 sqrt(K T Reg(T)) over logistic loss, for a learner inside with regret Reg(T)",
    _reduction,
    loss="log_loss",
    ball=_ball,
)

BOOSTING = Bound(
    "O(T ln(K) / (N gamma^2) + ln(T)^2 / gamma^2) for weak learners of edge gamma",
    why_not="Proposition 12 needs the edges that the weak learners had: "
    "bounds.boosting(T, K, (booster.edges_**2).sum(), N)",
)
BOOSTING_ELSEWHERE = Bound(
    "in the paper, for weak learners with an edge",
    why_not="the theorem of the paper, about weak learners with an edge, is not transcribed here",
)
