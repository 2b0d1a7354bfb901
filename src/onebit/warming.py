"""Compiling ahead of time, so that a service does not compile at its first request."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onebit.core import Learner, play
from onebit.core.compiling import Counted, cache_folder
from onebit.learners import named as learner_named


class Warmed(NamedTuple):
    """One form of a learner that was compiled ahead of time.

    compiled: functions that were compiled; loaded: those found in the cache.
    """

    learner: Learner
    seconds: float
    compiled: int
    loaded: int


class WarmUp(NamedTuple):
    """What `warm_up` did; cache: the folder of compiled code, None if it could not be stored."""

    forms: list[Warmed]
    cache: Path | None


def warm_up(*learners: Any) -> WarmUp:
    """Compile all that learners need to decide, learn, play and predict, and cache it on disk.

    Processes that find this cache then start without compiling, on processors of the same kind: for
    container images, and before a service takes requests. Compiled code does not depend on labels
    or sizes.

    Parameters
    ----------
    *learners : Learner, class of learners, or the name of one
        A learner is compiled for its parameters, and is not changed; a class or a name, in all its
        forms. By default `OneBitClassifier`.

    Returns
    -------
    WarmUp
        The forms, each with how long it took and how much of it was compiled, and the folder.

    Examples
    --------
    >>> from onebit import Banditron, warm_up
    >>> ready = warm_up(Banditron(gamma=0.1))
    >>> [form.learner for form in ready.forms]
    [Banditron(gamma=0.1)]
    >>> warm_up("Banditron").forms[0].compiled
    0
    """
    forms = [form for given in learners or ("OneBitClassifier",) for form in _forms(given)]
    return WarmUp([_warmed(form) for form in forms], cache_folder())


def _forms(given: Any) -> Iterable[Learner]:
    if isinstance(given, Learner):
        return [clone(given)]
    if isinstance(given, str):
        given = learner_named(given)
    if isinstance(given, type) and issubclass(given, Learner):
        return [given(**form) for form in given.forms]
    raise ValueError(
        f"a learner, a class of learners or the name of one is expected; got {given!r}"
    )


def _warmed(form: Learner) -> Warmed:
    start, compiled, loaded = perf_counter(), Counted.compiled, Counted.loaded
    n_classes = 3 if form.__sklearn_tags__().classifier_tags.multi_class else 2
    X, y = np.eye(n_classes), np.arange(n_classes)
    learner = clone(form).set_params(classes=y, random_state=0)
    learner.learn(learner.decide(X[0]), truth=0)
    play(learner, X, y)
    run, rows = learner._known_rows(X)
    scores, p = np.empty((2, n_classes, n_classes))
    run.kernels.evaluate_loop(run.state, rows, scores, run.everything, p)
    return Warmed(
        form, perf_counter() - start, Counted.compiled - compiled, Counted.loaded - loaded
    )
