"""LogisticThompson: one logistic model a label, where several labels may be right, or none."""

from __future__ import annotations

from typing import Any, ClassVar

from onebit.learners.softmax_thompson import SoftmaxThompson
from onebit.theory import bounds


class LogisticThompson(SoftmaxThompson):
    """A logistic model for each label with a Gaussian posterior, and Thompson sampling.

    Label k is right with probability sigma(b + w_k . x), whatever other labels are, where sigma is
    the logistic function: several labels may be right for one x, or none, as a visitor may like
    several articles or none. A bit updates the posterior of the chosen label's weights, and of the
    level b that all labels share; it teaches nothing about other labels' weights. To decide, the
    probability that each label is right is drawn: the less is known of a label, the higher the mean
    and the wider the draw. The highest draw wins.

    Where exactly one label is right, `SoftmaxThompson` learns faster: there, a wrong label makes
    all others likelier.

    Parameters
    ----------
    view : {"line", "cells", "products", "features"}, default="line"
        What the model sees of x, as in `SoftmaxThompson`, but divided by the usual length of x: see
        the notes.
    covariance : {"auto", "diagonal", "full"}, default="auto"
        "full" keeps a matrix of n^2 numbers for each label, where n is the number of inputs that
        the view has, and makes fewer mistakes; "diagonal" keeps n numbers. "auto" is "full" if
        n^2 K is at most 200,000, else "diagonal"; for cells, "diagonal".
    explore : float >= 0 or None, default=None
        nu, the width of the draws in standard deviations of the log-odds; see the notes. None is
        0.05 in the diagonal form, 0.2 in the full.
    a : float > 0 or None, default=None
        The precision of each weight before the first round. None is 0.05, full: 0.5.
    forgetting : float in [0, 10] or None, default=None
        phi: in round t, what was learned in round s counts as (s / t)^phi, after a start of about
        1,000 rounds. None is 0.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Notes
    -----
    The level b, the same for all labels, has a Gaussian posterior of its own, N(b, V): how often
    labels are right at all is learned from all bits, and a new label begins there. At first b = 0
    and V = pi^2 / 3, the variance of log-odds whose probability is uniform. In the full form, the
    weight of the constant that the view adds has the precision 10 a: a label differs from others
    more by what it depends on than by its level.

    Labels may have more in common than the level: a question that is hard for one model is hard for
    others. The weights of a label that `add_classes` adds begin at the mean of what the labels
    share, rho / (1 + (K - 1) rho) sum_k w_k, where rho is the mean of w_j . w_k over all pairs of
    labels, divided by that of ||w_k||^2, and at least zero: the best prediction if weights of any
    two labels have the correlation rho. Its variances are those of the prior.

    Log-odds are linear in x: a visitor who differs more from the average one has surer tastes. So x
    is not normalised to unit length, but divided by L, where L^2 is the mean of ||x||^2 over all
    rounds.

    With s_k = w_k . x and v_k = x' S_k x, where S_k is the covariance of the weights w_k, label k
    is right with probability q_k = sigma((b + s_k) c_k), c_k = 1 / sqrt(1 + pi (V + v_k) / 8),
    which is about the mean of sigma over N(b + s_k, V + v_k) (MacKay 1992). The chosen label is
    that of the largest draw from N(q_k + omega d_k, d_k^2), where d_k = nu c_k q_l (1 - q_l)
    sqrt(v_k), l is the label with the highest q, and omega = 1.75. Its probability is exact, to
    1e-7, by quadrature. The draws are around q_k, not around sigma(b + s_k): where clicks are rare,
    a label of which little is known is clicked more often than one that is known to have the same
    log-odds. Their width in log-odds, nu c_k sqrt(v_k), counts at the slope of sigma for the label
    that another one would have to exceed. Their means are optimistic by omega d_k: of two labels
    that are as likely to be right, the one that is known less well teaches more. With omega = 0
    this is Thompson sampling; a larger omega and a smaller nu, an upper confidence bound.

    After a bit y, 1 or 0, about label l, with q = q_l and c = c_l:

    1. g = (q - y) c and h = q (1 - q) c^2, the first and the second derivative of minus the
       logarithm of the bit's probability by the score;
    2. b -= g V, V -= h V^2, w_l -= g S_l x and S_l -= h S_l x x' S_l: the means and covariances
       after the bit (assumed density filtering; Opper 1998). In the diagonal form, the diagonal of
       S_l^{-1} grows by that of h / (1 - h v_l) x x'.

    With worth w_k and cost c_k, log-odds are drawn from N((b + s_k) c_k, (nu_k c_k)^2 v_k), without
    optimism, and the highest w_k sigma(draw) - c_k wins. nu_k is nu, and more for labels that are
    known less well than the one with the highest value and could bring more:
    `numerics.values.widened_by_value`.

    Scores are the log-odds (b + s_k) c, `right_proba` has the probability q of each label, and a
    decision's `confidence` that of its own. There is no `predict_proba`, as rows do not add up to
    one.

    Told a label, by ``learn(decision, truth=...)`` or `teach`, it learns that this one is right;
    others may be, too. Told NONE_OF_THESE, it learns that each label is wrong.

    References
    ----------
    D. J. C. MacKay. The evidence framework applied to classification networks. Neural Computation 4
    (1992), 720-736. O. Chapelle and L. Li. An empirical evaluation of Thompson sampling. NIPS 2011;
    its Algorithm 3 is a logistic model with variances, fitted in batches. M. Opper. A Bayesian
    approach to on-line learning. In: On-Line Learning in Neural Networks, 1998. S. Vaswani, A.
    Mehrabian, A. Durand and B. Kveton. Old dog learns new tricks: randomized UCB for bandit
    problems. AISTATS 2020.

    Examples
    --------
    Some visitors like two articles, and some like none:

    >>> import numpy as np
    >>> from onebit import LogisticThompson
    >>> rng = np.random.default_rng(0)
    >>> learner = LogisticThompson(classes=["chess", "news", "sport"], random_state=0)
    >>> clicks = 0
    >>> for x in rng.normal(size=(1_000, 2)):
    ...     decision = learner.decide(x)
    ...     liked = {"chess": x[1] < -1, "news": x[0] > 0, "sport": x.sum() > 0}
    ...     learner.learn(decision, correct=bool(liked[decision.label]))
    ...     clicks += bool(liked[decision.label])
    >>> clicks
    683
    >>> learner.right_proba([[1.0, 1.0], [-1.0, 0.5]]).round(2)
    array([[0.07, 0.95, 1.  ],
           [0.03, 0.02, 0.24]])
    """

    exclusive = False
    bound = bounds.LOGISTIC_THOMPSON
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"view": "features", "covariance": "diagonal"}]
