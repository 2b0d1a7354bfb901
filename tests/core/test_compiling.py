"""Compiled code: an edit takes effect, and a later process does not compile again."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone

import onebit
from copies import copy_package
from onebit import (
    SOBA,
    BanditReduction,
    Banditron,
    KernelConfidit,
    KernelSeparableBandit,
    Newtron,
    Obama,
    OneBitClassifier,
)
from onebit.core import fingerprint as fingerprints
from onebit.core.compiling import HOOKS, compiled, kernel, lean_kernel
from onebit.core.fingerprint import FingerprintError, fingerprint
from onebit.core.hooks import Hook
from processes import run_python

RUN = """
import time
start = time.perf_counter()
from onebit import Banditron, play, streams
X, y = streams.synsep(2_000, seed=0)
start = time.perf_counter()
learner = Banditron(0.1, random_state=0)
history = play(learner, X, y)
print(abs(learner.coef_).sum(), time.perf_counter() - start)
"""


def run(code, cwd, **environment):
    usual = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    own = {"PYTHONPATH": str(cwd), "XDG_CACHE_HOME": str(cwd / "home")}
    ended = run_python(code, cwd=cwd, environment=usual | own | environment, check=True)
    return [float(word) for word in ended.stdout.split()]


def run_without_compiling(code, cwd):
    """The same with the switch that Numba reads when it is imported."""
    environment = os.environ | {"PYTHONPATH": str(cwd), "NUMBA_DISABLE_JIT": "1"}
    return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)


@pytest.fixture
def package(tmp_path):
    """A copy of onebit of its own, without compiled code."""
    copy_package(tmp_path)
    return tmp_path


class Ran(NamedTuple):
    """A copy of onebit that holds the compiled code of a run, what it printed, how long it took."""

    package: Path
    printed: float
    seconds: float


@pytest.fixture(scope="session")
def first_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    copy_package(folder)
    return Ran(folder, *run(RUN, folder))


@pytest.fixture
def ran(first_run, tmp_path):
    """The same for one test alone."""
    shutil.copytree(first_run.package / "onebit", tmp_path / "onebit")
    return first_run._replace(package=tmp_path)


def edit(file, old, new):
    text, seconds = file.read_text(), file.stat().st_mtime
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    # Bytecode is known by the second of the edit, and runs take less.
    os.utime(file, (seconds + 2.0, seconds + 2.0))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("numerics/linear.py", "scores[k] += W[a, k] * v_a", "scores[k] -= W[a, k] * v_a"),
        *(
            pytest.param(*edited, marks=pytest.mark.slow)
            for edited in [
                ("learners/banditron.py", "x, y_hat, -1.0)", "x, y_hat, -2.0)"),
                ("numerics/exploration.py", "p[best] = share + (", "p[0] = share + ("),
            ]
        ),
    ],
)
def test_edited_kernel_takes_effect(ran, file, old, new):
    cache = ran.package / "onebit" / "core" / "__pycache__"
    first = set(cache.glob("onebit.learners.banditron.*.play-*"))
    edit(ran.package / "onebit" / file, old, new)
    after, _ = run(RUN, ran.package)
    assert after != ran.printed
    # What was compiled before is kept, for versions that share a cache.
    both = set(cache.glob("onebit.learners.banditron.*.play-*"))
    assert len(first) == 1
    assert len(both) == 2
    assert first < both
    edit(ran.package / "onebit" / file, new, old)
    again, seconds = run(RUN, ran.package)
    assert again == ran.printed
    assert seconds < ran.seconds / 2


OWN_CACHE = pytest.mark.skipif(
    Hook.CACHE not in HOOKS, reason="code is in Numba's cache, whose files are its own"
)


def test_compiled_code_unused_for_long_is_dropped(package):
    (package / "mine.py").write_text(KERNEL)
    (package / "elsewhere.py").write_text(ELSEWHERE)
    code = "import mine; print(mine.value())"
    cache = package / "onebit" / "core" / "__pycache__"
    old, recent = cache / f"onebit.old-{16 * 'a'}", cache / f"onebit.recent-{16 * 'b'}"
    for folder, days in ((old, 31), (recent, 29)):
        folder.mkdir(parents=True)
        os.utime(folder, 2 * (time.time() - days * 24 * 3600,))
    run(code, package)
    assert not old.exists()
    assert recent.exists()
    (used,) = cache.glob("mine-*")
    os.utime(used, (0, 0))
    run(code, package)
    assert time.time() - used.stat().st_mtime < 3600


KERNEL = """
import sys
import numpy as np
from onebit.core.compiling import compiled
import elsewhere
from elsewhere import TABLE, State

def f(state):
    return state.a[0] + 10 * TABLE[0] + 100 * elsewhere.OTHER[0]

def value():
    return compiled("mine", f, nogil=False)(State(a=np.ones(1), b=np.full(1, 2.0)))
"""
ELSEWHERE = """
from typing import NamedTuple
import numpy as np
TABLE = np.array([1.0, 2.0])
OTHER = np.array([3.0, 4.0])
class State(NamedTuple):
    a: np.ndarray
    b: np.ndarray
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("TABLE = np.array([1.0", "TABLE = np.array([7.0", 371),
        pytest.param("OTHER = np.array([3.0", "OTHER = np.array([7.0", 711, marks=pytest.mark.slow),
        pytest.param(
            "    a: np.ndarray\n    b: np.ndarray",
            "    b: np.ndarray\n    a: np.ndarray",
            311,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["array", "array of a module", "order of fields"],
)
def test_edit_to_a_file_without_kernels_takes_effect(package, old, new, expected):
    (package / "mine.py").write_text(KERNEL)
    (package / "elsewhere.py").write_text(ELSEWHERE)
    code = "import sys; sys.dont_write_bytecode = True; import mine; print(mine.value())"
    assert run(code, package) == [311]
    assert run(code, package) == [311]
    edit(package / "elsewhere.py", old, new)
    assert run(code, package) == [expected]


TWO_FORMS = """
import sys
from math import sin
from onebit.core.compiling import compiled, lean_kernel

inner = None

def template(x):
    return inner(x)

def form(value):
    @lean_kernel
    def inner(x):
        LONG
        return x + value
    return compiled(f"form {value}", template, nogil=False, inner=inner)

for value in sys.argv[1:]:
    print(form(int(value))(0.0))
""".replace("LONG", 100 * "x = sin(x);")  # too long to become a part of `template`


@pytest.mark.parametrize("forks", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_forms_that_two_processes_compiled_are_not_mistaken_for_each_other(package, forks):
    """Their kernels had the same name, and a process that loaded both called the first for both."""
    (package / "two.py").write_text(TWO_FORMS)
    code = "import sys; sys.argv = ['two', {}]; import two"
    if forks:
        alone = """
import os, sys
import onebit.core.compiling
for value in "12":
    if (child := os.fork()) == 0:
        sys.argv = ["two", value]
        import two
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""
        assert run(alone, package) == [1, 2]
        assert run(code.format("'2', '1'"), package) == [2, 1]
    else:
        assert run(code.format("'1'"), package) == [1]
        assert run(code.format("'2'"), package) == [2]
        assert run(code.format("'1', '2'"), package) == [1, 2]


def test_edit_after_import_is_not_stored_as_what_it_is_not(package):
    (package / "mine.py").write_text(KERNEL)
    (package / "elsewhere.py").write_text(ELSEWHERE)
    code = """
import sys; sys.dont_write_bytecode = True
import mine
text = open("mine.py").read()
open("mine.py", "w").write(text.replace("10 *", "20 *"))
print(mine.value())
"""
    assert run(code, package) == [311]
    assert run("import mine; print(mine.value())", package) == [321]


def test_what_has_no_canonical_text_is_not_cached():
    for value, cached in ((np.ones(1), True), (np.array([None]), False), ([1.0], False)):
        scope = {"value": value}
        exec("def f(): return value[0]", scope)
        if cached:
            assert len(fingerprint(scope["f"], {})) == 16
        else:
            with pytest.raises(FingerprintError):
                fingerprint(scope["f"], {})
            compiled("f", scope["f"], nogil=False)


def test_a_function_that_is_compiled_in_two_ways_has_one_fingerprint(monkeypatch):
    """Names are in a set, whose order differs between processes."""

    def first(x):
        return x

    inner, lean_inner = kernel(first), lean_kernel(first)

    def both(x):
        return inner(x) + lean_inner(x)

    before, names = fingerprint(both, {}), fingerprints._outer_names
    monkeypatch.setattr(fingerprints, "_outer_names", lambda found: [*names(found)][::-1])
    assert fingerprint(both, {}) == before


def test_an_edited_slice_is_another_fingerprint():
    """Since Python 3.14, `value[:2]` has the slice as a constant."""
    found = set()
    for text in ("value[:2]", "value[:3]", "value[1:2]", "value[:2:1]"):
        scope = {"value": np.ones(4)}
        exec(f"def f(): return {text}", scope)
        found.add(fingerprint(scope["f"], {}))
    assert len(found) == 4


@OWN_CACHE
def test_damaged_compiled_code_is_compiled_anew(ran):
    files = list((ran.package / "onebit" / "core" / "__pycache__").glob("*/*.compiled"))
    assert files
    for i, file in enumerate(files):
        file.write_bytes(b"" if i % 2 else file.read_bytes()[:1000])
    assert run(RUN, ran.package)[0] == ran.printed


@pytest.fixture
def nowhere_to_write(package):
    """Environment of a process that can write neither into onebit nor into its home."""
    blocked = package / "a_file"
    blocked.touch()
    bytecode = package / "onebit" / "core" / "__pycache__"
    shutil.rmtree(bytecode)
    bytecode.touch()
    names = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
    return dict.fromkeys(names, str(blocked / "within"))


def test_without_a_place_to_write_everything_compiles_anew(package, nowhere_to_write):
    code = """
import numpy as np, onebit
X, y = np.eye(3), np.arange(3)
print(onebit.Banditron(random_state=0).fit(X, y).decide(X[0]).label)
print(onebit.KernelSeparableBandit(random_state=0).fit(X, y).decide(X[0]).label)
"""
    X, y = np.eye(3), np.arange(3)
    expected = [
        learner.fit(X, y).decide(X[0]).label
        for learner in (Banditron(random_state=0), KernelSeparableBandit(random_state=0))
    ]
    assert run(code, package, **nowhere_to_write) == expected


ROUNDS = """
import numpy as np
from onebit import *
rng = np.random.default_rng(0)
X = rng.normal(size=(15, 4))
y = np.argmax(X[:, :3], axis=1)

def rounds(learner):
    learner.set_params(random_state=1, classes=[0, 1, 2])
    yield play(learner, X[:10], y[:10]).n_mistakes
    for x, truth in zip(X[10:], y[10:]):
        decision = learner.decide(x)
        learner.learn(decision, correct=decision.label == truth)
    yield play(learner, X, y).n_mistakes
    yield from learner.policy(X[:5])[:, 0]
"""


IN_PYTHON_TOO = [
    SOBA(0.2),
    OneBitClassifier(),
    OneBitClassifier(covariance="diagonal", views="line"),
    Newtron(),
    Obama(n_samples=20),
    KernelConfidit(),
    BanditReduction(gamma=0.5),
]


@pytest.fixture(scope="session")
def rounds_in_python():
    strict = "import warnings; warnings.simplefilter('error')\n"
    code = f"{strict}{ROUNDS}for learner in {IN_PYTHON_TOO}: print(*rounds(learner))"
    lines = run_without_compiling(code, Path(onebit.__file__).parents[1]).splitlines()
    return [[float(word) for word in line.split()] for line in lines]


# One process runs all of them, when the others have compiled these learners.
@pytest.mark.xdist_group("without_compiling")
@pytest.mark.parametrize("learner", IN_PYTHON_TOO, ids=str)
def test_without_compiling_learners_do_the_same(learner, rounds_in_python):
    scope = {}
    exec(ROUNDS, scope)
    compiled = list(scope["rounds"](clone(learner)))
    assert rounds_in_python[IN_PYTHON_TOO.index(learner)] == pytest.approx(compiled, abs=1e-8)


def test_arrays_of_kernels_that_promise_it_share_no_memory(package):
    """Without compiling, `no_alias` looks at what it was given; every form goes through it."""
    code = """
import numpy as np, scipy.sparse as sp
from onebit import learners, play
from onebit.core.example import Example
from onebit.numerics.linear import products
W = np.zeros((2, 3))
try:
    products(W, Example(np.arange(2, dtype=np.uint32), np.ones(2), 2), W[0])
except AssertionError as error:
    assert "scores" in str(error) and "W" in str(error)
else:
    raise AssertionError("a broken promise was not seen")
X = np.random.default_rng(0).normal(size=(6, 3))
for name in learners.__all__:
    for form in getattr(learners, name).forms:
        learner = getattr(learners, name)(**form)
        many = learner.__sklearn_tags__().classifier_tags.multi_class
        y = [0, 1, 2, 0, 1, 2] if many else [0, 1, 0, 1, 0, 1]
        play(learner, X, y)
        learner.learn(learner.decide(X[0]), truth=1)
        learner.policy(sp.csr_array(X))
print(0)
"""
    assert run_without_compiling(code, package).split() == ["0"]


def test_cache_goes_elsewhere_if_the_package_cannot_be_written(package, tmp_path):
    cache = tmp_path / "cache"
    (package / "mine.py").write_text(KERNEL)
    (package / "elsewhere.py").write_text(ELSEWHERE)
    run("import mine; print(mine.value())", package, NUMBA_CACHE_DIR=str(cache))
    assert list(cache.glob("onebit/mine-*"))


def test_learner_defined_without_a_file_works(package):
    code = """
import onebit.learners.banditron as b
source = open(b.__file__).read().replace("class Banditron", "class Mine")
names = {"__name__": "__main__"}
exec(compile(source, "<notebook>", "exec"), names)
X, y = __import__("onebit").streams.synsep(500, seed=0)
print(names["Mine"](random_state=0).fit(X, y).score(X, y))
"""
    (score,) = run(code, package)
    assert 0 <= score <= 1


def test_import_is_quick():
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import onebit"], check=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0
