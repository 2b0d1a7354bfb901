"""SoftmaxThompson: one model of `OneBitClassifier` on its own."""

from __future__ import annotations

from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import LINEAR, Cost, Kernels, ProbabilityLearner, lean_kernel
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.state import Count, Generator, Within
from onebit.numerics.members import Member, new_member
from onebit.numerics.posterior import (
    TOLD,
    fill_policy,
    grow_older,
    learn_posterior,
    predict,
    score_posterior,
)
from onebit.numerics.scales import Scales, inputs_of, last_inputs, new_scales, observe_values
from onebit.numerics.views import encode, last_encoded, n_encoded, observe_view
from onebit.theory import bounds

LARGEST_FULL = 200_000
"""covariance="auto" takes full matrices up to so many numbers in them: n * n * K."""


class State(NamedTuple):
    """The model, and the scales of what it sees.

    Attributes
    ----------
    rounds
        t - 1.
    scales
        What features are scaled by, if they are.
    """

    model: Annotated[Member, Within(inputs="model_inputs")]
    rounds: Count
    scales: Scales | None
    rng: Generator

    def retire_classes(self, retired: list[int]) -> None:
        """Take these classes, and no others, to be neither right nor learned about."""
        self.model.posterior.scratch.retired[:] = False
        self.model.posterior.scratch.retired[retired] = True


@lean_kernel
def score(state, x, scores):
    """Fill the mean of each label's score, and in the scratch its variance."""
    inputs = inputs_of(state.scales, x)
    seen = encode(state.model.view_of_x, x, inputs, scores.size)
    score_posterior(state.model.posterior, seen, scores)


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
    predict(posterior, scores)
    updated = learn_posterior(posterior, seen, scores, rounds, label, correct)
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
        # There must be some weights: these are zero, as there are no former ones.
        observe_values(scales, rounds, x, (posterior.former,))


# States of one form have the same types, and so have compiled functions.
FORMS = {
    (covariance, view): Kernels(f"{covariance}_{view}", score, policy, learn)
    for covariance in ("diagonal", "full")
    for view in ("features", "line", "cells", "products")
}


class SoftmaxThompson(ProbabilityLearner):
    """A softmax model with a Gaussian posterior over its weights, and Thompson sampling.

    Label k is right with probability softmax(W x)_k. Each bit updates the posterior of the weights.
    To decide, the score of each label is drawn from the posterior, and the highest wins: a label
    that is known to be wrong is never chosen, one about which little is known sometimes is.

    `OneBitClassifier` is a mixture of several such models that see x differently. It also notices
    changes, and chooses a constant label where that is better; its notes have the formulas. Take
    one model on its own if you know what x is like, to see what a view is worth, or as a member of
    a `Mixture`.

    Parameters
    ----------
    view : {"line", "cells", "products", "features"}, default="line"
        What the model sees of x.

        - "line": the features, scaled by what was seen of each so far, and a constant;
        - "cells": the same, an indicator for the bin of each column, and one for the cell of each
          pair of columns (`onebit.numerics.bins`);
        - "products": the same as the line, and the products of all pairs of features;
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

    References
    ----------
    K. Crammer and C. Gentile. Multiclass classification with bandit feedback using adaptive
    regularization. Machine Learning 90 (2013), 347-383; its outlook asks for a learner of this
    kind. W. R. Thompson, Biometrika 25 (1933), 285-294.

    Examples
    --------
    No line can tell these labels apart, and products can:

    >>> import numpy as np
    >>> from onebit import SoftmaxThompson, play
    >>> X = np.random.default_rng(0).normal(size=(3_000, 4))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> for view in ("line", "cells", "products"):
    ...     print(view, play(SoftmaxThompson(view, random_state=0), X, y).n_mistakes)
    line 1483
    cells 308
    products 132
    """

    uses_truth, _truth_feedback = True, TOLD
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
        is_small = n_encoded(self.view, n_features) ** 2 * n_classes <= LARGEST_FULL
        is_full = is_small and self.view != "cells"
        return clone(self).set_params(covariance="full" if is_full else "diagonal")

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        sized = self._at_size(n_features, n_classes)
        is_scaled = self.view != "features"
        model = new_member(
            self.view,
            n_features,
            n_classes,
            full=sized.covariance == "full",
            scaled=is_scaled,
            explore=self.explore,
            a=self.a,
            forgetting=self.forgetting,
        )
        scales = new_scales(n_features) if is_scaled else None
        state = State(model, np.zeros((), dtype=np.int64), scales, rng)
        return FORMS[sized.covariance, self.view], state
