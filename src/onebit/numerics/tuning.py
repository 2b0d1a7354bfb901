"""The constants of `OneBitClassifier` that were tuned on streams, all in one place.

Each part of the learner takes its constants from `TUNING` when it is made, and keeps them in its
state: kernels read them there, so that another value needs no compiling. `tuned` replaces some of
them for a while; ``onebit lab run constants`` prints what each one costs when it is halved and
doubled, and docs/notes.md has the reasons. Sizes of arrays, such as the number of bins, are
constants of their modules, as compiled code depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class PosteriorConstants(NamedTuple):
    """Constants of a posterior (`onebit.numerics.posterior`), by the form of its covariance.

    Attributes
    ----------
    prior
        a (ln K)^2, if a is not given.
    explore
        nu / ln K, if nu is not given.
    constant
        The first variance of the constant's weight, as a multiple of others'.
    doubt
        kappa: a score of variance v is shrunk by 1 / sqrt(1 + kappa v).
    optimism
        omega, where each label is right on its own: how many of its deviations the mean of a draw
        is above the probability of the label.
    least_lesson
        rho, the least gradient of a wrong label, as a share of its gradient with two classes.
    unforeseen
        eta.
    information_weight
        m: the information of round t has the weight m t / (t + settling).
    settling
        The round in which the information has half the weight m.
    forgetting
        phi, if it is not given.
    young
        Rounds after which forgetting begins to matter.
    sure
        A right label that had at least the probability 1 - sure teaches nothing.
    negligible
        A covariance is not updated if v would change by a smaller share.
    openness
        How steeply draws widen where no label is known to be right: the power of (1 - q) r. If it
        is lower, labels are tried in vain where two are equally likely; if it is higher, a label
        that looked bad at first is not tried again.
    unlikely
        Where the best label is less likely to be wrong, draws are not widened.
    """

    prior: float
    explore: float
    constant: float
    doubt: float
    forgetting: float
    negligible: float
    optimism: float = 0.0
    least_lesson: float = 0.0
    unforeseen: float = 0.0
    information_weight: float = 1.0
    settling: float = 0.0
    sure: float = 0.0
    young: float = 1000.0
    openness: int = 6
    unlikely: float = 0.05


class MixtureConstants(NamedTuple):
    """Constants of the mixture (`onebit.numerics.members`).

    Attributes
    ----------
    share
        The part of all weight that goes back to all members in each round (fixed share).
    least_weight
        A member with less weight learns, but does not count in predictions.
    least_likelihood
        No bit has a lower likelihood when members are weighed: otherwise, a member that was wrong
        once while certain would take long to regain weight.
    """

    share: float = 1e-4
    least_weight: float = 0.01
    least_likelihood: float = 1e-3


class NeighbourConstants(NamedTuple):
    """Constants of neighbours (`onebit.numerics.neighbours`).

    Attributes
    ----------
    nearest
        k, how many of the nearest examples count.
    prior
        a: how many examples the prediction of the other members counts for.
    """

    nearest: int = 4
    prior: float = 2.0


class PairConstants(NamedTuple):
    """Constants of pairs (`onebit.numerics.pairs`).

    Attributes
    ----------
    prior
        a: how many examples a factor of one counts for, of a pair or triple.
    """

    prior: float = 2.0


class ChangeConstants(NamedTuple):
    """Constants of changes (`onebit.numerics.changes`); evidence is in nats.

    Attributes
    ----------
    changed_share
        rho: the share of rounds in which what was learned is no longer true, if there is a change.
        High, so that a gradual change is noticed when most of it is over: what is learned in its
        midst is soon wrong again.
    familiar_changed_share
        The same in rounds in which much is known.
    everything
        Evidence that everything changed: a false alarm in e^everything rounds, if mistakes were
        independent.
    label
        Evidence that one label changed. Mistakes of one label come in runs when its weights move.
    related
        Evidence against a label that is enough if others changed at once, or in the last
        `related_rounds`; and by how much the evidence against single labels must exceed that
        against all of them.
    related_rounds
        Rounds after a change of some labels in which one of another is likely.
    rounds_between
        Rounds after a change of everything before there can be another: a model that has just
        begun is too sure at times, and would begin again and again.
    returned
        Evidence for the former weights, when everything changed: by how much they explain the
        last bits better.
    least_mistakes
        No smaller share of mistakes is expected of rounds in which much is known.
    most_expected
        Of a label, only rounds count in which fewer mistakes were expected: what was never learned
        cannot be forgotten.
    first_rounds
        Rounds that the prior of a level counts for: mistakes in half of them, or more.
    first_mistakes, first_expected
        The mistakes, and expected mistakes, that a label begins with, so that it is not taken to be
        as good as others before it is known.
    """

    changed_share: float = 0.8
    familiar_changed_share: float = 0.5
    everything: float = math.log(1e7)
    label: float = math.log(1e12)
    related: float = math.log(1e3)
    related_rounds: int = 300
    rounds_between: int = 500
    returned: float = math.log(1e2)
    least_mistakes: float = 0.2
    most_expected: float = 0.3
    first_rounds: float = 10.0
    first_mistakes: float = 2.0
    first_expected: float = 0.5


class HedgeConstants(NamedTuple):
    """Constants of the hedge against a constant label (`onebit.numerics.constant`).

    Attributes
    ----------
    upper
        Standard deviations from the posterior mean of a label's rate to its upper confidence bound.
        With fewer, the second most frequent label may be taken for the most frequent one for good.
    first_right
        The prior of the model's rate is Beta(first_right, 1). With Beta(1, 1), the constant label
        is often tried before the model has learned anything, if there are few labels.
    most_rounds
        Rounds of a label after which all so far count half, as labels may become more frequent.
    """

    upper: float = 2.0
    first_right: float = 4.0
    most_rounds: float = 1000.0


class DescriptionConstants(NamedTuple):
    """Constants of descriptions (`onebit.numerics.descriptions`).

    Attributes
    ----------
    worth, doubt
        Mean and standard deviation of theta before the first round, in units of ln K / spread. The
        spread is the similarity of a description to itself minus that to others, on average.
    least_spread
        No spread is smaller.
    memory
        H and b are averaged over about this many rounds.
    tolerance
        The prior is changed when a would change by this factor.
    own
        c: the variance of what a label has of its own, relative to what similar descriptions share.
    unshrunk
        g: the factor of what similar labels have learned, whose means are shrunk.
    """

    worth: float = 2.0
    doubt: float = 1.0
    least_spread: float = 0.05
    memory: float = 100.0
    tolerance: float = 1.2
    own: float = 0.25
    unshrunk: float = 1.5


class Tuning(NamedTuple):
    """The constants of all parts.

    Attributes
    ----------
    diagonal, full
        Of posteriors with variances, and with covariance matrices.
    independent_diagonal, independent_full
        The same where each label is right on its own.
    mixture, pairs, neighbours, changes, hedge, descriptions
        Of these parts.
    """

    diagonal: PosteriorConstants = PosteriorConstants(
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
    full: PosteriorConstants = PosteriorConstants(
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
    independent_diagonal: PosteriorConstants = PosteriorConstants(
        prior=0.05,
        explore=0.05,
        constant=1.0,
        doubt=math.pi / 8.0,
        forgetting=0.0,
        negligible=1e-6,
        optimism=1.75,
    )
    independent_full: PosteriorConstants = PosteriorConstants(
        prior=0.5,
        explore=0.2,
        constant=0.1,
        doubt=math.pi / 8.0,
        forgetting=0.0,
        negligible=1e-6,
        optimism=1.75,
    )
    mixture: MixtureConstants = MixtureConstants()
    pairs: PairConstants = PairConstants()
    neighbours: NeighbourConstants = NeighbourConstants()
    changes: ChangeConstants = ChangeConstants()
    hedge: HedgeConstants = HedgeConstants()
    descriptions: DescriptionConstants = DescriptionConstants()


TUNING = Tuning()
"""The constants that new learners take."""


def posterior_constants(*, full: bool, exclusive: bool) -> PosteriorConstants:
    """Return the constants of a posterior."""
    if exclusive:
        return TUNING.full if full else TUNING.diagonal
    return TUNING.independent_full if full else TUNING.independent_diagonal


def constants() -> dict[str, float]:
    """Return all constants by their names, such as "changes.label"."""
    return {
        f"{part}.{name}": value
        for part, group in TUNING._asdict().items()
        for name, value in group._asdict().items()
    }


@contextmanager
def tuned(**values: float) -> Iterator[None]:
    """Give new learners other constants; ``tuned(**{"changes.label": 20.0})`` names one.

    It is for measurements: files do not store constants, and other threads see them too.
    """
    global TUNING
    before, new = TUNING, TUNING
    for name, value in values.items():
        part, _, field = name.partition(".")
        if name not in constants():
            raise ValueError(f"no constant is named {name!r}; there are {', '.join(constants())}")
        group = getattr(new, part)
        kind = type(getattr(group, field))
        new = new._replace(**{part: group._replace(**{field: kind(value)})})
    TUNING = new
    try:
        yield
    finally:
        TUNING = before
