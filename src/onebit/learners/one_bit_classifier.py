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
from onebit.core.compiling import no_alias
from onebit.core.example import INDEX
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.state import Amount, Count, Field, Generator, Within
from onebit.numerics.argmax import argmax
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
from onebit.numerics.linear import fill_unit, products, unit_scores, with_values
from onebit.numerics.scales import (
    Scales,
    inputs_of,
    last_inputs,
    migrated_scales,
    new_scales,
    observe,
)
from onebit.numerics.second_order import (
    Inverse,
    fill_times,
    inner,
    lean_class_inverse,
    new_inverses,
    subtract,
)
from onebit.numerics.softmax import softmax
from onebit.numerics.winning import ROOM, fill_winning
from onebit.theory import bounds

LARGEST_FULL = 200_000
"""covariance="auto" takes full matrices up to so many numbers in them: d * d * K."""

OPENNESS = 6
"""How steeply draws widen where no label is known to be right: the power of (1 - q) r.

Less, and labels of two that are as likely as each other are tried in vain; more, and a label that
looked bad at first is not tried again."""

UNLIKELY = 0.05
"""Where the best label is less likely to be wrong, draws stay as they are: its power is nothing."""

TOLD = 2
"""The feedback that the label is right, from someone who says it, not from a decision."""

YOUNG = 1000.0
"""Rounds after which forgetting begins to matter."""

OLDEST = 1e100
"""No age is higher."""

ENOUGH_TO_RETURN = math.log(1e2)
"""Evidence for weights of before, where all changed: by how much they explain the last bits better.
"""


class Form(NamedTuple):
    """What the two forms do differently.

    prior: a (ln K)^2, explore: nu / ln K, and forgetting: phi, if they are not given; constant: the
    first variance of the constant's weight, as a multiple of others'; doubt: kappa; least_lesson:
    rho, the least gradient of a wrong label, as a share of its gradient with two classes;
    unforeseen: eta; information_weight: m, which is m t / (t + settling) in round t; sure: a right
    label that had at least the probability 1 - sure teaches nothing; negligible: a covariance is
    not updated if v would change by a smaller share.
    """

    prior: float
    explore: float
    constant: float
    doubt: float
    least_lesson: float
    unforeseen: float
    information_weight: float
    settling: float
    forgetting: float
    sure: float
    negligible: float


DIAGONAL_FORM = Form(
    prior=0.35,
    explore=0.035,
    constant=1.0,
    doubt=0.03,
    least_lesson=0.3,
    unforeseen=0.1,
    information_weight=3.0,
    settling=0.0,
    forgetting=0.0,
    sure=2e-2,
    negligible=1e-3,
)
FULL_FORM = Form(
    prior=0.3,
    explore=0.05,
    constant=4.0,
    doubt=0.25,
    least_lesson=0.45,
    unforeseen=0.0,
    information_weight=2.0,
    settling=30.0,
    forgetting=0.5,
    sure=1e-3,
    negligible=1e-6,
)


class Settings(NamedTuple):
    """What parameters stand for.

    explore: nu; floor: the least of a probability; widest: 1 / a; widest_constant: the first
    variance of the constant's weight; notices: whether changes are noticed; the others as in
    `Form`.
    """

    explore: float
    floor: float
    widest: float
    widest_constant: float
    doubt: float
    least_lesson: float
    unforeseen: float
    information_weight: float
    settling: float
    forgetting: float
    sure: float
    negligible: float
    notices: bool


class Scratch(NamedTuple):
    """What is computed of one x, and scratch.

    x: its values, normalised; squares: their squares; v: x' S_k x, at most 1 / a; share: the part
    of it that is left so; g: the gradient; f: the information; p: of each label to be right;
    deviations: of the draws; room: for their integrals; Sx: in the full form S_k x, a row for each
    class; retired: which labels cannot be right, as they are retired; said: the probabilities that
    the chosen label is right, and wrong; informed: the classes whose variances change.
    """

    x: np.ndarray
    squares: np.ndarray
    v: np.ndarray
    share: np.ndarray
    g: np.ndarray
    f: np.ndarray
    p: np.ndarray
    deviations: np.ndarray
    room: np.ndarray
    Sx: np.ndarray
    retired: np.ndarray
    said: np.ndarray
    informed: np.ndarray


class Former(NamedTuple):
    """W: the weights that were forgotten when all changed last; evidence: that they are true again.

    rounds: how many they were learned in, zero if there are none.
    """

    W: Annotated[np.ndarray, Field("inputs", "classes")]
    rounds: Count
    evidence: Amount


class State(NamedTuple):
    """W: means of the weights; S: their variances, or covariance matrices; rounds: t - 1.

    There is a matrix for each class. Variances and covariances are `age` times S. Inputs are the
    features as `scales` make them, with a constant; without scales, the features.
    """

    W: Annotated[np.ndarray, Field("inputs", "classes")]
    S: (
        Annotated[np.ndarray, Field("inputs", "classes", least=0.0)]
        | Annotated[Inverse, Within(n="inputs", each="classes")]
    )
    age: Amount
    rounds: Count
    scales: Scales | None
    changes: Changes
    former: Former
    rates: Rates
    settings: Settings
    rng: Generator
    scratch: Scratch

    def check(self) -> None:
        """Check that what was learned has not become younger, nor all changed in rounds to come."""
        if self.age < 1.0:
            raise ValueError(f"age is {self.age}, and should be at least 1")
        if self.changes.began > self.rounds:
            raise ValueError(f"all changed after {self.changes.began} rounds of {self.rounds}")

    def begin_classes(self, first: int) -> None:
        """Let new classes be as little known as before the first round."""
        new = self.S[:, first:] if isinstance(self.S, np.ndarray) else self.S.base[first:]
        new /= self.age

    def retire_classes(self, retired: list[int]) -> None:
        """Let these classes be neither right nor learned about."""
        self.scratch.retired[:] = False
        self.scratch.retired[retired] = True


@lean_kernel
def score_diagonal(state, x, scores):
    """Fill the mean of each class's score, and its variance v."""
    v, age = state.scratch.v, state.age[()]
    inputs = inputs_of(state.scales, x)
    unit_scores(state.W, state.S, inputs, state.scratch, scores, v)
    for k in range(v.size):
        v[k] *= age
    end_score(state, scores)


@lean_kernel
def score_full(state, x, scores):
    """Fill the mean of each class's score, and its variance v."""
    scratch = state.scratch
    inputs = inputs_of(state.scales, x)
    fill_unit(inputs, scratch.x, scratch.squares)
    unit = with_values(inputs, scratch.x)
    products(state.W, unit, scores)
    for k in range(scores.size):
        fill_times(lean_class_inverse(state.S, k), unit, scratch.Sx[k])
        # It is non-negative up to rounding.
        scratch.v[k] = max(0.0, state.age[()] * inner(unit, scratch.Sx[k]))
    end_score(state, scores)


@lean_kernel
def end_score(state, scores):
    """Let no score be less known than at first, and none of a retired label be right."""
    v, share, widest = state.scratch.v, state.scratch.share, state.settings.widest
    for k in range(scores.size):
        share[k] = 1.0
        if v[k] > widest:
            share[k] = widest / v[k]
            v[k] = widest
        if state.scratch.retired[k]:
            scores[k] = -math.inf


@lean_kernel
def fill_deviations(state, scores, best, offer):
    """Fill the deviation of each class's draw: nu_k sqrt(v_k), with nu_k at least nu.

    Where the highest score, of `best`, is not likely to be that of the right label, what is known
    less well than it has draws up to as wide as the model says.
    """
    v, deviations, settings = state.scratch.v, state.scratch.deviations, state.settings
    for k in on_offer(offer, scores.size):
        deviations[k] = settings.explore * math.sqrt(v[k])
    least, near = math.log(n_on_offer(offer, scores.size) / UNLIKELY), 0
    for k in on_offer(offer, scores.size):
        gap = scores[best] - scores[k]
        near += gap * gap <= least * least * (1.0 + settings.doubt * (v[best] + v[k]))
    if near > 1 and 0.0 < settings.explore < 1.0:  # best itself is one of them
        widen(settings.explore, settings.doubt, scores, v, best, offer, state.scratch.g, deviations)


@lean_kernel
def widen(nu, kappa, scores, v, best, offer, z, deviations):
    """Fill the deviations where the highest score is not far above all others; z is scratch."""
    no_alias()
    for k in range(v.size):
        z[k] = (scores[k] - scores[best]) / math.sqrt(1.0 + kappa * (v[best] + v[k]))
    likely = 0.0
    for k in on_offer(offer, scores.size):
        likely += math.exp(z[k])
    wrong = 1.0 - 1.0 / likely
    for k in range(v.size):
        open_to = wrong * (1.0 - v[best] / v[k]) if v[k] > v[best] else 0.0
        deviations[k] = (nu + (1.0 - nu) * open_to**OPENNESS) * math.sqrt(v[k])


@lean_kernel
def policy(state, x, scores, offer, p):
    """Fill the probability that a class's draw is the largest, hedged."""
    scratch, settings = state.scratch, state.settings
    best = argmax(scores, offer)
    fill_deviations(state, scores, best, offer)
    fill_winning(scores, scratch.deviations, best, p, scratch.room, offer)
    if settings.explore > 0.0:
        best = hedge(state.rates, best, offer, p)
    for k in on_offer(offer, p.size):
        p[k] = settings.floor + (1.0 - n_on_offer(offer, p.size) * settings.floor) * p[k]
    return best


@lean_kernel
def lesson(state, scores, label, correct):
    """Fill the gradient g and the information f of each class's score; return whether to update.

    The bit has the likelihood q if the label is right, 1 - q if not, where q is its probability
    under softmax of the scores, each shrunk by its doubt, of all labels: if not, another one is
    right, on offer or not. The surer the model was, the likelier it did not foresee which.
    """
    scratch, settings = state.scratch, state.settings
    v, g, f, p = scratch.v, scratch.g, scratch.f, scratch.p
    for k in range(p.size):
        f[k] = 1.0 / math.sqrt(1.0 + settings.doubt * v[k])
        g[k] = f[k] * scores[k]
    alone = 0.0 if correct else 1.0 / (1.0 + math.exp(-g[label]))
    softmax(g, 1.0, p)
    others = sum_of_others(p, label)
    q = p[label]
    scratch.said[0], scratch.said[1] = q, others
    if correct and others < settings.sure:
        return False
    if others < 1e-9:
        others = 1e-9
    t = state.rounds[()] + 1.0
    weight = settings.information_weight * t / (t + settings.settling)
    unforeseen = settings.unforeseen / (settings.unforeseen + others)
    foreseen, any_other = (1.0 - unforeseen) / others, unforeseen / n_others(scratch.retired)
    if correct == TOLD:
        implicit = implicit_share(q, others, v[label] / (1.0 + settings.doubt * v[label]))
    else:
        implicit = 1.0
    # - d log likelihood / d score_k, and the information of one bit, (dq)^2 / (q (1 - q)).
    of_label = f[label]
    for k in range(p.size):
        right = 0.0 if scratch.retired[k] else foreseen * p[k] + any_other
        g[k] = (implicit * p[k] if correct else -q * right) * f[k] * scratch.share[k]
        f[k] = q * p[k] * p[k] / others * (weight * f[k] * f[k])
    g[label] = -implicit * others if correct else max(q, settings.least_lesson * alone)
    g[label] *= of_label * scratch.share[label]
    f[label] = q * others * (weight * of_label * of_label)
    return True


@lean_kernel
def sum_of_others(p, label):
    """Return the probability of all labels but one, exact also where it is small."""
    others = 0.0
    for k in range(p.size):
        if k != label:
            others += p[k]
    return others


@lean_kernel
def n_others(retired):
    """Return how many labels there are beside one, but for those that are retired; at least one."""
    n = 0
    for k in range(retired.size):
        n += not retired[k]
    return max(1, n - 1)


@lean_kernel
def implicit_share(q, others, v):
    """Return r / (1 - q), where r is 1 - q after a step of r, not 1 - q, moved the score by r v.

    The root of r = others / (others + q e^{r v}) in [0, 1], by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        r = 0.5 * (low + high)
        if r * (1.0 + q / others * math.exp(min(r * v, 700.0))) < 1.0:
            low = r
        else:
            high = r
    return min(1.0, low / others)


@lean_kernel
def changed(state, x, scores, label, offer, correct):
    """Return what the bit says has changed, if anything: SOME labels, EVERYTHING, or RETURNED.

    One that is told says nothing of the label that would have been chosen.
    """
    if correct == TOLD:
        return NOTHING
    rate(state.rates, argmax(scores, offer), offer, label, correct)
    if not state.settings.notices:
        return NOTHING
    changes, said, rounds = state.changes, state.scratch.said, state.rounds[()]
    if state.former.rounds[()] > 0:
        compare_former(state, x, label, correct)
    what = notice(changes, said[0], said[1], state.scratch.v[label], label, correct, rounds)
    if what == EVERYTHING and state.former.evidence[()] > ENOUGH_TO_RETURN:
        return RETURNED
    return what


@lean_kernel
def compare_former(state, x, label, correct):
    """Count how much better the former weights foresee bits, while there is evidence of a change.

    What the word of either model is worth, the levels of `Changes` tell.
    """
    changes, former, scratch = state.changes, state.former, state.scratch
    if correct and changes.evidence[()] == 0.0:
        former.evidence[()] = 0.0
        return
    levels, said, z, p = changes.levels, scratch.said, scratch.g, scratch.p
    products(former.W, with_values(last_inputs(state.scales, x), scratch.x), z)
    for k in range(z.size):
        if scratch.retired[k]:
            z[k] = -math.inf
    softmax(z, 1.0, p)
    then = expected(levels[level_of(p[label], sum_of_others(p, label))])
    now = expected(levels[level_of(said[0], said[1])])
    more = math.log((1.0 - then) / (1.0 - now)) if correct else math.log(then / now)
    former.evidence[()] = max(0.0, former.evidence[()] + more)


@lean_kernel
def begin_change(state, what):
    """Exchange the weights with the former ones if all changed; forget the rates of what changed.

    If it did not return, the weights are then to be forgotten. Covariances stay as they are if it
    did: what x are like, these know too.
    """
    if what == SOME:
        for k in range(state.W.shape[1]):
            if has_changed(state.changes, what, k):
                forget_rates(state.rates, k)
        return
    forget_rates(state.rates, EVERYTHING)
    W, former = state.W, state.former
    for j in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[j, k], former.W[j, k] = former.W[j, k], W[j, k]
    former.rounds[()] = state.rounds[()] - state.changes.began[()]
    former.evidence[()] = 0.0
    if what == EVERYTHING:
        state.age[()] = 1.0


@lean_kernel
def forget_diagonal(state, k):
    """Let class k be as little known as before the first round."""
    last = state.W.shape[0] - 1
    for j in range(last + 1):
        state.W[j, k] = 0.0
        state.S[j, k] = first_variance(state, j, last)


@lean_kernel
def forget_full(state, k):
    """Let class k be as little known as before the first round."""
    S = state.S.base[k]
    last = S.shape[0] - 1
    for i in range(last + 1):
        state.W[i, k] = 0.0
        for j in range(last + 1):
            S[i, j] = first_variance(state, i, last) if i == j else 0.0
    state.S.n_pending[k, 0] = 0


@lean_kernel
def first_variance(state, j, last):
    """Return what S has for weight j before the first round, at the age of now."""
    settings = state.settings
    return (settings.widest_constant if j == last else settings.widest) / state.age[()]


@lean_kernel
def end_round(state, x):
    """Count the values of x, and age what was learned."""
    observe(state.scales, state.rounds[()], x, (state.W, state.former.W))
    state.rounds[()] += 1
    if state.settings.forgetting > 0.0:
        since = state.rounds[()] - state.changes.began[()]
        older = (since + YOUNG) / (since - 1 + YOUNG)
        state.age[()] = min(state.age[()] * older**state.settings.forgetting, OLDEST)


@lean_kernel
def update_diagonal(W, S, age, indices, x, g, f, informed, n):
    """Do w_k -= g_k S_k x, and S_k^{-1} += f_k x x' for those informed, with only the diagonals."""
    no_alias()
    for i in range(indices.size):
        j, step, square = indices[i], age * x[i], age * (x[i] * x[i])
        for k in range(g.size):
            W[j, k] -= step * g[k] * S[j, k]
        for m in range(n):
            k = informed[m]
            S[j, k] /= 1.0 + square * f[k] * S[j, k]


@lean_kernel
def learn_diagonal(state, x, scores, label, probability, offer, correct):
    """One step of an online Bayes rule, kept normal and independent."""
    scratch, age = state.scratch, state.age[()]
    updated = lesson(state, scores, label, correct)
    if updated:
        inputs, informed, n = last_inputs(state.scales, x), scratch.informed, 0
        for k in range(scores.size):
            if scratch.f[k] * scratch.v[k] > state.settings.negligible * scratch.share[k]:
                informed[n] = k
                n += 1
        update_diagonal(
            state.W, state.S, age, inputs.indices, scratch.x, scratch.g, scratch.f, informed, n
        )
    what = changed(state, x, scores, label, offer, correct)
    if what != NOTHING:
        begin_change(state, what)
        for k in range(scores.size):
            if has_changed(state.changes, what, k):
                forget_diagonal(state, k)
        remember(state.changes, what, state.rounds[()])
    end_round(state, x)
    return updated


@lean_kernel
def learn_full(state, x, scores, label, probability, offer, correct):
    """One step of an online Bayes rule, kept normal, with the classes independent."""
    scratch, age = state.scratch, state.age[()]
    updated = lesson(state, scores, label, correct)
    if updated:
        for k in range(scores.size):
            Sx, f = scratch.Sx[k], scratch.f[k]
            step = age * scratch.g[k]
            for j in range(Sx.size):
                state.W[j, k] -= step * Sx[j]
            v = scratch.v[k] / scratch.share[k]
            if f * v > state.settings.negligible:
                subtract(lean_class_inverse(state.S, k), Sx, age * f / (1.0 + f * v))
    what = changed(state, x, scores, label, offer, correct)
    if what != NOTHING:
        begin_change(state, what)
        for k in range(scores.size):
            if has_changed(state.changes, what, k):
                forget_full(state, k)
        remember(state.changes, what, state.rounds[()])
    end_round(state, x)
    return updated


DIAGONAL = Kernels("diagonal", score_diagonal, policy, learn_diagonal)
FULL = Kernels("full", score_full, policy, learn_full)
# Without scales, the types of a state differ.
DIAGONAL_AS_PREPARED = Kernels("diagonal_as_prepared", score_diagonal, policy, learn_diagonal)
FULL_AS_PREPARED = Kernels("full_as_prepared", score_full, policy, learn_full)


class OneBitClassifier(ProbabilityLearner):
    """The default choice: few mistakes, nothing to tune.

    It has a probability model: label k is right with probability softmax(W x)_k. The weights have a
    Gaussian posterior, which each bit updates. To decide, it draws the score of each label from the
    posterior and chooses the highest (Thompson sampling): a label that is known to be wrong is
    never chosen, one about which little is known sometimes is. A bit teaches all classes. If the
    label was right, the truth is known. If it was wrong, it falls, and the others rise, the likely
    ones most: so a class that looked bad at first is found after all.

    `make compare` has its mistakes beside those of other tools. It has no guarantee: an adversary
    can fool it. If you need one, take `SOBA` or `Gaptron`.

    Parameters
    ----------
    explore : float >= 0 or None, default=None
        nu, the width of the draws in standard deviations of the scores. 0 is greedy, 1 is as wide
        as the model says, which costs more mistakes than it saves on most streams tried. None is
        0.035 ln K in the diagonal form, 0.05 ln K in the full, with ln K at least 1: the more
        labels there are, the more there is to try. Where no label is likely to be right, draws of
        little known labels are wider; see the notes.
    covariance : {"auto", "diagonal", "full"}, default="auto"
        "full" keeps a matrix of d^2 numbers for each class and makes fewer mistakes, "diagonal" d
        numbers. "auto" is "full" if d^2 K is at most 200,000, else "diagonal".
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
    by its length. `coef_` and `intercept_` are weights for examples so made.

    With s = W x, v_k = x' S_k x, where S_k is the covariance of the weights w_k, the chosen label
    is that of the largest draw from N(s_k, nu_k^2 v_k). Its probability is exact, to 1e-7, by
    quadrature. nu_k is nu, and more for labels that are known less well than the best, b: with
    r_k = 1 - v_b / v_k and 1 - q = 1 - 1 / sum_k exp((s_k - s_b) / sqrt(1 + kappa (v_k + v_b))),

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
    What is not textbook material was tuned on streams (docs/one_bit_classifier.md):

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
    weights are exchanged; S_k stays. `onebit.numerics.changes` has the formulas, and
    `bench/alarms.py` counts false alarms.

    Where the model's label (the one with the highest score) is right less often than a constant
    label would be, the constant label is chosen instead: with uninformative features, a model can
    be worse than none. `onebit.numerics.constant` has the formulas. With explore=0 it never is.
    `predict` is the model's label.

    Late feedback meets the weights of the moment it arrives. Told the label itself, by
    ``learn(decision, truth=...)`` or `teach`, it takes the step of a right label, which has the
    same likelihood, but an implicit one: g is that after the step, not before it. A chosen label
    that is right already had some probability; a label that is given may have had almost none, and
    full steps for the first few would swamp those that follow. Bits and labels may be mixed.

    References
    ----------
    K. Crammer and C. Gentile. Multiclass classification with bandit feedback using adaptive
    regularization. Machine Learning 90 (2013), 347-383; its outlook asks for a learner of this
    kind. Drawing from what is known is due to W. R. Thompson, Biometrika 25 (1933), 285-294.

    Examples
    --------
    >>> from onebit import OneBitClassifier, SOBA, play, streams
    >>> X, y = streams.synnonsep(10_000, seed=0)
    >>> play(OneBitClassifier(random_state=0), X, y).n_mistakes
    567
    >>> play(SOBA(random_state=0), X, y).n_mistakes
    5718
    """

    uses_truth, _told_bit = True, TOLD
    state_version = 1
    reference = "onebit"
    cost = Cost(LINEAR, full="d^2 K")
    bound = bounds.ONE_BIT_CLASSIFIER
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"covariance": "diagonal", "standardize": False},
        {"covariance": "diagonal", "forgetting": 0.5, "min_probability": 0.01},
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "explore": [NOT_NEGATIVE, None],
        "covariance": [StrOptions({"auto", "diagonal", "full"})],
        "a": [POSITIVE, None],
        "forgetting": [Interval(Real, 0, 10, closed="both"), None],
        "standardize": ["boolean"],
        "notice_changes": ["boolean"],
        "min_probability": [Interval(Real, 0, 1, closed="left")],
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
        self.classes = classes
        self.random_state = random_state

    def _at_size(self, n_features: int, n_classes: int) -> OneBitClassifier:
        if self.covariance != "auto":
            return self
        full = n_features**2 * n_classes <= LARGEST_FULL
        return clone(self).set_params(covariance="full" if full else "diagonal")

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        if self.min_probability * n_classes > 1.0:
            raise ValueError(
                f"min_probability={self.min_probability} for each of {n_classes} labels is more "
                "than one in all"
            )
        full = self._at_size(n_features, n_classes).covariance == "full"
        form = FULL_FORM if full else DIAGONAL_FORM
        ln_K = max(1.0, math.log(n_classes))
        a = form.prior / ln_K**2 if self.a is None else float(self.a)
        explore = form.explore * ln_K if self.explore is None else float(self.explore)
        forgetting = form.forgetting if self.forgetting is None else float(self.forgetting)
        settings = Settings(
            explore=explore,
            floor=float(self.min_probability),
            widest=1.0 / a,
            widest_constant=(form.constant if self.standardize else 1.0) / a,
            doubt=form.doubt,
            least_lesson=form.least_lesson,
            unforeseen=form.unforeseen,
            information_weight=form.information_weight,
            settling=form.settling,
            forgetting=forgetting,
            sure=form.sure,
            negligible=form.negligible,
            notices=bool(self.notice_changes),
        )
        scales = new_scales(n_features) if self.standardize else None
        n_inputs = n_features + bool(self.standardize)
        W = np.zeros((n_inputs, n_classes))
        age, rounds = np.ones(()), np.zeros((), dtype=np.int64)
        x, squares = np.zeros((2, n_inputs))
        v, share, g, f, p, deviations = np.zeros((6, n_classes))
        room = np.zeros((ROOM, n_classes))
        Sx = np.zeros((n_classes if full else 0, n_inputs))
        retired = np.zeros(n_classes, dtype=np.bool_)
        changes, rates = new_changes(n_classes), new_rates(n_classes)
        said, informed = np.zeros(2), np.zeros(n_classes, dtype=INDEX)
        scratch = Scratch(
            x, squares, v, share, g, f, p, deviations, room, Sx, retired, said, informed
        )
        variances = np.full(n_inputs, settings.widest)
        variances[-1:] = settings.widest_constant
        if full:
            S: Any = new_inverses(n_classes, n_inputs, 1.0 / variances.max())
            S.base[:, np.arange(n_inputs), np.arange(n_inputs)] = variances
        else:
            S = np.repeat(variances[:, np.newaxis], n_classes, axis=1)
        former = Former(np.zeros_like(W), np.zeros((), dtype=np.int64), np.zeros(()))
        if self.standardize:
            kernels = FULL if full else DIAGONAL
        else:
            kernels = FULL_AS_PREPARED if full else DIAGONAL_AS_PREPARED
        return kernels, State(
            W, S, age, rounds, scales, changes, former, rates, settings, rng, scratch
        )

    @classmethod
    def _migrate_parameters(cls, version: int, parameters: dict[str, Any]) -> dict[str, Any]:
        # Some files of version 0 are from before there were scales.
        return {"standardize": False, **parameters} if version == 0 else parameters

    def _migrate(self, version: int, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if "scales.features" in arrays and "scales.columns" not in arrays:
            return arrays | migrated_scales(arrays)
        return arrays

    @property
    def coef_(self) -> np.ndarray:
        """Weights, of shape (n_classes, n_features), for standardised examples of unit length."""
        return super().coef_[:, : self._run.all_features.size]

    @property
    def changes_(self) -> list[Change]:
        """The changes noticed, the last 64 of them: each has a round, a label and its evidence.

        The label is None if everything changed; `returned` says whether to what was true before.
        Rounds are counted by their feedback, from 1.
        """
        check_is_fitted(self)
        with self._run.turns:
            return listed(self._state.changes, self._run.labels)

    @property
    def rounds_(self) -> int:
        """How many rounds, and labels that were told, it has learned from."""
        check_is_fitted(self)
        return int(self._state.rounds)

    @property
    def intercept_(self) -> np.ndarray:
        """Weights of the constant, one for each class; zero where none is added."""
        weights = super().coef_
        return np.zeros(len(weights)) if self._state.scales is None else weights[:, -1]
