"""SoftmaxThompson: one model of `OneBitClassifier` on its own."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import LINEAR, Cost, Kernels, ProbabilityLearner, lean_kernel
from onebit.core.example import Example
from onebit.core.explanation import CONSTANT, Contribution, Input, check_sum
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.run import Run
from onebit.core.state import Count, Generator, Within
from onebit.core.terms import Utility
from onebit.numerics.bins import with_triples
from onebit.numerics.contributions import Weighed, contributions_of, sample_of
from onebit.numerics.members import Member, new_member
from onebit.numerics.pair_products import with_balance
from onebit.numerics.posterior import (
    MEAN,
    NONE_RIGHT,
    TOLD,
    fill_scores,
    predict,
    score_posterior,
    shrinkage,
)
from onebit.numerics.posterior_lessons import grow_older, learn_posterior
from onebit.numerics.posterior_policy import fill_policy
from onebit.numerics.scales import (
    Scales,
    inputs_of,
    last_inputs,
    new_scales,
    observe_values,
    with_power,
)
from onebit.numerics.values import valued_policy, widened_by_value
from onebit.numerics.views import (
    encode,
    is_full_affordable,
    last_encoded,
    n_encoded,
    n_weights,
    observe_view,
)
from onebit.theory import bounds


class State(NamedTuple):
    """The model, and the scales of what it sees.

    Attributes
    ----------
    rounds
        t - 1.
    scales
        The scales of features; None if these are not scaled.
    """

    model: Annotated[Member, Within(inputs="model_inputs")]
    rounds: Count
    scales: Scales | None
    rng: Generator

    def retire_classes(self, retired: list[int]) -> None:
        """Mask these classes, and no others: they are not right, and nothing is learned of them."""
        self.model.posterior.scratch.retired[:] = False
        self.model.posterior.scratch.retired[retired] = True


@lean_kernel
def score(state, x, scores):
    """Fill the scores of the labels, and in the scratch their means and variances."""
    posterior, inputs = state.model.posterior, inputs_of(state.scales, x)
    seen = encode(state.model.view_of_x, x, inputs, scores.size)
    score_posterior(posterior, seen, posterior.scratch.scores)
    fill_scores(posterior, scores)


@lean_kernel
def policy(state, x, scores, offer, p):
    """Fill the probability that each label's draw is the highest; return the greedy label."""
    return fill_policy(state.model.posterior, scores, offer, p)


@lean_kernel
def learn(state, x, scores, label, probability, offer, correct):
    """Take a step of an online Bayes rule; count the values of x."""
    model, scales, rounds = state.model, state.scales, state.rounds[()]
    posterior = model.posterior
    inputs = last_inputs(scales, x)
    seen = last_encoded(model.view_of_x, inputs)
    means = posterior.scratch.scores
    predict(posterior, means)
    updated = learn_posterior(posterior, seen, means, rounds, label, correct)
    observe_line(model.view_of_x, scales, rounds, x, posterior)
    observe_view(model.view_of_x, rounds)
    state.rounds[()] += 1
    grow_older(posterior, state.rounds[()])
    return updated


@lean_kernel
def observe_line(view, scales, rounds, x, posterior):
    """Count the values of x in the scales; weights of the line keep their meaning with them."""
    if view is None:
        observe_values(scales, rounds, x, (posterior.W,))
    else:
        # The state needs former weights: there are none yet, so these are zero.
        observe_values(scales, rounds, x, (posterior.former,))


# States of one form have the same types, for which functions are compiled.
FORMS = {
    (covariance, view): Kernels(f"{covariance}_{view}", score, policy, learn, separate=True)
    for covariance in ("diagonal", "full")
    for view in ("features", "line", "cells", "products")
}


class SoftmaxThompson(ProbabilityLearner):
    """A softmax model with a Gaussian posterior over its weights, and Thompson sampling.

    Label k is right with probability softmax(W x)_k. Each bit updates the posterior of the weights.
    To decide, the score of each label is drawn from the posterior, and the highest wins: a label
    that is known to be wrong is never chosen, one about which little is known sometimes is.

    `OneBitClassifier` is a mixture of several such models that see x differently. It also notices
    changes, and chooses a constant label where that is better. Take one model on its own if you
    know which view suits x, or to compare views.

    Parameters
    ----------
    view : {"line", "cells", "products", "features"}, default="line"
        What the model sees of x.

        - "line": the features, scaled by what was seen of each so far, and a constant;
        - "cells": the same, an indicator for the bin of each column, and one for the cell of each
          pair of columns, and of each triple, where there are few (`onebit.numerics.bins`);
        - "products": the same as the line, and the products of all pairs of features, which have
          about the squared length of the features (`onebit.numerics.pair_products`);
        - "features": the features as they are. Give features of similar scale, and a constant one.

        All are normalised to unit length.
    covariance : {"auto", "diagonal", "full"}, default="auto"
        "full" keeps a matrix of n^2 numbers for each label, where n is the number of inputs that
        the view has, and makes fewer mistakes; "diagonal" keeps n numbers. "auto" is "full" if
        n^2 K is at most 200,000, else "diagonal"; for cells, "diagonal".
    explore : float >= 0 or None, default=None
        nu, the width of the draws in standard deviations of the scores. None is 0.035 ln K in the
        diagonal form, 0.05 ln K in the full, with ln K at least 1.
    a : float > 0 or None, default=None
        The precision of each weight before the first round. None is 0.35 / (ln K)^2, full:
        0.3 / (ln K)^2, with ln K at least 1.
    forgetting : float in [0, 10] or None, default=None
        phi: in round t, what was learned in round s counts as (s / t)^phi, after a start of about
        1,000 rounds. None is 0 in the diagonal form, 0.5 in the full.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Notes
    -----
    With s = W x and v_k = x' S_k x, where S_k is the covariance of the weights w_k, the chosen
    label is that of the largest draw from N(s_k, nu_k^2 v_k). Its probability is exact, to 1e-7, by
    quadrature. nu_k is nu, and more for labels that are known less well than the best, b: with
    r_k = 1 - v_b / v_k and
    1 - q = 1 - 1 / sum_k exp((s_k - s_b) / sqrt(1 + kappa (v_k + v_b))),

        nu_k = nu + (1 - nu) ((1 - q) r_k)^6 if v_k > v_b.

    So a label that looked bad at first, and is hardly known since, is tried again where those that
    are known well fail; where one of them is right in most cases, it is not. Then, for a label l,

    1. z_k = s_k / sqrt(1 + kappa v_k) and p = softmax(z), q = p_l;
    2. if it was right, g = p - e_l; if not, g_l = max(q, rho / (1 + e^{-z_l})) and, for k != l,
       g_k = -q ((1 - u) p_k / (1 - q) + u / (K - 1)), where u = eta / (eta + 1 - q); each times
       its dz_k / ds_k;
    3. f_l = m q (1 - q) and f_k = m q p_k^2 / (1 - q), each times the square of dz_k / ds_k;
    4. w_k -= g_k S_k x and S_k^{-1} += f_k x x', or only its diagonal.

    For eta = 0, g is the gradient of minus the logarithm of the bit's likelihood, and f, for m = 1,
    the information of the bit: a step of Newton's, or Kalman's, with the classes kept independent.
    What is not textbook material was tuned on streams (docs/notes.md):

    - kappa is 0.03, full: 0.25. Where little is known, the prediction is shrunk towards uniform.
    - rho is 0.3, full: 0.45. With many classes q is small, and without this a wrong label would be
      tried again and again before it falls.
    - eta is 0.1, full: 0. A label that the model was sure of and that is wrong may be so for a
      reason that it knows nothing of: the odds of that are eta to 1 - q. Then any other label may
      be right. Without this, a label that was never right, and comes late, gains next to nothing
      by the mistakes of others. In the full form v_k, which is large for such a label alone, finds
      it; there, eta delays the notice of a gradual change.
    - m is 3, full: 2, so that steps shrink sooner. As classes, and in the diagonal form features,
      count as independent, each step moves the scores further than it is meant to.
    - In the full form it is m t / (t + 30) in round t: at first the scales and the Gaussian
      approximation are rough, and too much confidence in the first rounds would mislead for long.
    - Forgetting makes S_k grow, also where nothing was learned that could be forgotten. So v_k is
      at most 1 / a, as at first, and w_k moves by less in step 4 as v_k was reduced: without that,
      an x in a direction that is seen once in many rounds moved the weights by thousands.
    - A right label with 1 - q < 0.02, full: 0.001, changes nothing, which saves most of the time
      on easy streams. S_k is left as it is if v_k would change by less than a thousandth, full: a
      millionth.

    Late feedback is applied to the weights at the time it arrives. Told the label itself, by
    ``learn(decision, truth=...)`` or `teach`, it takes the step of a right label, which has the
    same likelihood, but an implicit one: g is that after the step, not before it. A chosen label
    that is right already had some probability; a label that is given may have had almost none, and
    full steps for the first few would swamp those that follow. Bits and labels may be mixed.

    References
    ----------
    K. Crammer and C. Gentile. Multiclass classification with bandit feedback using adaptive
    regularization. Machine Learning 90 (2013), 347-383; its outlook asks for a learner of this
    kind. W. R. Thompson, Biometrika 25 (1933), 285-294.

    Examples
    --------
    No line can tell these labels apart, and cells can:

    >>> import numpy as np
    >>> from onebit import SoftmaxThompson, play
    >>> X = np.random.default_rng(0).normal(size=(3_000, 4))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> for view in ("line", "cells"):
    ...     print(view, play(SoftmaxThompson(view, random_state=0), X, y).n_mistakes)
    line 1483
    cells 251
    """

    state_version = 5
    uses_truth, _truth_feedback, _none_feedback = True, TOLD, NONE_RIGHT
    takes_rewards = True
    reference = "onebit"
    cost = Cost(LINEAR, full="d^2 K")
    bound = bounds.SOFTMAX_THOMPSON
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"view": "cells", "forgetting": 0.5},
        {"view": "features", "covariance": "diagonal"},
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "view": [StrOptions({"line", "cells", "products", "features"})],
        "covariance": [StrOptions({"auto", "diagonal", "full"})],
        "explore": [NOT_NEGATIVE, None],
        "a": [POSITIVE, None],
        "forgetting": [Interval(Real, 0, 10, closed="both"), None],
    }

    def __init__(
        self,
        view: str = "line",
        covariance: str = "auto",
        explore: float | None = None,
        a: float | None = None,
        forgetting: float | None = None,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.view = view
        self.covariance = covariance
        self.explore = explore
        self.a = a
        self.forgetting = forgetting
        self.classes = classes
        self.random_state = random_state

    def _at_size(self, n_features: int, n_classes: int) -> SoftmaxThompson:
        if self.covariance != "auto":
            return self
        is_small = is_full_affordable(n_encoded(self.view, n_features), n_classes)
        is_full = is_small and self.view != "cells"
        return clone(self).set_params(covariance="full" if is_full else "diagonal")

    def _n_weights(self, n_features: int, n_classes: int) -> int:
        return n_weights(self.view, n_features, n_classes, full=self.covariance == "full")

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        sized = self._at_size(n_features, n_classes)
        is_scaled = self.view != "features"
        model = new_member(
            self.view,
            n_features,
            n_classes,
            full=sized.covariance == "full",
            exclusive=self.exclusive,
            scaled=is_scaled,
            explore=self.explore,
            a=self.a,
            forgetting=self.forgetting,
        )
        scales = new_scales(n_features) if is_scaled else None
        state = State(model, np.zeros((), dtype=np.int64), scales, rng)
        return FORMS[sized.covariance, self.view], state

    def _migrate(self, version: int, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        # Version 0 has no level, version 1 no lengths, which stay as they are in a new state;
        # version 2 has scales that do not know the power of each feature; products of version 3 are
        # not balanced; cells of version 4 have no triples.
        arrays = with_power(arrays)
        if self.view == "cells":
            return with_triples(arrays, "model.")
        return with_balance(arrays, "model.view_of_x") if self.view == "products" else arrays

    def _fill_valued_policy(
        self,
        run: Run,
        utility: Utility,
        offer: np.ndarray,
        scores: np.ndarray,
        p: np.ndarray,
        greedy: int,
    ) -> int:
        posterior = run.state.model.posterior
        deviations, nu = posterior.scratch.deviations, posterior.settings.explore
        means = log_softmax(scores) if run.exclusive else scores
        if not run.exclusive:
            deviations = widened_by_value(scores, deviations, nu, *utility, offer)
        return valued_policy(means, deviations, *utility, offer, p, logistic=not run.exclusive)

    def _contributions(
        self, run: Run, example: Example, scores: np.ndarray, k: int, other: int
    ) -> list[Contribution]:
        posterior, found = run.state.model.posterior, []
        factors = {k: 1.0, other: -1.0}
        if not run.exclusive:
            # Log-odds are c_k (b + s_k), see `fill_scores`.
            b = posterior.level[MEAN]
            factors = {j: f * shrinkage.py_func(posterior, j) for j, f in factors.items()}
            found = [Contribution(Input(CONSTANT, ()), b * sum(factors.values()))]
        model = Weighed("", run.state.model, factors)
        sample, score = sample_of([model.member]), partial(self._scores_of, run)
        found += contributions_of([model], run.state.scales, example, sample, score)
        check_sum(self, found, scores[k], scores[other])
        return found
