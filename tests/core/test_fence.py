"""What is private to Numba is used only where it works; without it, results are the same."""

import os
from pathlib import Path

import pytest

import onebit
from copies import copy_package
from onebit.core import fence
from onebit.core.compiling import HOOKS
from onebit.core.hooks import Hook
from processes import run_python

PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    from onebit import Banditron, OneBitClassifier, play
    from onebit.core.compiling import HOOKS
mistakes = weights = 0
PLAYED
print(mistakes, repr(float(weights)), len(HOOKS))
for warned in caught:
    if "Numba" in str(warned.message):
        print(warned.category.__name__, warned.message)
"""

ROUNDS = """
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
y = np.argmax(X[:, :3], axis=1)
learner = LEARNER
for x, truth in zip(X, y):
    decision = learner.decide(x)
    mistakes += int(decision.label != truth)
    learner.learn(decision, correct=bool(decision.label == truth))
weights = abs(learner.coef_).sum()
"""

LOOP = """
again = LEARNER
assert play(again, X, y).n_mistakes == mistakes
np.testing.assert_allclose(abs(again.coef_).sum(), weights, rtol=1e-9)
"""

IMPORT = PROGRAM.replace("PLAYED", "")


def program(learner, rounds=ROUNDS + LOOP):
    return PROGRAM.replace("PLAYED", rounds.replace("LEARNER", learner))


BANDITRON = program("Banditron(0.2, classes=range(3), random_state=0)")

# Where no hook is used, the loop is the code of `test_plain_numba_does_the_same`.
SINGLE_ROUNDS = program("Banditron(0.2, classes=range(3), random_state=0)", ROUNDS)


def run(code, cache, package=Path(onebit.__file__).parents[1], **environment):
    own = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(package)}
    usual = {name: value for name, value in os.environ.items() if name != fence.VARIABLE}
    ended = run_python(code, environment=usual | own | environment, check=True)
    first, *warned = ended.stdout.splitlines()
    mistakes, weights, n_hooks = first.split()
    return int(mistakes), float(weights), int(n_hooks), "\n".join(warned)


@pytest.fixture
def package(tmp_path):
    """A copy of onebit of its own, which no process has checked."""
    home = tmp_path / "package"
    copy_package(home)
    return home


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What Banditron does with all hooks."""
    mistakes, weights, n_hooks, warned = run(BANDITRON, tmp_path_factory.mktemp("all"))
    assert n_hooks == len(Hook)
    assert not warned
    return mistakes, weights


def with_slow(cases, daily):
    """Return the cases, of which `make test` runs only some: each takes seconds to compile."""
    return [case if case in daily else pytest.param(case, marks=pytest.mark.slow) for case in cases]


@pytest.mark.parametrize("hook", with_slow(Hook, [Hook.PARTS]))
def test_each_hook_can_be_off(hook, expected, tmp_path):
    others = ",".join(one for one in Hook if one is not hook)
    for _ in range(2):  # the second process finds the code that the first one stored
        found = run(BANDITRON, tmp_path, ONEBIT_NUMBA=others)
        assert found[0] == expected[0]
        assert found[1] == pytest.approx(expected[1], rel=1e-12)
        assert found[2:] == (len(Hook) - 1, "")


def test_plain_numba_does_the_same(expected, tmp_path):
    for _ in range(2):
        found = run(BANDITRON, tmp_path, ONEBIT_NUMBA="plain")
        assert found[0] == expected[0]
        assert found[1] == pytest.approx(expected[1], rel=1e-12)
        assert found[2:] == (0, "")
    assert list(tmp_path.glob("**/*.nbc"))
    assert not list(tmp_path.glob("**/*.compiled"))


BROKEN = {
    "a name is gone": """
import numba.core.caching as module
del module.NullCache
""",
    "numbers are counted elsewhere": """
import itertools
import numba.core.bytecode as module
init, counter = module.FunctionIdentity.from_function.__func__, itertools.count(1)
def from_function(cls, function):
    identity = init(cls, function)
    identity.unique_id = next(counter)
    return identity
module.FunctionIdentity.from_function = classmethod(from_function)
""",
    "an attribute is gone": """
import numba.core.codegen as module
init = module.CPUCodeLibrary.__init__
def changed(self, *arguments):
    init(self, *arguments)
    del self._linking_libraries
module.CPUCodeLibrary.__init__ = changed
add = module.CPUCodeLibrary.add_linking_library
def add_linking_library(self, library):
    self.__dict__.setdefault("libraries", []).append(library)
module.CPUCodeLibrary.add_linking_library = add_linking_library
finalize = module.CPUCodeLibrary.finalize
def renamed(self):
    self._linking_libraries = self.__dict__.pop("libraries", [])
    finalize(self)
    del self._linking_libraries
module.CPUCodeLibrary.finalize = renamed
""",
    "code is not found again": """
import numba.core.compiler as module
module.CompileResult._rebuild = classmethod(lambda *_: 1 / 0)
""",
    "an option is refused": """
import numba
njit = numba.njit
def changed(*arguments, _nrt=None, **options):
    assert _nrt is None, "no such option: _nrt"
    return njit(*arguments, **options)
numba.njit = changed
""",
}


@pytest.mark.parametrize("case", with_slow(BROKEN, ["a name is gone", "code is not found again"]))
def test_where_a_hook_is_broken_numba_is_used_plainly(case, expected, package, tmp_path):
    found = run(BROKEN[case] + SINGLE_ROUNDS, tmp_path, package, XDG_CACHE_HOME=str(tmp_path))
    assert found[0] == expected[0]
    assert found[1] == pytest.approx(expected[1], rel=1e-12)
    assert found[2] == 0
    assert found[3].startswith("PlainNumbaWarning onebit uses Numba")
    assert found[3].count("\n") == 0


@pytest.mark.parametrize(
    "version", with_slow(["0.61.2", "0.69.0", "1.0.0", "0+unknown"], ["0.69.0"])
)
def test_versions_that_were_not_tested_are_used_plainly(version, expected, tmp_path):
    other = f"import numba; numba.__version__ = {version!r}\n"
    found = run(other + SINGLE_ROUNDS, tmp_path)
    assert found[0] == expected[0]
    assert found[2] == 0
    assert "tested with Numba 0.62 to 0.68" in found[3]
    assert run(other + IMPORT, tmp_path, ONEBIT_NUMBA="all")[2:] == (len(Hook), "")


def test_a_misspelled_switch_is_named(tmp_path):
    found = run(IMPORT, tmp_path, ONEBIT_NUMBA="parts,magic")
    assert found[2] == 0
    assert "'magic'" in found[3]
    assert "numbers, references, parts" in found[3]


def test_what_has_passed_is_not_checked_again(package, tmp_path):
    count = """
import numba.core.compiler as module
rebuild, n = module.CompileResult._rebuild.__func__, []
module.CompileResult._rebuild = classmethod(lambda *a: (n.append(1), rebuild(*a))[1])
from onebit import Banditron
print(0, 0.0, len(n))
"""
    own = {"cache": tmp_path, "package": package, "XDG_CACHE_HOME": str(tmp_path)}
    assert run(count, **own)[2] == 1
    assert run(count, **own)[2] == 0


FLAGSHIP = program("OneBitClassifier(classes=range(3), random_state=0)")


@pytest.mark.slow
def test_plain_numba_does_the_same_for_the_flagship(tmp_path):
    first, plain = (run(FLAGSHIP, tmp_path, ONEBIT_NUMBA=mode) for mode in ("all", "plain"))
    assert first[0] == plain[0]
    assert first[1] == pytest.approx(plain[1], rel=1e-9)


def test_tests_run_with_all_hooks_or_as_asked():
    """Otherwise they would say nothing about the code that most people run."""
    wanted = os.environ.get(fence.VARIABLE, "all")
    if wanted in ("all", "plain"):
        assert len(HOOKS) == (len(Hook) if wanted == "all" else 0)
