"""Mixture: probability models of any kind, weighted by how well they predict the bits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from onebit.core import Cost, Kernels, Learner, ProbabilityLearner
from onebit.core.base import InnerLearner
from onebit.core.engine import PythonKernels
from onebit.core.example import Example
from onebit.core.explanation import Contribution, check_sum
from onebit.core.generator import below
from onebit.core.run import Run
from onebit.core.state import Field, Generator, WithinNamed, check_weights
from onebit.core.templates import CHOOSE, SCORE
from onebit.learners.other_libraries import seeded
from onebit.learners.softmax_thompson import SoftmaxThompson
from onebit.numerics import tuning
from onebit.numerics.argmax import argmax
from onebit.numerics.contributions import log_parts, logarithmic_shares
from onebit.numerics.members import share_weights
from onebit.numerics.posterior import TOLD
from onebit.numerics.posterior_lessons import likelihood
from onebit.theory import bounds

LEAST_PROBABILITY = 1e-300
LEAST_SCORE = float(np.log(LEAST_PROBABILITY))
"""The smallest probability of a label, and its logarithm, the smallest score."""


class WeightedLearner(NamedTuple):
    """A member of a `Mixture`.

    Attributes
    ----------
    name
        Its name in the parameter `members`.
    weight
        The probability, given all bits so far, that this member predicts the next ones best.
    learner
        The member in its current state, which keeps learning.
    """

    name: str
    weight: float
    learner: Any


class Members:
    """The members, which have started; as a part of a state, their states by their names."""

    def __init__(self, learners: dict[str, Any]) -> None:
        self._learners = learners

    def __iter__(self) -> Iterator[Any]:
        return iter(self._learners.values())

    def _asdict(self) -> dict[str, Any]:
        return {name: learner._run.state for name, learner in self._learners.items()}

    def _replace(self, **states: Any) -> Members:
        new = {name: copy.copy(learner) for name, learner in self._learners.items()}
        for name, learner in new.items():
            run = learner._run
            state = states.get(name, run.state)
            learner._resume(run.classes, run.all_features.size, run.kernels, state)
        return Members(new)

    def declaration(self, name: str) -> WithinNamed:
        """Return how the axes of a member's state are named in that of the mixture."""
        return WithinNamed(name)


class Scratch(NamedTuple):
    """P: the probability that each member gave to each label, in `score`."""

    P: np.ndarray


class State(NamedTuple):
    """The members, and how far each one is trusted.

    Attributes
    ----------
    trust
        The weight of each member; weights add up to one.
    share
        The part of all weight that goes back to all members in each round.
    """

    members: Members
    trust: Annotated[np.ndarray, Field("members", least=0.0, most=1.0)]
    share: float
    scratch: Scratch
    rng: Generator

    def check(self) -> None:
        """Check that the weights of the members add up to one."""
        check_weights("trust", self.trust)

    def retire_classes(self, retired: list[int]) -> None:
        """Stop offering these classes, and no others, in all members."""
        for member in self.members:
            member._run.retire(retired)


def evaluate(run: Run, x: Any, offer: np.ndarray | None, until: int) -> None:
    """Fill a member's scores for x and, if `until` is CHOOSE, its policy."""
    if run.decide is None:
        run.compile_decide()
    offered = run.all_labels if offer is None else offer
    run.decide(run.packed, x, run.scores, offered, run.p, until)


def score(state: State, x: Any, scores: np.ndarray) -> None:
    """Fill the logarithms of the weighted mean of the members' probabilities."""
    P = state.scratch.P
    for p, member in zip(P, state.members, strict=True):
        run = member._run
        evaluate(run, x, None, SCORE)
        run.mask_retired(run.scores)
        np.exp(run.inverse_temperature * (run.scores - run.scores.max()), out=p)
        p /= p.sum()
    np.log(np.maximum(state.trust @ P, LEAST_PROBABILITY), out=scores)


def policy(
    state: State, x: Any, scores: np.ndarray, offer: np.ndarray | None, p: np.ndarray
) -> int:
    """Fill the weighted mean of the members' policies; return the greedy label."""
    p[:] = 0.0
    for weight, member in zip(state.trust, state.members, strict=True):
        evaluate(member._run, x, offer, CHOOSE)
        p += weight * member._run.p
    p /= p.sum()
    return argmax.py_func(scores, offer)


def learn(
    state: State,
    x: Any,
    scores: np.ndarray,
    label: int,
    probability: float,
    offer: np.ndarray | None,
    correct: float,
) -> bool:
    """Multiply each weight by the likelihood of the bit; update every member."""
    trust, least = state.trust, tuning.TUNING.mixture.least_likelihood
    for i, member in enumerate(state.members):
        run, q = member._run, min(max(state.scratch.P[i, label], least), 1.0 - least)
        trust[i] *= likelihood.py_func(q, correct)
        if run.learn is None:
            run.learn = run.kernels.learn(run.state)
        offered = run.all_labels if offer is None else offer
        if 0 < correct < 1:
            member._update_by_grade(run, x, label, probability, offered, correct)
            continue
        feedback = member._truth_feedback if correct == TOLD else correct
        member._update(run, x, label, probability, offered, feedback)
    share_weights.py_func(trust, state.share)
    return True


KERNELS = PythonKernels("mixture", score, policy, learn)


class Mixture(ProbabilityLearner):
    """A mixture of probability models, weighted by how well they predict the bits.

    The likelihood of a bit does not depend on who chose the label. So every member learns from
    every bit, and the probability that it gave to the bits so far is its weight. The label is drawn
    from the weighted mean of the members' policies.

    `OneBitClassifier` is a mixture of models that see x differently, compiled as one. Take this
    class to add a member of your own, which knows something about x that no other model does, or to
    compare other learners: `members_` shows which of them predicts the bits best.

    Parameters
    ----------
    members : list of (name, learner) or None, default=None
        Learners with bits as feedback whose model gives probabilities to labels (`confidence` of
        their decisions is not None), such as `OneBitClassifier`, `SoftmaxThompson`, `Newtron` or a
        `BanditReduction` of a full-information learner or of a classifier of scikit-learn or River.
        They are copied before their first round, and their classes are those given here. None is
        two models of `SoftmaxThompson`, with the views "line" and "cells".
    share : float in [0, 1], default=1e-4
        The part of all weight that goes back to all members in each round (fixed share), so that
        weights can move when the stream changes.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the labels drawn. It also seeds the members whose `random_state` is None.

    Notes
    -----
    Weights w_i begin equal. For a label l with q_i = P_i(l is right), by the member's
    `predict_proba`, a right bit multiplies w_i by q_i, a wrong one by 1 - q_i, both kept between
    0.001 and 0.999; then w_i = (1 - share) w_i / sum_j w_j + share / n. Scores are the logarithms
    of sum_i w_i P_i. So the mixture predicts bits nearly as well as the best of its n members: up
    to these bounds, its total log loss in T rounds is at most that of any member, plus
    ln n - T ln(1 - share + share / n).

    Members get the probability with which the mixture chose the label: importance-weighted
    updates stay unbiased. A label that is told, by ``learn(decision, truth=...)`` or `teach`, is a
    right bit for the weights.

    Each round calls each member three times from Python; members that are compiled take a few
    microseconds a call. Files hold the members, if these can be saved.

    References
    ----------
    M. Herbster and M. K. Warmuth. Tracking the best expert. Machine Learning 32 (1998), 151-178.

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import Mixture, SoftmaxThompson, play
    >>> X = np.random.default_rng(0).normal(size=(1_000, 4))
    >>> y = X[:, 0] * X[:, 1] > 0  # no line can tell
    >>> views = [(view, SoftmaxThompson(view)) for view in ("line", "cells")]
    >>> learner = Mixture(views, random_state=0)
    >>> play(learner, X, y).n_mistakes
    144
    >>> [(member.name, round(member.weight, 2)) for member in learner.members_]
    [('line', 0.0), ('cells', 1.0)]
    """

    uses_truth, _truth_feedback = True, TOLD
    reference = "Herbster, Warmuth 1998"
    cost = Cost("those of the members")
    bound = bounds.MIXTURE
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {
            "members": [
                ("features", SoftmaxThompson("features", "diagonal")),
                ("again", SoftmaxThompson("features", "diagonal", explore=0.3)),
            ],
            "share": 0.01,
        },
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "members": [list, None],
        "share": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        members: list[tuple[str, Learner]] | None = None,
        share: float = 1e-4,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.members = members
        self.share = share
        self.classes = classes
        self.random_state = random_state

    @property
    def members_(self) -> list[WeightedLearner]:
        """The members: each has a name, a weight, and the learner in its current state."""
        check_is_fitted(self)
        run, found = self._run, []
        with run.lock:
            state = run.state
            names = [name for name, _ in _checked(run.parameters["members"])]
            for name, weight, member in zip(names, state.trust, state.members, strict=True):
                inner, learner = member._run, copy.copy(member)
                # It shares the state, and so the lock that protects it.
                learner._resume(
                    run.classes, run.all_features.size, inner.kernels, inner.state, lock=run.lock
                )
                found.append(WeightedLearner(name, float(weight), learner))
        return found

    @property
    def takes_rewards(self) -> bool:  # type: ignore[override]
        """Whether all members take rewards in [0, 1]."""
        return all(member.takes_rewards for _, member in _checked(self.members))

    @property
    def exempt(self) -> dict[str, str]:  # type: ignore[override]
        """Names of checks that do not hold for this learner, each with the reason."""
        return {
            check: reason
            for _, member in _checked(self.members)
            for check, reason in member.exempt.items()
        }

    def _contributions(
        self, run: Run, example: Example, scores: np.ndarray, k: int, other: int
    ) -> list[Contribution]:
        state, parts = run.state, []
        for weight, member in zip(state.trust, state.members, strict=True):
            z = member._run.inverse_temperature * member._run.scores
            parts.append(log_parts(weight, z, k, other))
        found: list[Contribution] = []
        for name, member, share in zip(
            state.members._asdict(), state.members, logarithmic_shares(parts), strict=True
        ):
            inner = member._run
            its_scores = member._scores_of(inner, example)
            factor = share * inner.inverse_temperature
            found += (
                one._replace(amount=factor * one.amount, member=name)
                for one in member._contributions(inner, example, its_scores, k, other)
            )
        if min(scores[k], scores[other]) > LEAST_SCORE:  # which is a bound, not a logarithm
            check_sum(self, found, scores[k], scores[other])
        return found

    def _inner_learners(self) -> dict[str, InnerLearner]:
        return {f"members.{name}": InnerLearner(member) for name, member in _checked(self.members)}

    def _at_size(self, n_features: int, n_classes: int) -> Mixture:
        members = [
            (name, member._at_size(n_features, n_classes))
            for name, member in _checked(self.members)
        ]
        return clone(self).set_params(members=members)

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        started = {}
        for name, given in _checked(self.members):
            member = started[name] = seeded(clone(given), int(below(rng, 2**31)))
            run = member._start(np.arange(n_classes), n_features)
            if run.inverse_temperature is None:
                raise ValueError(f"member {name} has no probability model: {given!r}")
            if not run.exclusive:
                raise ValueError(
                    f"in a mixture one label is right, and in the model of member {name} several "
                    f"may be: {given!r}"
                )
        n = len(started)
        state = State(
            Members(started),
            trust=np.full(n, 1.0 / n),
            share=float(self.share),
            scratch=Scratch(np.zeros((n, n_classes))),
            rng=rng,
        )
        return KERNELS, state


def _checked(members: Any) -> list[tuple[str, Any]]:
    """Return the members that were given, or those by default."""
    if members is None:
        return [(view, SoftmaxThompson(view)) for view in ("line", "cells")]
    if not members:
        raise ValueError("members is empty: give at least one (name, learner)")
    for pair in members:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        if not is_pair or not isinstance(pair[0], str) or not isinstance(pair[1], Learner):
            raise ValueError(f"each of members is a pair (name, learner); got {pair!r:.80}")
        name, member = pair
        if not name.isidentifier():
            raise ValueError(f"the name of a member is a Python identifier; got {name!r:.80}")
        if member.feedback != "bandit":
            raise ValueError(
                f"member {name} needs the label, and a mixture has one bit: wrap it, as "
                f"BanditReduction({type(member).__name__}(...))"
            )
    names = [name for name, _ in members]
    if len(set(names)) < len(names):
        raise ValueError(f"names of members differ from one another; got {names}")
    return [(name, member) for name, member in members]
