"""OneBitClassifier: the default choice of a learner."""

from __future__ import annotations

import math
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from onebit.core import LINEAR, Cost, Kernels, ProbabilityLearner, lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.state import Amount, Count, Field, Generator, Within
from onebit.numerics.argmax import argmax
from onebit.numerics.bins import (
    Bins,
    binned,
    last_binned,
    n_inputs,
    new_bins,
    observe_bins,
)
from onebit.numerics.changes import (
    EVERYTHING,
    NOTHING,
    RETURNED,
    SOME,
    Change,
    Changes,
    expected,
    has_changed,
    level_of,
    listed,
    new_changes,
    notice,
    remember,
)
from onebit.numerics.constant import Rates, forget_rates, hedge, new_rates, rate
from onebit.numerics.linear import products, with_values
from onebit.numerics.pair_products import (
    ProductScratch,
    last_with_products,
    n_products,
    new_product_scratch,
    with_products,
)
from onebit.numerics.posterior import (
    TOLD,
    Posterior,
    exchange_former,
    fill_policy,
    forget_class,
    grow_older,
    learn_posterior,
    new_posterior,
    predict,
    score_posterior,
    sum_of_others,
)
from onebit.numerics.scales import (
    Scales,
    inputs_of,
    last_inputs,
    migrated_scales,
    new_scales,
    observe,
)
from onebit.numerics.softmax import softmax
from onebit.theory import bounds

LARGEST_FULL = 200_000
"""covariance="auto" takes full matrices up to so many numbers in them: d * d * K."""

LARGEST_PRODUCTS = 800_000
"""views="auto" takes products if their matrices have at most so many numbers."""

MOST_COLUMNS, MOST_CLASSES = 256, 32
"""views="auto" takes cells of at most so many columns, and for at most so many labels.

The tables of cells then take at most 54 MB; 17 MB for ten labels, 3 MB for ten columns."""

SHARE = 1e-4
"""Of all trust, the part that goes back to all members in each round (fixed share).

With 1e-3, errors on the bake-off's tables are half a percent higher; with 1 / t, about as high."""

LEAST_TRUST = 0.01
"""A member with less trust listens and learns, and has no say."""

LEAST_LIKELIHOOD = 1e-3
"""No bit has a lower likelihood when trust is weighed: a member that was sure once too often
would never be heard again."""

ENOUGH_TO_RETURN = math.log(1e2)
"""Evidence for the former weights, where all changed: by how much they explain the last bits
better."""

VIEWS = ("line", "cells", "products")
"""Values of `views`: each has the members of those before it."""


class Settings(NamedTuple):
    """What parameters stand for.

    Attributes
    ----------
    explores
        Whether any label but the greedy one is ever chosen for the sake of exploration.
    floor
        The least probability of a label.
    notices
        Whether changes are noticed.
    """

    explores: bool
    floor: float
    notices: bool


class Former(NamedTuple):
    """What is known of the weights that were forgotten when everything changed last.

    Attributes
    ----------
    rounds
        How many they were learned in, zero if there are none.
    evidence
        That they are true again.
    """

    rounds: Count
    evidence: Amount


class Scratch(NamedTuple):
    """Memory for one x.

    Attributes
    ----------
    products
        Its products.
    said
        The probabilities that the chosen label is right, and wrong, by all members.
    p
        Probabilities of all members.
    """

    products: ProductScratch
    said: np.ndarray
    p: np.ndarray


class Views(NamedTuple):
    """The members of the mixture beside the line, and how far each one is trusted.

    Attributes
    ----------
    bins
        How columns are cut.
    cells
        The member that sees bins and pairs of bins.
    products
        The member that sees products, if there is one.
    trust
        The weight of each member: of the line, of cells, of products.
    """

    bins: Bins
    cells: Annotated[Posterior, Within(inputs="cell_inputs")]
    products: Annotated[Posterior, Within(inputs="product_inputs")] | None
    trust: Annotated[np.ndarray, Field("members", least=0.0, most=1.0)]
    scratch: Scratch

    def check(self) -> None:
        """Check that someone is trusted."""
        if not 0.999 < self.trust.sum() < 1.001:
            raise ValueError(f"trust adds up to {self.trust.sum():g}, and should to 1")


class State(NamedTuple):
    """The line, what else there is, and what all members share.

    Attributes
    ----------
    line
        The member that sees the features as `scales` make them, with a constant; without scales,
        the features.
    rounds
        t - 1.
    views
        The other members, if there are any.
    """

    line: Posterior
    rounds: Count
    scales: Scales | None
    changes: Changes
    former: Former
    rates: Rates
    views: Views | None
    settings: Settings
    rng: Generator

    def check(self) -> None:
        """Check that not all changed in rounds to come."""
        if self.changes.began > self.rounds:
            raise ValueError(f"all changed after {self.changes.began} rounds of {self.rounds}")

    def retire_classes(self, retired: list[int]) -> None:
        """Take these classes, and no others, to be neither right nor learned about."""
        members = [self.line]
        if self.views is not None:
            members += [self.views.cells]
            members += [] if self.views.products is None else [self.views.products]
        for member in members:
            member.scratch.retired[:] = False
            member.scratch.retired[retired] = True


# Of the functions that take None for views or products, Numba compiles only what is left for them.


@lean_kernel
def score(state, x, scores):
    """Fill the scores of the line; with other members, the logarithms of the mixture."""
    line, scales = state.line, state.scales
    inputs = inputs_of(scales, x)
    score_posterior(line, inputs, scores)
    mix_scores(state.views, line, x, inputs, scores)


@lean_kernel
def mix_scores(views, line, x, inputs, scores):
    """Replace the scores of the line by the logarithm of the probabilities of all members."""
    if views is None:
        return
    of_line = line.scratch.scores
    for k in range(scores.size):
        of_line[k] = scores[k]
    predict(line.scratch, line.settings.doubt, of_line)
    cells = views.cells
    seen = binned(views.bins, x, inputs, scores.size)
    score_posterior(cells, seen, cells.scratch.scores)
    predict(cells.scratch, cells.settings.doubt, cells.scratch.scores)
    score_products(views.products, views.scratch.products, inputs)
    fill_mixture(views, line, scores)
    for k in range(scores.size):
        scores[k] = math.log(scores[k]) if scores[k] > 1e-300 else -700.0
        if line.scratch.retired[k]:
            scores[k] = -math.inf


@lean_kernel
def score_products(member, scratch, inputs):
    """Let the member that sees products, if there is one, predict."""
    if member is None:
        return
    seen = with_products(scratch, inputs)
    score_posterior(member, seen, member.scratch.scores)
    predict(member.scratch, member.settings.doubt, member.scratch.scores)


@lean_kernel
def say(trust):
    """Return the weight that a member's word has."""
    return trust if trust >= LEAST_TRUST else 0.0


@lean_kernel
def fill_mixture(views, line, p):
    """Fill the probabilities of the labels by all members, up to a common factor."""
    trust = views.trust
    a, b = say(trust[0]), say(trust[1])
    of_line, of_cells = line.scratch.p, views.cells.scratch.p
    for k in range(p.size):
        p[k] = a * of_line[k] + b * of_cells[k]
    add_products(views.products, trust, p)


@lean_kernel
def add_products(member, trust, p):
    """Add the probabilities of the member that sees products, if there is one."""
    if member is None:
        return
    weight, of_products = say(trust[2]), member.scratch.p
    for k in range(p.size):
        p[k] += weight * of_products[k]


@lean_kernel
def policy(state, x, scores, offer, p):
    """Fill the mixture of the members' policies, hedged; return the greedy label."""
    settings = state.settings
    best = mix_policies(state.views, state.line, settings.explores, scores, offer, p)
    if settings.explores:
        best = hedge(state.rates, best, offer, p)
    for k in on_offer(offer, p.size):
        p[k] = settings.floor + (1.0 - n_on_offer(offer, p.size) * settings.floor) * p[k]
    return best


@lean_kernel
def mix_policies(views, line, explores, scores, offer, p):
    """Fill the mixture of the members' policies; return the label with the highest score."""
    if views is None:
        return fill_policy(line.scratch, line.settings, scores, offer, p)
    best = argmax(scores, offer)
    for k in range(p.size):
        p[k] = 0.0
    if not explores:
        p[best] = 1.0
        return best
    trust = views.trust
    total = add_policy(line, say(trust[0]), offer, p)
    total += add_policy(views.cells, say(trust[1]), offer, p)
    total += add_policy_of_products(views.products, trust, offer, p)
    for k in on_offer(offer, p.size):
        p[k] /= total
    return best


@lean_kernel
def add_policy(member, weight, offer, p):
    """Add the policy of a member, so many times; return the weight."""
    if weight > 0.0:
        scratch = member.scratch
        fill_policy(scratch, member.settings, scratch.scores, offer, scratch.policy)
        for k in on_offer(offer, p.size):
            p[k] += weight * scratch.policy[k]
    return weight


@lean_kernel
def add_policy_of_products(member, trust, offer, p):
    """Add the policy of the member that sees products, if there is one; return its weight."""
    if member is None:
        return 0.0
    return add_policy(member, say(trust[2]), offer, p)


@lean_kernel
def learn(state, x, scores, label, probability, offer, correct):
    """Let every member learn from the bit, and trust those that foresaw it."""
    line, views, scales = state.line, state.views, state.scales
    inputs = last_inputs(scales, x)
    rounds = state.rounds[()]
    updated = learn_members(views, line, inputs, scores, rounds, label, correct)
    what = changed(state, inputs, scores, label, offer, correct)
    if what != NOTHING:
        begin_change(state, what)
        for k in range(scores.size):
            if has_changed(state.changes, what, k):
                forget_class(line, k)
                forget_in_views(views, k)
        remember(state.changes, what, rounds)
    observe(scales, rounds, x, (line.W, line.former))
    state.rounds[()] += 1
    since = state.rounds[()] - state.changes.began[()]
    grow_older(line, since)
    end_round_of_views(views, rounds, since)
    return updated


@lean_kernel
def learn_members(views, line, inputs, scores, rounds, label, correct):
    """Take a step in each posterior, and of trust; return whether any was updated."""
    if views is None:
        predict(line.scratch, line.settings.doubt, scores)
        updated = learn_posterior(line, inputs, scores, rounds, label, correct)
        return updated
    p, said, cells = views.scratch.p, views.scratch.said, views.cells
    fill_mixture(views, line, p)
    others = sum_of_others(p, label)
    total = p[label] + others
    said[0], said[1] = p[label] / total, others / total
    weigh(views, line, label, correct)
    updated = learn_posterior(line, inputs, line.scratch.scores, rounds, label, correct)
    seen = last_binned(views.bins)
    also = learn_posterior(cells, seen, cells.scratch.scores, rounds, label, correct)
    third = learn_products(views.products, views.scratch.products, inputs, rounds, label, correct)
    return updated or also or third


@lean_kernel
def learn_products(member, scratch, inputs, rounds, label, correct):
    """Take a step in the posterior of products, if there is one; return whether it was updated."""
    if member is None:
        return False
    seen = last_with_products(scratch, inputs)
    updated = learn_posterior(member, seen, member.scratch.scores, rounds, label, correct)
    return updated


@lean_kernel
def weigh(views, line, label, correct):
    """Multiply the trust in each member by the likelihood that it gave to the bit."""
    trust = views.trust
    trust[0] *= likelihood(line.scratch.p[label], correct)
    trust[1] *= likelihood(views.cells.scratch.p[label], correct)
    weigh_products(views.products, trust, label, correct)
    total = 0.0
    for m in range(trust.size):
        total += trust[m]
    for m in range(trust.size):
        trust[m] = (1.0 - SHARE) * (trust[m] / total) + SHARE / trust.size


@lean_kernel
def weigh_products(member, trust, label, correct):
    """Do the same for the member that sees products, if there is one."""
    if member is None:
        return
    trust[2] *= likelihood(member.scratch.p[label], correct)


@lean_kernel
def likelihood(q, correct):
    """Return the probability of a bit, where q is that of a right label; bounded."""
    q = min(max(q, LEAST_LIKELIHOOD), 1.0 - LEAST_LIKELIHOOD)
    return q if correct else 1.0 - q


@lean_kernel
def changed(state, inputs, scores, label, offer, correct):
    """Return what the bit says has changed, if anything: SOME labels, EVERYTHING, or RETURNED.

    One that is told says nothing of the label that would have been chosen.
    """
    if correct == TOLD:
        return NOTHING
    rate(state.rates, argmax(scores, offer), offer, label, correct)
    if not state.settings.notices:
        return NOTHING
    line, changes, rounds = state.line, state.changes, state.rounds[()]
    q, others = said_by_all(state.views, line)
    v = line.scratch.v[label]
    if state.former.rounds[()] > 0:
        if correct and changes.evidence[()] == 0.0:
            state.former.evidence[()] = 0.0
        else:
            then = former_prediction(state.views, line, inputs, label)
            compare_former(changes, state.former, q, others, then, correct)
    what = notice(changes, q, others, v, label, correct, rounds)
    if what == EVERYTHING and state.former.evidence[()] > ENOUGH_TO_RETURN:
        return RETURNED
    return what


@lean_kernel
def said_by_all(views, line):
    """Return the probabilities that the label was right, and wrong, before the bit came."""
    if views is None:
        return line.scratch.said[0], line.scratch.said[1]
    return views.scratch.said[0], views.scratch.said[1]


@lean_kernel
def compare_former(changes, former, q, others, then, correct):
    """Count how much better the former weights foresee bits.

    q and `others` are the probabilities of both bits, `then` is that of a right one by the former
    weights. The error rates per level of `Changes` calibrate both.
    """
    levels = changes.levels
    before = expected(levels[level_of(then, 1.0 - then)])
    now = expected(levels[level_of(q, others)])
    more = math.log((1.0 - before) / (1.0 - now)) if correct else math.log(before / now)
    former.evidence[()] = max(0.0, former.evidence[()] + more)


@lean_kernel
def former_prediction(views, line, inputs, label):
    """Return the probability that the label is right, by the former weights of all members."""
    fill_former(line, inputs)
    if views is None:
        return line.scratch.p[label]
    p = views.scratch.p
    fill_former(views.cells, last_binned(views.bins))
    fill_former_of_products(views.products, views.scratch.products, inputs)
    fill_mixture(views, line, p)
    total = 0.0
    for k in range(p.size):
        total += p[k]
    return p[label] / total


@lean_kernel
def fill_former(member, seen):
    """Fill a member's probabilities of the labels by its former weights."""
    scratch = member.scratch
    z = scratch.g
    products(member.former, with_values(seen, scratch.x), z)
    for k in range(z.size):
        if scratch.retired[k]:
            z[k] = -math.inf
    softmax(z, 1.0, scratch.p)


@lean_kernel
def fill_former_of_products(member, scratch, inputs):
    """Do the same for the member that sees products, if there is one."""
    if member is None:
        return
    fill_former(member, last_with_products(scratch, inputs))


@lean_kernel
def begin_change(state, what):
    """Exchange the weights with the former ones if all changed; forget the rates of what changed.

    If it did not return, the weights are then to be forgotten. Covariances stay as they are if it
    did: they also reflect what x is like.
    """
    if what == SOME:
        for k in range(state.rates.labels.shape[0]):
            if has_changed(state.changes, what, k):
                forget_rates(state.rates, k)
        return
    forget_rates(state.rates, EVERYTHING)
    exchange_former(state.line)
    exchange_in_views(state.views)
    state.former.rounds[()] = state.rounds[()] - state.changes.began[()]
    state.former.evidence[()] = 0.0
    if what == EVERYTHING:
        state.line.age[()] = 1.0
        begin_views(state.views)


@lean_kernel
def exchange_in_views(views):
    """Exchange the weights of the other members, if there are any, with their former ones."""
    if views is None:
        return
    exchange_former(views.cells)
    exchange_in_products(views.products)


@lean_kernel
def exchange_in_products(member):
    """Do the same for the member that sees products, if there is one."""
    if member is None:
        return
    exchange_former(member)


@lean_kernel
def begin_views(views):
    """Trust all members alike, and let none be older than the others."""
    if views is None:
        return
    for m in range(views.trust.size):
        views.trust[m] = 1.0 / views.trust.size
    views.cells.age[()] = 1.0
    begin_products(views.products)


@lean_kernel
def begin_products(member):
    """Make the member that sees products, if there is one, as young as the others."""
    if member is None:
        return
    member.age[()] = 1.0


@lean_kernel
def forget_in_views(views, k):
    """Forget class k in the other members, if there are any."""
    if views is None:
        return
    cells = views.cells
    forget_class(cells, k)
    forget_in_products(views.products, k)


@lean_kernel
def forget_in_products(member, k):
    """Do the same for the member that sees products, if there is one."""
    if member is None:
        return
    forget_class(member, k)


@lean_kernel
def end_round_of_views(views, rounds, since):
    """Count the values of x in bins, and age the other members, if there are any."""
    if views is None:
        return
    observe_bins(views.bins, rounds)
    grow_older(views.cells, since)
    age_products(views.products, since)


@lean_kernel
def age_products(member, since):
    """Age the member that sees products, if there is one."""
    if member is None:
        return
    grow_older(member, since)


# States of one form have the same types, and so have compiled functions.
FORMS = {
    (covariance, view): Kernels(f"{covariance}_{view}", score, policy, learn)
    for covariance in ("diagonal", "full")
    for view in ("prepared", "line", "cells", "products")
}


class OneBitClassifier(ProbabilityLearner):
    """The default choice: few mistakes, nothing to tune.

    It is a mixture of models that see x differently: a line, cells that columns are cut into, and
    products of features. In each, label k is right with probability softmax(W x)_k, and the weights
    have a Gaussian posterior, which each bit updates. To decide, a model draws the score of each
    label from its posterior and chooses the highest (Thompson sampling): a label that is known to
    be wrong is never chosen, one about which little is known sometimes is. A bit teaches all
    classes. If the label was right, the truth is known. If it was wrong, it falls, and the others
    rise, the likely ones most: so a class that looked bad at first is found after all.

    The likelihood of a bit does not depend on who chose the label. So every member learns from
    every bit, and the probability that it gave to the bits so far is its weight, in its say about
    labels and in the policy. `members_` shows the weights.

    `make compare` and `make bakeoff` have its mistakes beside those of other tools. It has no
    guarantee: an adversary can fool it. If you need one, take `SOBA` or `Gaptron`.

    Parameters
    ----------
    explore : float >= 0 or None, default=None
        nu, the width of the draws in standard deviations of the scores. 0 is greedy, 1 is as wide
        as the model says, which costs more mistakes than it saves on most streams tried. None is
        0.035 ln K in the diagonal form, 0.05 ln K in the full, with ln K at least 1: the more
        labels there are, the more there is to try. Where no label is likely to be right, draws of
        little known labels are wider; see the notes.
    covariance : {"auto", "diagonal", "full"}, default="auto"
        Of the line. "full" keeps a matrix of d^2 numbers for each class and makes fewer mistakes,
        "diagonal" d numbers. "auto" is "full" if d^2 K is at most 200,000, else "diagonal". Cells
        have the diagonal, products the full form.
    a : float > 0 or None, default=None
        The precision of each weight before the first round, for examples of unit length. None is
        0.35 / (ln K)^2, full: 0.3 / (ln K)^2, with ln K at least 1: to stand out among K labels, a
        score must exceed ln K. In the full form, the weight of the constant that `standardize` adds
        has a / 4: some labels are rare everywhere.
    forgetting : float in [0, 10] or None, default=None
        phi: in round t, what was learned in round s counts as (s / t)^phi, after a start of about
        1,000 rounds; rounds are counted from the last change of everything. More follows drift
        faster. None is 0 in the diagonal form, 0.5 in the full.
    min_probability : float in [0, 1 / K], default=0.0
        The least probability of each label, mixed in from the uniform distribution, for
        logs used in off-policy evaluation.
    standardize : bool, default=True
        Whether features are scaled as they come, and a constant is added; see the notes. If not,
        give features of similar scale, and a constant one if they are numeric.
    notice_changes : bool, default=True
        Whether to forget what the bits show to be no longer true; see the notes.
    views : {"auto", "line", "cells", "products"}, default="auto"
        The members of the mixture: the line alone; with cells; or with cells and products. "auto"
        takes cells for at most 256 columns and 32 labels, and products, of which there are n =
        (d + 1) (d + 2) / 2, if n^2 K is at most 800,000. Texts and other wide rows have the line.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    Features may have any scale and offset. A feature that is a measurement, one that mostly is not
    zero and has values beyond 1 or -1, is standardised by its mean and deviation so far, both
    robust; a value that is not credible, such as a typo, counts as missing. Words, their weights
    and indicators stay as they are, divided by their root mean square if that is more than one. The
    kind of a feature follows from its values: dense and sparse copies of a stream are the same.
    `onebit.numerics.scales` has the details. A constant is added, and then each example is divided
    by its length. `coef_` and `intercept_` are the line's weights for examples so made. Cells are
    described in `onebit.numerics.bins`, products in `onebit.numerics.pair_products`; these examples
    have unit length, too.

    A member's weight is multiplied by the likelihood that it gave to each bit, kept between 0.001
    and 0.999; then a share of 1e-4 of all weights is divided equally (fixed share), so that trust
    can move when the world does. A member whose weight is below 0.01 learns, but has no say. The
    policy is the weighted mean of the members' policies, so that probabilities stay exact; scores
    are the logarithms of the weighted mean of their softmax.

    In each member, with s = W x and v_k = x' S_k x, where S_k is the covariance of the weights w_k,
    the chosen label is that of the largest draw from N(s_k, nu_k^2 v_k). Its probability is exact,
    to 1e-7, by quadrature. nu_k is nu, and more for labels that are known less well than the best,
    b: with r_k = 1 - v_b / v_k and
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

    A change is noticed by bits that come out worse than they used to at the same confidence, q, or
    at any where much is known, and is in `changes_`. If those of some labels do, these are
    forgotten: w_k = 0 and S_k as at first. If all do, everything is, but the weights are kept. At
    the next change of everything they come back if they explain the last bits better than the
    weights of now do, by a factor of 100: what was true before may be true again. Then only the
    weights are exchanged; S_k stays. All members change together, and after a change of everything
    all are trusted alike. `onebit.numerics.changes` has the formulas, and
    `bench/alarms.py` counts false alarms.

    Where the mixture's label (the one with the highest score) is right less often than a constant
    label would be, the constant label is chosen instead: with uninformative features, a model can
    be worse than none. `onebit.numerics.constant` has the formulas. With explore=0 it never is.
    `predict` is the mixture's label.

    Late feedback meets the weights of the moment it arrives. Told the label itself, by
    ``learn(decision, truth=...)`` or `teach`, it takes the step of a right label, which has the
    same likelihood, but an implicit one: g is that after the step, not before it. A chosen label
    that is right already had some probability; a label that is given may have had almost none, and
    full steps for the first few would swamp those that follow. Bits and labels may be mixed.

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

    uses_truth, _truth_feedback = True, TOLD
    state_version = 1
    reference = "onebit"
    cost = Cost(LINEAR, full="d^2 K")
    bound = bounds.ONE_BIT_CLASSIFIER
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"views": "line"},
        {"covariance": "diagonal", "standardize": False},
        {
            "covariance": "diagonal",
            "views": "cells",
            "forgetting": 0.5,
            "min_probability": 0.01,
        },
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "explore": [NOT_NEGATIVE, None],
        "covariance": [StrOptions({"auto", "diagonal", "full"})],
        "a": [POSITIVE, None],
        "forgetting": [Interval(Real, 0, 10, closed="both"), None],
        "standardize": ["boolean"],
        "notice_changes": ["boolean"],
        "min_probability": [Interval(Real, 0, 1, closed="left")],
        "views": [StrOptions({"auto", *VIEWS})],
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
        self.classes = classes
        self.random_state = random_state

    def _at_size(self, n_features: int, n_classes: int) -> OneBitClassifier:
        sized = clone(self)
        if self.covariance == "auto":
            is_full = n_features**2 * n_classes <= LARGEST_FULL
            sized.set_params(covariance="full" if is_full else "diagonal")
        if self.views == "auto":
            views = views_for(n_features, n_classes) if self.standardize else "line"
            sized.set_params(views=views)
        return sized

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
        line = new_posterior(
            n_features + bool(self.standardize),
            n_classes,
            full=sized.covariance == "full",
            has_constant=bool(self.standardize),
            **given,
        )
        state = State(
            line=line,
            rounds=np.zeros((), dtype=np.int64),
            scales=new_scales(n_features) if self.standardize else None,
            changes=new_changes(n_classes),
            former=Former(np.zeros((), dtype=np.int64), np.zeros(())),
            rates=new_rates(n_classes),
            views=None
            if sized.views == "line"
            else new_views(n_features, n_classes, sized.views, given),
            settings=Settings(
                explores=line.settings.explore > 0.0,
                floor=float(self.min_probability),
                notices=bool(self.notice_changes),
            ),
            rng=rng,
        )
        view = sized.views if self.standardize else "prepared"
        return FORMS[sized.covariance, view], state

    @classmethod
    def _migrate_parameters(cls, version: int, parameters: dict[str, Any]) -> dict[str, Any]:
        # Files of version 0 are from before there were members; some, from before the scales.
        if version == 0:
            return {"standardize": False, "views": "line", **parameters}
        return parameters

    def _migrate(self, version: int, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        arrays = {_name_in_mixture(name): array for name, array in arrays.items()}
        if "scales.features" in arrays and "scales.columns" not in arrays:
            return arrays | migrated_scales(arrays)
        return arrays

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the line, of shape (n_classes, n_features).

        They are for standardised examples of unit length. With other members, scores are not
        linear in x; `members_` says how far the line is trusted.
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
            return np.array(self._run.state.line.W.T, order="C")

    @property
    def members_(self) -> list[Member]:
        """The models in the mixture: each has a name, a weight and how many inputs it sees.

        The weight is the probability, given all bits so far, that this member foresees the next
        ones best. "line" sees the features; "cells" also sees an indicator for the bin of each
        column and for the cell of each pair of columns; "products" sees the products of all pairs
        of features, squares included.
        """
        check_is_fitted(self)
        with self._run.lock:
            state = self._run.state
            if state.views is None:
                return [Member("line", 1.0, len(state.line.W))]
            weights = state.views.trust.tolist()
        posteriors = [state.line, state.views.cells, state.views.products]
        return [
            Member(name, weight, len(posterior.W))
            for name, weight, posterior in zip(VIEWS, weights, posteriors, strict=False)
        ]

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


class Member(NamedTuple):
    """A model in the mixture.

    Attributes
    ----------
    name
        What it sees: "line", "cells" or "products".
    weight
        How far it is trusted; weights add up to one.
    n_inputs
        How many inputs its view of x has at most.
    """

    name: str
    weight: float
    n_inputs: int


def views_for(n_features: int, n_classes: int) -> str:
    """Return what views="auto" stands for."""
    if n_features > MOST_COLUMNS or n_classes > MOST_CLASSES:
        return "line"
    is_affordable = n_products(n_features) ** 2 * n_classes <= LARGEST_PRODUCTS
    return "products" if is_affordable else "cells"


def new_views(n_features: int, n_classes: int, views: str, given: dict[str, Any]) -> Views:
    """Return the members beside the line before the first round."""
    has_products = views == "products"
    n = 3 if has_products else 2
    full = (
        new_posterior(n_products(n_features), n_classes, full=True, **given)
        if has_products
        else None
    )
    return Views(
        bins=new_bins(n_features, n_classes),
        cells=new_posterior(n_inputs(n_features), n_classes, full=False, **given),
        products=full,
        trust=np.full(n, 1.0 / n),
        scratch=Scratch(
            new_product_scratch(n_features if has_products else 0),
            np.zeros(2),
            np.zeros(n_classes),
        ),
    )


def _name_in_mixture(name: str) -> str:
    """Return what an array of a file from before the mixture is called now."""
    first = name.partition(".")[0]
    if name == "former.W":
        return "line.former"
    return f"line.{name}" if first in ("W", "S", "age") else name
