"""Compiling ahead of time, so that a service does not compile at its first request."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onebit import learners
from onebit.core import Learner, play
from onebit.core.code_cache import writable_root
from onebit.core.compiling import counts
from onebit.core.confidence import right_probability_entry
from onebit.core.engine import ENTRY_POINTS, Kernels
from onebit.core.example import ROWS, inspect_entry, inspect_rows
from onebit.core.shipped import SWITCH
from onebit.core.terms import draw_entry
from onebit.core.workers import Task, WorkerError, can_start, n_processes, run_all
from onebit.numerics.values import compile_values


class Warmed(NamedTuple):
    """One form of a learner that was compiled ahead of time.

    Attributes
    ----------
    learner : Learner
    seconds : float
        The time that its functions took, in all processes.
    compiled : int
        How many functions were compiled.
    loaded : int
        How many were found on disk.
    """

    learner: Learner
    seconds: float
    compiled: int
    loaded: int


class WarmUp(NamedTuple):
    """What `warm_up` did.

    Attributes
    ----------
    forms : list of Warmed
    cache : Path or None
        The folder of compiled code; None if it could not be stored.
    """

    forms: list[Warmed]
    cache: Path | None


def warm_up(
    *given: Any,
    native: bool = False,
    progress: Callable[[int, int, str], Any] = lambda done, n, what: None,
) -> WarmUp:
    """Compile all that learners need to decide, learn, play and predict, and cache it on disk.

    Processes that find this cache then start without compiling, on processors of the same kind: for
    container images, and before a service takes requests. Compiled code does not depend on labels
    or sizes. All cores are used (``ONEBIT_PROCESSES=1`` uses one).

    Parameters
    ----------
    *given : Learner, class of learners, or the name of one
        A learner is compiled for its parameters, and is not changed; a class or a name, in all its
        forms. By default `OneBitClassifier`.
    native : bool, default=False
        Compile for this processor, also where code for its family came with onebit.
    progress : callable, optional
        Called before the first function and after each that is compiled in another process, with
        how many are compiled, how many there are, and the learner of the last one.

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
    forms = [form for one in given or ("OneBitClassifier",) for form in _forms(one)]
    elsewhere: dict[Kernels, tuple[int, float]] = {}
    if native or can_start():
        elsewhere = compile_elsewhere(forms, ENTRY_POINTS, native=native, progress=progress)
    return WarmUp([_warmed(form, elsewhere) for form in forms], writable_root())


def shipped_forms() -> list[Learner]:
    """Return the forms whose machine code comes with wheels: the flagship and the fast learners."""
    fast = [cls for cls in learners.classes() if cls.cost.is_linear]
    return [form for cls in fast for form in _forms(cls)]


def shipped_tasks() -> list[Task]:
    """Return tasks that compile all code that comes with wheels."""
    found: dict[Kernels, list[Task]] = {}
    for form in shipped_forms():
        learner, X, _ = _first_round(form)
        run, _ = learner._prepare_example(X[0])
        found[run.kernels] = list(run.kernels.tasks(run.state).values())
    return [Task(compile_shared, ()), *itertools.chain(*found.values())]


def compile_shared() -> None:
    """Compile the functions that all learners share."""
    inspect_entry()
    right_probability_entry()
    inspect_rows(*ROWS)
    draw_entry()
    compile_values()


def _forms(given: Any) -> Iterable[Learner]:
    if isinstance(given, Learner):
        return [clone(given)]
    if isinstance(given, str):
        given = learners.named(given)
    if isinstance(given, type) and issubclass(given, Learner):
        return [given(**form) for form in (*given.forms, *given.sized_forms)]
    raise ValueError(
        f"a learner, a class of learners or the name of one is expected; got {given!r}"
    )


def _first_round(form: Learner) -> tuple[Learner, np.ndarray, np.ndarray]:
    """Return a learner of this form that knows its labels, and examples for it."""
    n_classes = 3 if form.__sklearn_tags__().classifier_tags.multi_class else 2
    X, y = np.eye(n_classes), np.arange(n_classes)
    return clone(form).set_params(classes=y, random_state=0), X, y


def compile_elsewhere(
    forms: Iterable[Learner],
    entries: tuple[str, ...],
    *,
    native: bool = False,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[int, int, str], Any],
) -> dict[Kernels, tuple[int, float]]:
    """Compile in other processes what is not on disk; return how many functions, and the seconds.

    This process compiles later what the others could not.
    """
    tasks: list[tuple[Kernels, str, Task]] = []
    for form in forms:
        learner, X, _ = _first_round(form)
        run, _ = learner._prepare_example(X[0])
        if run.kernels.is_own and all(kernels is not run.kernels for kernels, _, _ in tasks):
            missing = run.kernels.missing(run.state, entries, native=native)
            tasks += [(run.kernels, type(form).__name__, task) for task in missing.values()]
    # Kernels that take longest come first, so that all cores have work until the end.
    tasks.sort(key=lambda task: not task[0].is_separate)
    if native:
        environment = {**(environment or {}), SWITCH: "0"}
    found: dict[Kernels, tuple[int, float]] = {}
    done = 0

    def note(i: int, result: Any) -> None:
        nonlocal done
        done += 1
        kernels, name, _ = tasks[i]
        if not isinstance(result, WorkerError):
            n, seconds = found.get(kernels, (0, 0.0))
            found[kernels] = n + 1, seconds + result
        progress(done, len(tasks), name)

    if tasks:
        progress(0, len(tasks), tasks[0][1])
        run_all([task for _, _, task in tasks], n_processes(), environment, done=note)
    return found


def _warmed(form: Learner, elsewhere: dict[Kernels, tuple[int, float]]) -> Warmed:
    """Call all compiled functions: that loads them, or compiles what no other process did."""
    start, before = perf_counter(), counts()
    learner, X, y = _first_round(form)
    learner.learn(learner.decide(X[0]), truth=0)
    play(learner, X, y)
    draw_entry()
    if learner._knows_probabilities(learner._run):
        learner.decide(X[0], cost={0: 0.1})
    run, rows = learner._prepare_evaluation(X)
    scores, p = np.empty((2, len(y), len(y)))
    run.kernels.evaluate_loop(run.packed, rows, scores, run.default_offer, p)
    after = counts()
    n, seconds = elsewhere.pop(run.kernels, (0, 0.0))
    return Warmed(
        form,
        perf_counter() - start + seconds,
        after.compiled - before.compiled + n,
        after.loaded - before.loaded - n,
    )
