"""Other Numba code in the same process is left alone, also while onebit compiles."""

import os
import subprocess
import sys

import pytest

from copies import copy_package
from processes import run_python

OTHERS = """
import warnings
import numba
import numpy as np
from numba.experimental import jitclass

@numba.njit(parallel=True)
def in_parallel(x):
    total = 0.0
    for i in numba.prange(x.size):
        total += x[i] * 2.0
    return total + np.dot(x, x)

@numba.njit(cache=True)
def cached(A):
    return np.linalg.det(A) + A.sum() + np.dot(A, A)[0, 0]

@jitclass([("value", numba.float64), ("items", numba.float64[:])])
class Box:
    def __init__(self, value):
        self.value = value
        self.items = np.zeros(3)

    def add(self, x):
        self.items += x
        return self.items.sum() + self.value

@numba.vectorize([numba.float64(numba.float64)])
def twice(x):
    return 2.0 * x

def lifted(x):
    return x + 1

def use_cached():
    yield cached(np.eye(2))

def n_hits():
    return sum(cached.stats.cache_hits.values())

def use_all():
    x = np.arange(4.0)
    yield in_parallel(x)
    yield from use_cached()
    yield Box(1.0).add(2.0)
    yield twice(x).sum()
    yield numba.njit(lifted)(1)
    yield numba.cfunc("float64(float64)")(lifted).ctypes(1.0)
"""

RUN = """
import sys
from threading import Thread
import numpy as np
from onebit import SecondOrderPerceptron, play
from others import n_hits, use_all, use_cached

def rounds():
    # Its kernels call np.dot, as the others do, and are compiled in a third of Folklore's time.
    learner = SecondOrderPerceptron(covariance="full")
    history.append(play(learner, X, y).n_mistakes)

X, y = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 3
history, found = [], []
threads = [Thread(target=rounds), Thread(target=lambda: found.extend(use_all()))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*found, n_hits(), len(history))
from numba.core.compiler import Compiler, CompilerBase
assert Compiler.compile_extra is CompilerBase.compile_extra
"""

EXPECTED = [26.0, 4.0, 7.0, 12.0, 2.0, 2.0]


def environment(folder):
    usual = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return usual | {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "home")}


def run(code, folder):
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.check_output(command, env=environment(folder), cwd=folder, text=True)
    return [float(number) for number in printed.split()]


@pytest.fixture
def folder(tmp_path):
    """A copy of onebit of its own, without compiled code, and another module."""
    copy_package(tmp_path)
    (tmp_path / "others.py").write_text(OTHERS)
    return tmp_path


def test_another_thread_compiles_other_code_meanwhile(folder):
    assert run(RUN, folder) == [*EXPECTED, 0, 1]
    # Their code is cached as ever, and found with and without onebit.
    assert run(RUN.replace("use_all()", "use_cached()"), folder) == [4.0, 1, 1]
    alone = "from others import n_hits, use_cached; print(*use_cached(), n_hits())"
    ended = run_python(alone, cwd=folder, environment=environment(folder), check=True)
    assert ended.stdout.split() == ["4.0", "1"]


OTHER_LIBRARIES = """
from threading import Thread
import numpy as np
import umap  # before onebit
from onebit import OneBitClassifier

X = np.random.default_rng(0).normal(size=(60, 4))
found = []
thread = Thread(target=lambda: found.append(umap.UMAP(n_neighbors=5).fit_transform(X).shape))
thread.start()
learner = OneBitClassifier(classes=[0, 1, 2], random_state=0)
for x in X:
    learner.learn(learner.decide(x), correct=bool(x[0] > 0))
thread.join()
print(*found[0], learner.rounds_)
"""


@pytest.mark.slow
def test_umap_in_the_same_process(folder):
    pytest.importorskip("umap")
    code = "import warnings; warnings.simplefilter('ignore')\n" + OTHER_LIBRARIES
    assert run(code, folder) == [60, 2, 60]
