"""How tests are shared out to processes, with `pytest -n 2 --dist loadgroup`.

To compile a learner takes seconds, and two processes that need it at the same time both compile it.
So all tests of one learner form a group, which one process runs: its file, its forms in the tests
of all learners, its doctests. The files of a few folders are in one group. Every other file is a
group of its own.

Of learners in `learners/frozen/`, of which only defects are corrected, the daily tests run their
own file and their path in histories.txt; the tests of all learners and the doctests are slow.
"""

import gc
import os
from functools import cache
from pathlib import Path

import pytest

import forms
import paths
from onebit import Learner

FIRST = [
    "one_bit_classifier",
    "bandit_reduction",
    "boosting",
    "folklore",
    "gaptron",
    "aggregating",
    "confidit",
    "compiling",
]
"""Groups that take long come first, so that the processes end together.

Other learners follow, and then what uses several of them, when all are compiled.
"""
TOGETHER = {
    "boosting": "boosting",
    "evaluation": "one_bit_classifier",
    "logistic_thompson": "softmax_thompson",
    "mixture": "softmax_thompson",
}
"""Folders and files, and the groups that they are in: they use the same compiled code.

A log of OneBitClassifier needs code of its own, but a process that knows its kernels has most of
it already.
"""

LEARNERS = [cls.__module__.rpartition(".")[2] for cls in forms.LEARNERS]
COMPILE_LONG = {*LEARNERS, *TOGETHER.values()} - {"banditron", "perceptron"}
"""Groups whose tests are marked `compiles`: all but those of the learners that compile soonest."""

LONG = ["papers", "code", "histories", "other_numba_code", "workers", "shipped", "reports", "tools"]
"""Files of other tests that take longest; those that are left fill up the end."""

ORDER = [*FIRST, *LEARNERS, *LONG, "fuzz", "storage"]


# Commands print what tests expect, however long the learners take to compile.
os.environ["ONEBIT_PROGRESS"] = "0"

# There are as many processes as cores already.
os.environ["ONEBIT_PROCESSES"] = "1"

# Compiling and collecting leave millions of objects that live as long as the process: to look for
# garbage among them again and again would take a tenth of the time.
gc.set_threshold(200_000, 20, 50)


def pytest_configure(config):
    """Without the slow tests, paths are short."""
    if "not slow" in config.option.markexpr:
        paths.N_ROUNDS = paths.A_FEW


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark each test with its group, unless it says itself where it belongs."""
    groups = {}
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is None:
            mark = pytest.mark.xdist_group(group_of(item))
            item.add_marker(mark)
        if is_of_frozen(item):
            item.add_marker(pytest.mark.slow)
        if mark.args[0] in COMPILE_LONG:
            item.add_marker(pytest.mark.compiles)
        groups.setdefault(mark.args[0], []).append(item)
    rank = {name: i for i, name in reversed([*enumerate(ORDER)])}
    order = sorted(groups, key=lambda name: rank.get(name, len(ORDER)))
    items[:] = [item for name in order for item in groups[name]]


def pytest_collection_finish(session):
    """Refuse versions of pytest and pytest-xdist that do not keep groups together."""
    gc.freeze()
    together = session.config.getoption("loadgroup", False)
    if together and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError("tests of one group would be shared out to several processes")


def group_of(item):
    """Return the module of the learner that is tested, or the name of the file."""
    return room_or(learner_of(item) or file_of(item))


def is_of_frozen(item):
    """Return whether a frozen learner is tested, in the tests of all learners or by a doctest."""
    learner, file = learner_of(item), file_of(item)
    of_all_learners = "frozen" in learner and room_or(learner) != room_or(file)
    return of_all_learners or "frozen" in file


def learner_of(item):
    """Return the names in the module of the learner that is a parameter of a test, if one is."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    for value in parameters:
        if isinstance(value, Learner) and type(value).__module__.startswith("onebit.learners."):
            return type(value).__module__.split(".")
    return []


def file_of(item):
    """Return the folders and the name of a test's file, without `test_`."""
    return _names_in(item.path, item.config.rootpath)


@cache
def _names_in(path, root):
    path = Path(path).relative_to(root)
    return [*path.parts[:-1], path.stem.removeprefix("test_")]


def room_or(names):
    """Return the group of the folder that a module or a file is in, or else its own name."""
    return next((TOGETHER[name] for name in names if name in TOGETHER), names[-1])
