"""OneBitClassifier: the default choice of a learner."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from onebit.core import LINEAR, Cost, Kernels, ProbabilityLearner, lean_kernel
from onebit.core.example import Example
from onebit.core.explanation import Contribution, check_sum
from onebit.core.offer import n_on_offer, nth_on_offer
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.run import Run
from onebit.core.state import Count, Generator
from onebit.core.terms import Utility
from onebit.learners.one_bit_files import migrated
from onebit.numerics.argmax import argmax
from onebit.numerics.changes import (
    EVERYTHING,
    NOTHING,
    SOME,
    Change,
    Changes,
    has_changed,
    listed,
    needs_former,
    new_changes,
    observe,
    observe_former,
    reset,
    verdict,
)
from onebit.numerics.constant import Rates, forget_rates, hedge, new_rates, rate
from onebit.numerics.contributions import (
    added_by_neighbours,
    added_by_pairs,
    contributions_of,
    sample_of,
    weighed_members,
)
from onebit.numerics.descriptions import (
    Descriptions,
    add_prior_means,
    described,
    renew_if_settled,
    worth_of_descriptions,
)
from onebit.numerics.members import (
    LEAST_SCORE,
    Mixture,
    WeightedMember,
    change_mixture,
    end_round,
    fill_mixture_policy,
    former_probability,
    learn_mixture,
    new_member,
    new_mixture,
    score_mixture,
)
from onebit.numerics.posterior import NONE_RIGHT, TOLD, Posterior
from onebit.numerics.scales import Scales, inputs_of, last_inputs, new_scales, observe_values
from onebit.numerics.values import valued_policy, widened_by_value
from onebit.numerics.views import NAMES, affordable, is_full_affordable, n_weights
from onebit.theory import bounds


class MixtureSettings(NamedTuple):
    """The settings of a mixture, as its parameters determine them.

    Attributes
    ----------
    explores
        Whether labels other than the greedy one are ever chosen in order to explore.
    floor
        The smallest probability of a label.
    notices
        Whether changes are noticed.
    hedges
        Whether a constant label may be chosen in place of the mixture's.
    """

    explores: bool
    floor: float
    notices: bool
    hedges: bool


class State(NamedTuple):
    """The mixture, and what all members share.

    Attributes
    ----------
    rounds
        t - 1.
    scales
        The scales of features, if these are scaled.
    changes
        The expected bits, and the changes noticed.
    rates
        How often each label was right, for the hedge with a constant label.
    """

    mixture: Mixture
    rounds: Count
    scales: Scales | None
    changes: Changes
    rates: Rates
    settings: MixtureSettings
    rng: Generator

    def check(self) -> None:
        """Check that the last change of everything was not after the last round."""
        if self.changes.began > self.rounds:
            raise ValueError(f"all changed after {self.changes.began} rounds of {self.rounds}")

    @property
    def line(self) -> Posterior:
        """The posterior of the line."""
        return self.mixture.members.line.posterior

    @property
    def descriptions(self) -> Descriptions:
        """The descriptions of labels."""
        found = self.mixture.members.line.descriptions
        assert found is not None  # the line has them
        return found

    def described(self, descriptions: Descriptions) -> State:
        """Return this state with other descriptions."""
        members = self.mixture.members
        line = members.line._replace(descriptions=descriptions)
        return self._replace(mixture=self.mixture._replace(members=members._replace(line=line)))

    def retire_classes(self, retired: list[int]) -> None:
        """Mask these classes, and no others: they are not right, and learn nothing."""
        self.mixture.retire_classes(retired)


@lean_kernel
def score(state, x, scores):
    """Fill the logarithms of the probabilities by all members; of the line alone, its scores."""
    inputs = inputs_of(state.scales, x)
    score_mixture(state.mixture, x, inputs, scores)


@lean_kernel
def policy(state, x, scores, offer, p):
    """Fill the mixture's policy, hedged; return the greedy label."""
    settings = state.settings
    best = fill_mixture_policy(state.mixture, settings.explores, scores, offer, p)
    if settings.hedges:
        best = hedge(state.rates, best, offer, p)
    if settings.floor > 0.0:
        for i in range(n_on_offer(offer, p.size)):
            k = nth_on_offer(offer, i, p.size)
            p[k] = settings.floor + (1.0 - n_on_offer(offer, p.size) * settings.floor) * p[k]
    return best


@lean_kernel
def learn(state, x, scores, label, probability, offer, correct):
    """Update every member by the bit, and increase the weights of those that predicted it."""
    mixture, scales, rounds = state.mixture, state.scales, state.rounds[()]
    inputs = last_inputs(scales, x)
    updated = learn_mixture(mixture, inputs, rounds, label, correct)
    if correct < TOLD:  # a told label says nothing about the one that would have been chosen
        rate(state.rates, argmax(scores, offer), offer, label, correct)
        if state.settings.notices:
            notice(state, inputs, label, correct)
    line = mixture.members.line.posterior
    observe_values(scales, rounds, x, (line.W, line.former))
    renew_if_settled(mixture.members.line.descriptions, scales)
    state.rounds[()] += 1
    end_round(mixture.members, rounds, state.rounds[()] - state.changes.began[()])
    return updated


@lean_kernel
def notice(state, inputs, label, correct):
    """Look for changes after a bit, and forget what is no longer true."""
    mixture, changes, rounds = state.mixture, state.changes, state.rounds[()]
    q, others = mixture.scratch.said[0], mixture.scratch.said[1]
    if needs_former(changes, correct):
        then = former_probability(mixture, inputs, label)
        observe_former(changes, q, others, then, correct)
    v = mixture.members.line.posterior.scratch.v[label]
    observe(changes, q, others, v, label, correct, rounds)
    what = verdict(changes, label, correct, rounds)
    if what == NOTHING:
        return
    change_mixture(mixture, changes, what)
    if what != SOME:
        forget_rates(state.rates, EVERYTHING)
    for k in range(state.rates.labels.shape[0]):
        if has_changed(changes, what, k):
            forget_rates(state.rates, k)
    reset(changes, what, rounds)


# States of one form have the same types, for which functions are compiled. A state with pairs and
# neighbours, which exclusive labels alone have, is of another type than one without.
FORMS = {
    (covariance, view, neighbours): Kernels(
        f"{covariance}_{view}{neighbours * '_neighbours'}", score, policy, learn, separate=True
    )
    for covariance in ("diagonal", "full")
    for view in ("prepared", "line", "cells", "products")
    for neighbours in ((False, True) if view in ("cells", "products") else (False,))
}


class OneBitClassifier(ProbabilityLearner):
    """The default choice: few mistakes, nothing to tune.

    It is a mixture of several models, its members, each with its own view of x: a line, cells that
    columns are cut into, products of features, pairs and triples of columns one by one, and the
    nearest of the last examples. In the first three, label k is right with probability
    softmax(W x)_k, and the weights have a Gaussian posterior.

    To decide, the score of each label is drawn from the posterior, and the highest score wins
    (Thompson sampling). So a label that is known to be wrong is never chosen, and a little-known
    label sometimes is. Each bit teaches about all labels: a right label reveals the truth; after a
    wrong one, the probabilities of the others rise, most for the likely ones. So a label that
    looked bad at first is still found.

    The likelihood of a bit does not depend on who chose the label. So every member learns from
    every bit, and its weight in decisions is the probability that it gave to the bits so far.
    `members_` has the weights.

    `make compare` and `make bakeoff` compare it with other tools. It has no guarantee: an adversary
    can mislead it. If you need a guarantee, use `SOBA` or `Gaptron`.

    Parameters
    ----------
    explore : float >= 0 or None, default=None
        nu, the width of the draws in standard deviations of the scores. 0 is greedy. 1 draws from
        the posterior itself, which costs more mistakes than it saves on most streams tried. None is
        0.035 ln K in the diagonal form and 0.05 ln K in the full form, with ln K at least 1: the
        more labels there are, the more there is to explore. Where no label is likely to be right,
        draws of little-known labels are wider; see the notes.
    covariance : {"auto", "diagonal", "full"}, default="auto"
        The form of the line's covariance. "full" keeps a matrix of d^2 numbers for each label and
        makes fewer mistakes; "diagonal" keeps d numbers. "auto" is "full" if d^2 K is at most
        200,000, else "diagonal". Cells are always diagonal, products full.
    a : float > 0 or None, default=None
        The precision of each weight before the first round, for examples of unit length. None is
        0.35 / (ln K)^2 in the diagonal form and 0.3 / (ln K)^2 in the full form, with ln K at least
        1: to stand out among K labels, a score must exceed ln K. In the full form, the weight of
        the constant that `standardize` adds has the precision a / 4, because some labels are rare
        everywhere.
    forgetting : float in [0, 10] or None, default=None
        phi: in round t, what was learned in round s counts as (s / t)^phi, after the first 1,000
        rounds or so; rounds are counted from the last change of everything. Larger values follow
        drift faster. None is 0 in the diagonal form, 0.5 in the full form.
    min_probability : float in [0, 1 / K], default=0.0
        The smallest probability of each label, mixed in from the uniform distribution, for logs
        that are to evaluate other policies.
    standardize : bool, default=True
        Whether features are scaled during the run and a constant is added; see the notes. If not,
        give features of similar scale, and a constant feature if they are measurements.
    notice_changes : bool, default=True
        Whether to forget what the bits show to be no longer true; see the notes.
    views : {"auto", "line", "cells", "products"}, default="auto"
        The members of the mixture: the line alone; the line and cells; or the line, cells and
        products. Wherever there are cells there are neighbours too, and, for at most 64 columns,
        pairs if d (d - 1) K / 2 is at most 8,192. Cells and pairs also have all triples of columns,
        if d (d - 1) (d - 2) K / 6 is at most 2,400. "auto" adds cells for at most 256 columns and
        32 labels, and then products, of which there are n = (d + 1) (d + 2) / 2, if n^2 K is at
        most 800,000. Texts and other wide rows have the line alone.
    exclusive : bool, default=True
        Whether exactly one label is right for each x. If not, each label is right with a
        probability of its own, so several may be right, or none, as with clicks; see the notes.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    **Features** may have any scale and offset. A feature counts as a measurement if most of its
    values are not zero and some are beyond 1 or -1, or if hardly any are zero. Measurements are
    standardised by their mean and deviation so far. If they have values beyond 1 or -1, these
    estimates are robust, and a value that is not credible, such as a typo, counts as missing.
    Embeddings of unit length stay as they are; so do words, their weights and indicators, divided
    by their root mean square if that exceeds one. The kind of a feature follows from its values, so
    dense and sparse copies of a stream give the same decisions. A constant is added, and then each
    example is divided by its length. `coef_` and `intercept_` are the line's weights for such
    examples. Examples of cells and products have unit length, too. `onebit.numerics.scales`,
    `onebit.numerics.bins` and `onebit.numerics.pair_products` have the formulas.

    **Weights.** A member's weight is multiplied by the likelihood that it gave to each bit, kept
    between 0.001 and 0.999. Then a share of 1e-4 of all weights is divided equally (fixed share),
    so that weights can move when the stream changes. A member whose weight is below 0.01 learns,
    but does not count in decisions. Scores are the logarithms of the weighted mean of the members'
    softmax. Pairs (`onebit.numerics.pairs`) correct that mean, and neighbours
    (`onebit.numerics.neighbours`) correct the result. Each of the two has a weight by the same
    rule, against leaving the prediction as it is.

    **Decisions.** The mixture draws the score of each label from a normal distribution, with the
    weighted means of the members' means and variances, and the highest wins. The probability of
    that is computed by quadrature, to 1e-7. `SoftmaxThompson` has the formulas of a member, and the
    constants that were tuned.

    **Changes.** If bits come out worse than they used to at the same confidence q (or at any q,
    where much is known), something has changed, and `changes_` lists it. If this concerns some
    labels, the learner forgets them: w_k = 0 and S_k as at first. If it concerns all, everything is
    forgotten, but the weights are kept. At the next change of everything they come back if they
    explain the last bits better than the current weights, by a factor of 100: what was true before
    may be true again. Then only the weights are exchanged; S_k stays. All members change together,
    and after a change of everything all have equal weights. `onebit.numerics.changes` has the
    formulas, and `make alarms` counts false alarms.

    **The constant label.** Where the mixture's label, the one with the highest score, is right less
    often than a constant label would be, the constant label is chosen instead: with uninformative
    features, a model can be worse than none. `onebit.numerics.constant` has the formulas. With
    ``explore=0``, the mixture's label is always chosen. `predict` returns the mixture's label.

    **Several right labels.** With ``exclusive=False`` each member is a `LogisticThompson`, whose
    notes have the formulas and whose defaults apply, and scores are log-odds. `right_proba` has the
    probability that each label is right; there is no `predict_proba`. There are no pairs and no
    neighbours then, and no constant label is chosen: each member models how often a label is right.

    **Time.** With few columns, the line in its full form, cells and pairs take a time proportional
    to d^2 K in each round, triples to d^3 K, products to d^4 K and neighbours to 4,096 d; texts and
    wide rows, which have the line alone in its diagonal form, to nnz K.

    **Descriptions.** `describe` says what labels mean: before the first round, the line's weights
    have the mean theta d_k, where d_k is the description of label k. `worth_` is theta, which is
    learned from the bits of all labels. A label that is described later begins with what was
    learned about labels with similar descriptions, too. `onebit.numerics.descriptions` has the
    formulas.

    References
    ----------
    K. Crammer and C. Gentile. Multiclass classification with bandit feedback using adaptive
    regularization. Machine Learning 90 (2013), 347-383; its outlook asks for a learner of this
    kind. Drawing from what is known is due to W. R. Thompson, Biometrika 25 (1933), 285-294; the
    fixed share to M. Herbster and M. K. Warmuth, Machine Learning 32 (1998), 151-178.

    Examples
    --------
    >>> from onebit import OneBitClassifier, SOBA, play, streams
    >>> X, y = streams.synnonsep(10_000, seed=0)
    >>> play(OneBitClassifier(random_state=0), X, y).n_mistakes
    567
    >>> play(SOBA(random_state=0), X, y).n_mistakes
    5718
    """

    uses_truth, _truth_feedback, _none_feedback = True, TOLD, NONE_RIGHT
    takes_descriptions = True
    takes_rewards = True
    state_version = 8
    reference = "onebit"
    cost = Cost(LINEAR, full="d^2 K")
    bound = bounds.ONE_BIT_CLASSIFIER
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"views": "line"},
        {"views": "line", "exclusive": False},
        {"covariance": "diagonal", "standardize": False},
        {
            "covariance": "diagonal",
            "views": "cells",
            "forgetting": 0.5,
            "min_probability": 0.01,
        },
    ]
    sized_forms: ClassVar[list[dict[str, Any]]] = [
        {"covariance": "full", "views": "cells"},  # tables of dozens of columns
        {"covariance": "diagonal", "views": "line"},  # texts
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "explore": [NOT_NEGATIVE, None],
        "covariance": [StrOptions({"auto", "diagonal", "full"})],
        "a": [POSITIVE, None],
        "forgetting": [Interval(Real, 0, 10, closed="both"), None],
        "standardize": ["boolean"],
        "notice_changes": ["boolean"],
        "min_probability": [Interval(Real, 0, 1, closed="left")],
        "views": [StrOptions({"auto", *NAMES})],
        "exclusive": ["boolean"],
    }

    def __init__(
        self,
        explore: float | None = None,
        covariance: str = "auto",
        a: float | None = None,
        forgetting: float | None = None,
        min_probability: float = 0.0,
        standardize: bool = True,
        notice_changes: bool = True,
        views: str = "auto",
        exclusive: bool = True,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.explore = explore
        self.covariance = covariance
        self.a = a
        self.forgetting = forgetting
        self.min_probability = min_probability
        self.standardize = standardize
        self.notice_changes = notice_changes
        self.views = views
        self.exclusive = exclusive
        self.classes = classes
        self.random_state = random_state

    def _at_size(self, n_features: int, n_classes: int) -> OneBitClassifier:
        sized = clone(self)
        if self.covariance == "auto":
            is_full = is_full_affordable(n_features, n_classes)
            sized.set_params(covariance="full" if is_full else "diagonal")
        if self.views == "auto":
            views = affordable(n_features, n_classes) if self.standardize else "line"
            sized.set_params(views=views)
        return sized

    def _n_weights(self, n_features: int, n_classes: int) -> int:
        is_full = {"line": self.covariance == "full", "cells": False, "products": True}
        return sum(
            n_weights(view, n_features, n_classes, full=is_full[view])
            for view in NAMES[: NAMES.index(self.views) + 1]
        )

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        if self.min_probability * n_classes > 1.0:
            raise ValueError(
                f"min_probability={self.min_probability} for each of {n_classes} labels is more "
                "than one in all"
            )
        sized = self._at_size(n_features, n_classes)
        if sized.views != "line" and not self.standardize:
            raise ValueError(f"views={self.views!r} needs standardize=True, or take views='line'")
        given = {"explore": self.explore, "a": self.a, "forgetting": self.forgetting}
        is_full = {"line": sized.covariance == "full", "cells": False, "products": True}
        members = {
            view: new_member(
                view,
                n_features,
                n_classes,
                full=is_full[view],
                exclusive=bool(self.exclusive),
                scaled=bool(self.standardize),
                described=view == "line",
                **given,
            )
            for view in NAMES[: NAMES.index(sized.views) + 1]
        }
        explores = members["line"].posterior.settings.explore > 0.0
        state = State(
            mixture=new_mixture(members, n_features, n_classes, exclusive=bool(self.exclusive)),
            rounds=np.zeros((), dtype=np.int64),
            scales=new_scales(n_features) if self.standardize else None,
            changes=new_changes(n_classes),
            rates=new_rates(n_classes),
            settings=MixtureSettings(
                explores=explores,
                floor=float(self.min_probability),
                notices=bool(self.notice_changes),
                hedges=explores and bool(self.exclusive),
            ),
            rng=rng,
        )
        view = sized.views if self.standardize else "prepared"
        return FORMS[sized.covariance, view, state.mixture.neighbours is not None], state

    def _fill_valued_policy(
        self,
        run: Run,
        utility: Utility,
        offer: np.ndarray,
        scores: np.ndarray,
        p: np.ndarray,
        greedy: int,
    ) -> int:
        state = run.state
        deviations = np.zeros(p.size)  # of a learner that does not explore
        if state.settings.explores:
            deviations = state.mixture.deviations
        means = log_softmax(scores) if run.exclusive else scores
        if not run.exclusive:
            nu = state.line.settings.explore
            deviations = widened_by_value(scores, deviations, nu, *utility, offer)
        best = valued_policy(means, deviations, *utility, offer, p, logistic=not run.exclusive)
        floor = state.settings.floor
        p[offer] = floor + (1.0 - offer.size * floor) * p[offer]
        return best

    @classmethod
    def _migrate_parameters(cls, version: int, parameters: dict[str, Any]) -> dict[str, Any]:
        # Files of version 0 have no members, and some have no scales.
        if version == 0:
            return {"standardize": False, "views": "line", **parameters}
        return parameters

    def _migrate(self, version: int, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return migrated(version, arrays, exclusive=bool(self.exclusive))

    def _describe(self, run: Run, examples: dict[int, Example]) -> None:
        state = run.state
        new = described(state.descriptions, examples, state.scales, state.line)
        run.state = state.described(new)

    def _contributions(
        self, run: Run, example: Example, scores: np.ndarray, k: int, other: int
    ) -> list[Contribution]:
        state = run.state
        found = added_by_neighbours(state.mixture, k, other)
        found += added_by_pairs(state.mixture, k, other)
        found += contributions_of(
            weighed_members(state.mixture, k, other),
            state.scales,
            example,
            sample_of(state.mixture.named.values()),
            partial(self._scores_of, run),
        )
        if min(scores[k], scores[other]) > LEAST_SCORE:  # which is a bound, not a logarithm
            check_sum(self, found, scores[k], scores[other])
        return found

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the line, of shape (n_classes, n_features).

        They are for standardised examples of unit length, and have the descriptions of labels in
        them. With other members, scores are not linear in x; `members_` says how far the line is
        trusted.
        """
        return self._line_weights()[:, : self._run.all_features.size]

    @property
    def intercept_(self) -> np.ndarray:
        """Weights of the line's constant, one for each class; zero where none is added."""
        weights = self._line_weights()
        return np.zeros(len(weights)) if self._run.state.scales is None else weights[:, -1]

    def _line_weights(self) -> np.ndarray:
        if not self._started:
            raise AttributeError(f"this {type(self).__name__} has not started: it has no weights")
        with self._run.lock:
            state = self._run.state
            weights = np.array(state.line.W.T, order="C")
            add_prior_means(state.descriptions, weights)
        return weights

    @property
    def worth_(self) -> tuple[float, float]:
        """Mean and standard deviation of theta, the worth of descriptions; zero without any.

        Of examples and descriptions of unit length, theta times their product is added to the score
        of a label. Misleading descriptions have a worth of about zero.
        """
        check_is_fitted(self)
        with self._run.lock:
            return worth_of_descriptions(self._run.state.descriptions)

    @property
    def members_(self) -> list[WeightedMember]:
        """The models in the mixture: each has a name, a weight and how many inputs it sees.

        The weight is the probability, given all bits so far, that this member predicts the next
        ones best. "line" sees the features; "cells" also sees an indicator for the bin of each
        column and for the cell of each pair of columns, of few columns also of each triple;
        "products" sees the products of all pairs of features, squares included. "pairs" are tables
        of one pair or triple of columns each, and "neighbours" the nearest of the last examples;
        both correct the prediction of the others.
        """
        check_is_fitted(self)
        with self._run.lock:
            return self._run.state.mixture.weighted

    @property
    def changes_(self) -> list[Change]:
        """The changes noticed, the last 64 of them: each has a round, a label and its evidence.

        The label is None if everything changed; `returned` says whether to what was true before.
        Rounds are counted by their feedback, from 1.
        """
        check_is_fitted(self)
        with self._run.lock:
            return listed(self._run.state.changes, self._run.labels)

    @property
    def rounds_(self) -> int:
        """How many rounds, and labels that were told, it has learned from."""
        check_is_fitted(self)
        return int(self._run.state.rounds)
