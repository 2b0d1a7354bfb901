"""A mixture of models that see x differently, weighted by how well each predicts the bits.

The likelihood of a bit does not depend on who chose the label. So every member learns from every
bit, and its weight is multiplied by the probability that it gave to the bit. To decide, the score
of each label is drawn from a normal distribution with the weighted means of the members' scores and
variances, and the highest wins. A small share of all weight goes back to all members in each
round (the fixed share of Herbster and Warmuth), so that weights can move when the stream changes.

Pairs and triples of columns (`onebit.numerics.pairs`) correct the prediction of all members by what
was right in the cells of x, and then neighbours (`onebit.numerics.neighbours`) correct it by
examples like x. Each of the two is weighed against the prediction that it corrects, by the same
rule.

A member is a view of x (`onebit.numerics.views`), a posterior (`onebit.numerics.posterior`) and,
for the line, what labels mean (`onebit.numerics.descriptions`). `Members` has a field for each; the
fields of members that a mixture does not have are None. To add a member is to add a field: the
kernels below walk over all that are not None. A mixture of one member is that member, and has its
scores.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, rarely_called
from onebit.core.offer import n_on_offer, nth_on_offer
from onebit.core.state import Field, Within, check_weights
from onebit.numerics import tuning
from onebit.numerics.argmax import argmax
from onebit.numerics.bins import Bins
from onebit.numerics.changes import EVERYTHING, SOME, has_changed
from onebit.numerics.descriptions import (
    Descriptions,
    add_similarities,
    add_worth,
    doubt_again,
    learn_worth,
    narrow_class,
    narrow_prior,
    new_descriptions,
)
from onebit.numerics.neighbours import (
    Neighbours,
    add_log_probabilities,
    add_neighbours,
    change_neighbours,
    effective_weight,
    fill_neighbours,
    learn_neighbours,
    n_stored,
    new_neighbours,
)
from onebit.numerics.pair_products import Products
from onebit.numerics.pairs import (
    Pairs,
    add_log_factors,
    are_weighed,
    change_pairs,
    correct_by_pairs,
    learn_pairs,
    new_pairs,
)
from onebit.numerics.posterior import (
    NONE_RIGHT,
    Posterior,
    fill_scores,
    new_posterior,
    predict,
    score_posterior,
)
from onebit.numerics.posterior_changes import (
    doubt_level,
    exchange_former,
    forget_class,
    predict_by_former,
    score_by_former,
)
from onebit.numerics.posterior_lessons import (
    grow_older,
    learn_posterior,
    likelihood,
    sum_of_others,
)
from onebit.numerics.posterior_policy import fill_deviations, fill_optimistic, fill_policy
from onebit.numerics.softmax import logistic
from onebit.numerics.tuning import MixtureConstants
from onebit.numerics.views import (
    encode,
    last_encoded,
    n_encoded,
    new_view,
    observe_view,
)
from onebit.numerics.winning import fill_winning

RIGHT, WRONG = 0, 1
"""Places in `Scratch.said`."""

LEAST_SCORE = -700.0
"""The score of labels whose probability is below 1e-300."""


class Member(NamedTuple):
    """A model of the mixture.

    Attributes
    ----------
    view_of_x
        What it sees of x.
    posterior
        What it has learned.
    descriptions
        What labels mean; None if the member takes no descriptions.
    """

    view_of_x: Bins | Products | None
    posterior: Annotated[Posterior, Within(inputs="inputs")]
    descriptions: Descriptions | None


class Members(NamedTuple):
    """The members, by the names of their views."""

    line: Annotated[Member, Within(inputs="line_inputs")]
    cells: Annotated[Member, Within(inputs="cell_inputs")] | None
    products: Annotated[Member, Within(inputs="product_inputs")] | None


class Scratch(NamedTuple):
    """Memory for one x.

    Attributes
    ----------
    p
        Probabilities of the labels.
    means, deviations
        Of the draws of each label's score.
    said
        The probabilities that the chosen label is RIGHT, and WRONG, before the bit came.
    updated
        Which members the bit updated.
    """

    p: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    said: np.ndarray
    updated: np.ndarray


class WeightedMember(NamedTuple):
    """A model in the mixture, with its weight.

    Attributes
    ----------
    name
        What it sees: "line", "cells", "products", "pairs" or "neighbours".
    weight
        How far it is trusted; weights add up to one.
    n_inputs
        The largest number of inputs that its view makes of x; for "pairs", the number of pairs and
        triples; for "neighbours", the number of stored examples.
    """

    name: str
    weight: float
    n_inputs: int


class Mixture(NamedTuple):
    """The members, and how far each one is trusted.

    Attributes
    ----------
    pairs
        Pairs and triples of columns, if there are other members than the line.
    neighbours
        Examples like x, if there are other members than the line.
    trust
        The weight of each member beside the others; weights add up to one.
    """

    members: Members
    pairs: Pairs | None
    neighbours: Neighbours | None
    trust: Annotated[np.ndarray, Field("members", least=0.0, most=1.0)]
    settings: MixtureConstants
    scratch: Scratch

    def check(self) -> None:
        """Check that the weights of the members add up to one."""
        check_weights("trust", self.trust)

    @property
    def named(self) -> dict[str, Member]:
        """The members that there are, in their order."""
        return {name: one for name, one in self.members._asdict().items() if one is not None}

    @property
    def weighed_pairs(self) -> Pairs | None:
        """The pairs, if they correct anything."""
        pairs = self.pairs
        return pairs if pairs is not None and are_weighed.py_func(pairs) else None

    @property
    def weighted(self) -> list[WeightedMember]:
        """The members with their weights now."""
        local = 0.0 if self.neighbours is None else float(self.neighbours.weight)
        pairs = self.weighed_pairs
        of_pairs = 0.0 if pairs is None else float(pairs.weight)
        rest = (1.0 - local) * (1.0 - of_pairs)
        found = [
            WeightedMember(name, rest * weight, len(member.posterior.W))
            for (name, member), weight in zip(self.named.items(), self.trust.tolist(), strict=True)
        ]
        if pairs is not None:
            found.append(WeightedMember("pairs", (1.0 - local) * of_pairs, pairs.trust.size))
        if self.neighbours is not None:
            found.append(WeightedMember("neighbours", local, n_stored(self.neighbours)))
        return found

    @property
    def deviations(self) -> np.ndarray:
        """The deviations of the draws of the last policy, if it explored."""
        if self.trust.size == 1:
            return self.members.line.posterior.scratch.deviations
        return self.scratch.deviations

    def retire_classes(self, retired: list[int]) -> None:
        """Mask these classes, and no others: they are not right, and nothing is learned of them."""
        for member in self.named.values():
            member.posterior.scratch.retired[:] = False
            member.posterior.scratch.retired[retired] = True


def new_member(
    view: str,
    n_features: int,
    n_classes: int,
    *,
    full: bool,
    exclusive: bool = True,
    scaled: bool = True,
    described: bool = False,
    **given: float | None,
) -> Member:
    """Return a model before the first round; `given` is what `new_posterior` takes.

    If features are not `scaled`, there is no constant beside them, and no view but the line. If it
    can be `described`, labels may have descriptions.
    """
    n_inputs = n_encoded(view, n_features) - (not scaled)
    posterior = new_posterior(
        n_inputs, n_classes, full=full, exclusive=exclusive, has_constant=scaled, **given
    )
    descriptions = new_descriptions(n_features, n_classes) if described else None
    return Member(new_view(view, n_features, n_classes), posterior, descriptions)


def new_mixture(
    members: Mapping[str, Member], n_features: int, n_classes: int, *, exclusive: bool = True
) -> Mixture:
    """Return a mixture of members, by the names of their views, before the first round.

    If there are several, and labels are exclusive, pairs and neighbours are beside them.
    """
    n = len(members)
    is_corrected = n > 1 and exclusive
    return Mixture(
        members=Members._make(members.get(name) for name in Members._fields),
        pairs=new_pairs(n_features, n_classes) if is_corrected else None,
        neighbours=new_neighbours(n_features, n_classes) if is_corrected else None,
        trust=np.full(n, 1.0 / n),
        settings=tuning.TUNING.mixture,
        scratch=Scratch(
            p=np.zeros(n_classes),
            means=np.zeros(n_classes),
            deviations=np.zeros(n_classes),
            said=np.zeros(2),
            updated=np.zeros(n, dtype=np.bool_),
        ),
    )


# Walking over members


def each(function: Any) -> Any:
    """Decorate a kernel ``function(member, i, ...)``; return one that calls it for all members.

    That is ``walk(members, ...)``; i is the place of the member's weight. The loop is unrolled, as
    members have different types, and Numba compiles nothing for those that are None.
    """
    names = list(inspect.signature(getattr(function, "py_func", function)).parameters)[2:]
    given = "".join(f", {name}" for name in names)
    scope = {"function": function, "__name__": __name__}
    exec(
        f"def call(member, i{given}):\n"
        "    if member is None:\n"
        "        return i\n"
        f"    function(member, i{given})\n"
        "    return i + 1\n"
        f"def walk(members{given}):\n"
        "    i = 0\n"
        + "".join(f"    i = call(members.{name}, i{given})\n" for name in Members._fields),
        scope,
    )
    scope["call"] = lean_kernel(scope["call"])
    return lean_kernel(scope["walk"])


# Scores


@lean_kernel
def score_mixture(mixture, x, inputs, scores):
    """Fill the logarithms of the mixture's probabilities; of a single member, its scores.

    If labels are not exclusive, scores are log-odds. `inputs` is what scales make of x.
    """
    members, trust = mixture.members, mixture.trust
    score_members(members, x, inputs)
    line = members.line.posterior
    if trust.size == 1:
        fill_scores(line, scores)
        return
    p, least = mixture.scratch.p, mixture.settings.least_weight
    fill_mixture(members, trust, least, p)
    correct_by_pairs(mixture.pairs, members.cells, least, p)
    fill_neighbours(mixture.neighbours, inputs, p)
    add_neighbours(mixture.neighbours, least, p)
    for k in range(scores.size):
        scores[k] = math.log(p[k]) if p[k] > 1e-300 else LEAST_SCORE
        if not line.settings.exclusive:
            scores[k] -= math.log(max(1.0 - p[k], 1e-16))
        if line.scratch.retired[k]:
            scores[k] = -math.inf


@each
@lean_kernel
def score_members(member, i, x, inputs):
    """Fill the scores and the probabilities of each member."""
    posterior = member.posterior
    scratch, scores = posterior.scratch, posterior.scratch.scores
    seen = encode(member.view_of_x, x, inputs, scores.size)
    score_posterior(posterior, seen, scores)
    add_similarities(member.descriptions, seen, scratch.x, scratch.stretch[0], scores)
    predict(posterior, scores)


@lean_kernel
def fill_mixture(members, trust, least, p):
    """Fill the probabilities of the labels by all members."""
    for k in range(p.size):
        p[k] = 0.0
    add_probabilities(members, trust, least, p)
    total = total_effective_weight(trust, least)
    for k in range(p.size):
        p[k] /= total


@each
@lean_kernel
def add_probabilities(member, i, trust, least, p):
    """Add the probabilities of each member, times its weight."""
    weight, own = effective_weight(trust[i], least), member.posterior.scratch.p
    for k in range(p.size):
        p[k] += weight * own[k]


@lean_kernel
def total_effective_weight(trust, least):
    """Return the weight that all members together have in predictions."""
    total = 0.0
    for m in range(trust.size):
        total += effective_weight(trust[m], least)
    return total


# The policy


@lean_kernel
def fill_mixture_policy(mixture, explores, scores, offer, p):
    """Fill the probability that each label's draw is the highest; return the greedy label.

    The score of a label is drawn around the weighted mean of the members' scores, with the weighted
    mean of the variances of their draws. Pairs add the logarithms of their factors. The scores of
    neighbours, the logarithms of their probabilities, have the same variance. If labels are not
    exclusive, the probability of each is drawn, with the optimism of one model (`fill_policy`).
    """
    line = mixture.members.line.posterior
    if mixture.trust.size == 1:  # its draws have no width if it does not explore
        return fill_policy(line, scores, offer, p)
    best = argmax(scores, offer)
    for k in range(p.size):
        p[k] = 0.0
    if not explores:
        p[best] = 1.0
        return best
    means, deviations = mixture.scratch.means, mixture.scratch.deviations
    least = mixture.settings.least_weight
    fill_moments(mixture.members, mixture.trust, least, offer, means, deviations)
    if line.settings.exclusive:
        add_log_factors(mixture.pairs, means)
        add_log_probabilities(mixture.neighbours, least, means)
    else:
        for k in range(p.size):
            p[k] = logistic(scores[k])
        fill_optimistic(line.settings.constants.optimism, deviations, best, p, means)
    fill_winning(means, deviations, argmax(means, offer), p, line.scratch.room, offer)
    return best


@lean_kernel
def fill_moments(members, trust, least, offer, means, deviations):
    """Fill the weighted means of the members' scores, and the deviations of the draws."""
    total = total_effective_weight(trust, least)
    for k in range(means.size):
        means[k] = deviations[k] = 0.0
    add_moments(members, trust, least, offer, means, deviations)
    for i in range(n_on_offer(offer, means.size)):
        k = nth_on_offer(offer, i, means.size)
        means[k] /= total
        deviations[k] = math.sqrt(deviations[k] / total)


@each
@lean_kernel
def add_moments(member, i, trust, least, offer, means, variances):
    """Add the mean and the variance of each member's draws, times its weight."""
    posterior, weight = member.posterior, effective_weight(trust[i], least)
    if weight > 0.0:
        scratch = posterior.scratch
        best = argmax(scratch.scores, offer)
        fill_deviations(posterior, scratch.scores, best, offer)
        for n in range(n_on_offer(offer, means.size)):
            k = nth_on_offer(offer, n, means.size)
            means[k] += weight * scratch.scores[k]
            variances[k] += weight * (scratch.deviations[k] * scratch.deviations[k])


# Lessons


@lean_kernel
def learn_mixture(mixture, inputs, rounds, label, correct):
    """Update every member and its weight by the bit; return whether any was updated.

    The same x was the last one that `score_mixture` was given.
    """
    p, said, updated = mixture.scratch.p, mixture.scratch.said, mixture.scratch.updated
    if mixture.trust.size == 1:
        p = mixture.members.line.posterior.scratch.p
    exclusive = mixture.members.line.posterior.settings.exclusive
    others = probability_of_others(exclusive, p, label)
    total = p[label] + others
    said[RIGHT], said[WRONG] = p[label] / total, others / total
    trust, least = mixture.trust, mixture.settings.least_likelihood
    learn_members(mixture.members, trust, least, inputs, rounds, label, correct, updated)
    share_weights(trust, mixture.settings.share)
    learn_pairs(mixture.pairs, mixture.members.cells, mixture.settings, p, label, correct)
    learn_neighbours(mixture.neighbours, mixture.settings, label, correct)
    return np.any(updated)


@lean_kernel
def probability_of_others(exclusive, p, label):
    """Return the probability that a label is wrong."""
    if exclusive:
        return sum_of_others(p, label)
    return max(1.0 - p[label], 1e-16)


@each
@lean_kernel
def learn_members(member, i, trust, least, inputs, rounds, label, correct, updated):
    """Multiply each weight by the likelihood of the bit, bounded; take a step in each posterior."""
    posterior = member.posterior
    q = min(max(likelihood_of_right(posterior, label, correct), least), 1.0 - least)
    trust[i] *= likelihood(q, correct)
    seen = last_encoded(member.view_of_x, inputs)
    scores = posterior.scratch.scores
    learn_worth(member.descriptions, posterior, label, correct)
    updated[i] = learn_posterior(posterior, seen, scores, rounds, label, correct)
    narrow_prior(member.descriptions, posterior)


@lean_kernel
def likelihood_of_right(posterior, label, correct):
    """Return the probability that the label is right; after NONE_RIGHT, that any label is."""
    p, none = posterior.scratch.p, 1.0
    if correct != NONE_RIGHT:
        return p[label]
    for k in range(p.size):
        none *= 1.0 - p[k]
    return 1.0 - none


@lean_kernel
def share_weights(trust, share):
    """Normalise the weights, and give a share of them back to all members."""
    if trust.size == 1:
        trust[0] = 1.0
        return
    total = 0.0
    for m in range(trust.size):
        total += trust[m]
    for m in range(trust.size):
        trust[m] = (1.0 - share) * (trust[m] / total) + share / trust.size


@each
@lean_kernel
def end_round(member, i, rounds, since):
    """Count the values of x, and age each member.

    `rounds` is the number of earlier rounds, `since` that of rounds since the last change of
    everything, this one included.
    """
    observe_view(member.view_of_x, rounds)
    grow_older(member.posterior, since)


# Changes


@lean_kernel
def former_probability(mixture, inputs, label):
    """Return the probability that the label is right, by the former weights of all members."""
    rarely_called()
    p = mixture.scratch.p
    predict_members_by_former(mixture.members, inputs)
    fill_mixture(mixture.members, mixture.trust, mixture.settings.least_weight, p)
    exclusive = mixture.members.line.posterior.settings.exclusive
    return p[label] / (p[label] + probability_of_others(exclusive, p, label))


@each
@lean_kernel
def predict_members_by_former(member, i, inputs):
    """Fill the probabilities of each member by its former weights."""
    posterior = member.posterior
    scores = posterior.scratch.g
    score_by_former(posterior, last_encoded(member.view_of_x, inputs), scores)
    add_worth(member.descriptions, scores)
    predict_by_former(posterior, scores)


@lean_kernel
def change_mixture(mixture, changes, what):
    """Forget what has changed; `what` is the verdict.

    If everything changed, the current and the former weights are exchanged, and those that become
    current are forgotten, unless they are true again. Then covariances stay as they are: they also
    reflect what x is like.
    """
    rarely_called()
    trust = mixture.trust
    if what == EVERYTHING:
        for m in range(trust.size):
            trust[m] = 1.0 / trust.size
    change_members(mixture.members, changes, what)
    change_pairs(mixture.pairs, changes, what)
    change_neighbours(mixture.neighbours, changes, what)


@each
@lean_kernel
def change_members(member, i, changes, what):
    """Exchange the weights of each member if all changed, and forget what has changed."""
    posterior = member.posterior
    if what != SOME:
        exchange_former(posterior)
    if what == EVERYTHING:
        posterior.age[()] = 1.0
        doubt_level(posterior)
        doubt_again(member.descriptions)
    for k in range(posterior.W.shape[1]):
        if has_changed(changes, what, k):
            forget_class(posterior, k)
            narrow_class(member.descriptions, posterior, k)
