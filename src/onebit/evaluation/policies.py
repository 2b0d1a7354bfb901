"""Policies to be judged, as the probabilities of the labels of a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from onebit.core.validation import positions_of
from onebit.evaluation.log import Log

Probabilities = Callable[[Log], np.ndarray]
"""Returns the probability of each label for some rows of a log, of shape (n, n_classes)."""


def probabilities_of(policy: Any, *, greedy: bool = False) -> Probabilities:
    """Return the probabilities of a policy: a learner, a function, or a constant label."""
    if hasattr(policy, "policy") and hasattr(policy, "predict"):
        return partial(_of_learner, policy, greedy=greedy)
    if greedy:
        raise ValueError(f"greedy=True is for a learner; got {policy!r:.80}")
    if callable(policy):
        return partial(_of_function, policy)
    return partial(_constant, policy)


def name_of(policy: Any, *, greedy: bool = False) -> str:
    """Return a policy in a few words."""
    if policy is None:
        return "what was chosen"
    if hasattr(policy, "steps"):
        policy = policy.steps[-1][1]
    if hasattr(policy, "policy"):
        return f"{type(policy).__name__}, {'greedy' if greedy else 'as it stands'}"
    if callable(policy):
        return getattr(policy, "__name__", type(policy).__name__)
    return f"always {policy!r}"


def decider(policy: Any, log: Log) -> Any:
    """Return what decides about the x of a log: a learner, or a pipeline.

    The decisions of a pipeline hold the examples that its steps made of records. About a log of
    these, its learner decides; no matrix is a record.
    """
    steps = [step for _, step in getattr(policy, "steps", ())]
    if not steps and isinstance(log.x, list) and log.x and isinstance(log.x[0], str | Mapping):
        raise ValueError(
            f"x are records, such as {log.x[0]!r:.80}, and {type(policy).__name__} takes numbers: "
            "a pipeline that begins with Records can be evaluated by this log"
        )
    takes_records = bool(steps) and hasattr(steps[0], "encode") and hasattr(steps[0], "names")
    return steps[-1] if takes_records and not isinstance(log.x, list) else policy


def has_learned_from(policy: Any, log: Log) -> int:
    """Return how many of the log's decisions a learner has learned from."""
    if log.ids is None or not hasattr(policy, "has_learned"):
        return 0
    return sum(policy.has_learned(name) for name in log.ids if isinstance(name, str))


def _of_learner(learner: Any, log: Log, greedy: bool) -> np.ndarray:
    if log.x is None:
        raise ValueError("this log has no x, and a learner decides by it")
    learner = decider(learner, log)
    p = np.empty((len(log), log.classes.size))
    for rows, among in _by_offer(log):
        x = [log.x[i] for i in rows.tolist()] if isinstance(log.x, list) else log.x[rows]
        known = None if among is None else _known_to(learner, among)
        if greedy and _has_utility(learner):
            found = learner.policy(x, known, explore=False)
        elif greedy:
            found = learner.scores(x)
            if among is not None:
                found = np.where(np.isin(_classes(learner), among), found, -np.inf)
            best = found.argmax(axis=1)
            found = np.zeros(found.shape)
            found[np.arange(rows.size), best] = 1.0
        else:
            found = learner.policy(x) if known is None else learner.policy(x, known)
        p[rows] = _aligned(found, _classes(learner), log.classes)
    return p


def _has_utility(learner: Any) -> bool:
    """Return whether labels differ in worth or cost, so that the best is not the likeliest."""
    last = learner.steps[-1][1] if hasattr(learner, "steps") else learner
    terms = getattr(last, "_terms", None)
    return terms is not None and (terms.worth is not None or terms.cost is not None)


def _by_offer(log: Log) -> Any:
    """Yield rows with the labels on offer in them; None for all."""
    if log.among is None:
        yield np.arange(len(log)), None
        return
    offers, which = np.unique(log.among, axis=0, return_inverse=True)
    for i, offer in enumerate(offers):
        yield np.flatnonzero(which.reshape(-1) == i), log.classes[offer]


def _classes(learner: Any) -> np.ndarray:
    found = getattr(learner, "classes_", None)
    return np.asarray(learner.classes) if found is None else found


def _known_to(learner: Any, among: np.ndarray) -> list[Any]:
    known = among[np.isin(among, _classes(learner))]
    if not known.size:
        raise ValueError(f"the learner knows none of the labels on offer, {among.tolist()!r:.80}")
    return known.tolist()


def _aligned(p: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Return probabilities in the order of the log's labels; other labels are left out."""
    if theirs.tolist() == ours.tolist():
        return p
    made = np.zeros((len(p), ours.size))
    both = np.isin(theirs, ours)
    made[:, positions_of(ours, theirs[both])] = p[:, both]
    return made


def _of_function(function: Any, log: Log) -> np.ndarray:
    found = np.asarray(function(log.x))
    n, K = len(log), log.classes.size
    if found.shape == (n, K) and found.dtype.kind == "f":
        wrong = ~((found >= 0.0).all(axis=1) & (found.sum(axis=1) < 1.0 + 1e-6))
        for i in np.flatnonzero(wrong):
            raise ValueError(f"row {i}: the function's probabilities are not those of labels")
        return found
    if found.shape != (n,):
        raise ValueError(
            f"a function returns a label for each of {n} rows, or probabilities of shape "
            f"{(n, K)}; got shape {found.shape}"
        )
    p = np.zeros((n, K))
    p[np.arange(n), positions_of(log.classes, found)] = 1.0
    return p


def _constant(label: Any, log: Log) -> np.ndarray:
    p = np.zeros((len(log), log.classes.size))
    p[:, log.position_of(label)] = 1.0
    return p
