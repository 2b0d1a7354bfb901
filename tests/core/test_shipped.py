"""Machine code that comes with a wheel is used only where it fits."""

import os
import shutil
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

from copies import copy_package
from onebit.core import shipped
from onebit.core.compiling import HOOKS
from onebit.core.hooks import Hook
from onebit.learners import OneBitClassifier
from onebit.warming import shipped_forms, shipped_tasks
from processes import run_python

pytestmark = [
    pytest.mark.skipif(len(HOOKS) < len(Hook), reason="some hooks are off"),
    pytest.mark.skipif(not shipped.levels(), reason="code is shipped for x86-64 and ARM"),
]

MINE = """
import numpy as np
from onebit.core.compiling import compiled, lean_kernel
CONSTANT = 1.0

@lean_kernel
def inner(x):
    return x[0] + CONSTANT

def f(x):
    return inner(x) * 2.0

def value():
    return compiled("mine", f, nogil=False)(np.full(1, 2.0))
"""

RUN = """
import mine
from onebit.core.compiling import counts
print(mine.value(), *counts())
"""

WITHOUT_AVX2 = """
import llvmlite.binding as llvm
found = llvm.get_host_cpu_features
def changed():
    features = found()
    features["avx2"] = False
    return features
llvm.get_host_cpu_features = changed
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A copy of onebit with shipped code for all levels, as a wheel has it, and of `mine`."""
    home = tmp_path_factory.mktemp("built")
    copy_package(home)
    (home / "mine.py").write_text(MINE)
    for level in shipped.levels():
        environment = os.environ | {
            "PYTHONPATH": str(home),
            "NUMBA_CPU_NAME": level,
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": str(home / "nothing"),
            shipped.VARIABLE: str(home / "onebit" / "machine_code" / level),
        }
        printed = subprocess.check_output([sys.executable, "-c", RUN], env=environment, text=True)
        assert printed.split() == ["6.0", "1", "0"]
    shutil.rmtree(home / "nothing")
    return home


@pytest.fixture
def home(built, tmp_path):
    """The same for one test alone."""
    shutil.copytree(built, tmp_path / "home")
    return tmp_path / "home"


def run(home, before="", **environment):
    own = {"PYTHONPATH": str(home), "XDG_CACHE_HOME": str(home), "NUMBA_CACHE_DIR": str(home / "c")}
    ended = run_python(
        before + RUN, cwd=home, environment=os.environ | own | environment, check=True
    )
    value, compiled, loaded = ended.stdout.split()
    return float(value), int(compiled), int(loaded)


def native_files(home):
    return list((home / "c").glob("**/*.compiled"))


def test_code_that_fits_is_loaded(home):
    assert run(home) == (6.0, 0, 1)
    assert not native_files(home)


@pytest.mark.skipif(len(shipped.levels()) == 1, reason="there is one level")
def test_the_best_level_that_the_processor_has_is_loaded(home):
    code = home / "onebit" / "machine_code"
    for level, prelude, fits in [
        (shipped.V3, WITHOUT_AVX2, False),
        (shipped.V3, "", shipped.V3 in shipped.usable_levels()),
        ("x86-64", WITHOUT_AVX2, True),
    ]:
        other = next(one for one in shipped.levels() if one != level)
        (code / other).rename(home / "away")
        shutil.rmtree(home / "c", ignore_errors=True)
        assert run(home, prelude) == (6.0, 1 - fits, 0 + fits)
        (home / "away").rename(code / other)


OTHERS = {
    "Numba": "import numba; numba.__version__ = '0.68.99'\n",
    "NumPy": "import numpy; numpy.__version__ = '3.0.0'\n",
    "Python": "import sys; sys.implementation.cache_tag = 'cpython-399'\n",
    "architecture": "import platform; platform.machine = lambda: 'arm64'\n",
    "system": "import sys; sys.platform = 'sunos'\n",
}


@pytest.mark.parametrize("before", OTHERS.values(), ids=OTHERS)
def test_code_of_another_version_is_never_loaded(before, home):
    # A folder of the name that an ARM would look in, with code for this processor.
    shutil.copytree(
        home / "onebit" / "machine_code" / shipped.levels()[-1],
        home / "onebit" / "machine_code" / "generic",
        dirs_exist_ok=True,
    )
    assert run(home, before) == (6.0, 1, 0)


def test_another_minor_version_of_numpy_is_no_other(home):
    major = __import__("numpy").__version__.split(".")[0]
    assert run(home, f"import numpy; numpy.__version__ = '{major}.99.0'\n") == (6.0, 0, 1)


@pytest.mark.parametrize(
    ("old", "new", "value"), [("= 1.0", "= 2.0", 8.0), ("* 2.0", "* 3.0", 9.0)]
)
def test_code_of_a_changed_source_is_never_loaded(old, new, value, home):
    (home / "mine.py").write_text(MINE.replace(old, new))
    assert run(home) == (value, 1, 0)


def test_code_of_a_changed_linker_is_never_loaded(home):
    file = home / "onebit" / "core" / "numba_private.py"
    text = file.read_text()
    assert text.count("os.urandom(8)") == 1
    file.write_text(text.replace("os.urandom(8)", "os.urandom(9)"))
    assert run(home) == (6.0, 1, 0)


def test_damaged_code_is_compiled_again(home):
    for file in (home / "onebit" / "machine_code").glob("**/*.compiled"):
        file.write_bytes(file.read_bytes()[:500])
    assert run(home) == (6.0, 1, 0)


def test_native_code_comes_first(home):
    assert run(home, ONEBIT_SHIPPED="0") == (6.0, 1, 0)
    (native,) = native_files(home)
    before = native.stat().st_atime_ns, native.parent.stat().st_mtime_ns
    assert run(home) == (6.0, 0, 1)
    assert native.parent.stat().st_mtime_ns > before[1]


def test_other_processors_that_numba_is_told_of_get_no_shipped_code(monkeypatch):
    monkeypatch.setattr("numba.config.CPU_NAME", "generic")
    shipped.usable_levels.cache_clear()
    try:
        assert shipped.usable_levels() == ()
    finally:
        monkeypatch.undo()
        shipped.usable_levels.cache_clear()


def test_levels_are_names_that_llvm_knows():
    """An unknown processor would silently be another one."""
    target = llvm.Target.from_default_triple()
    for level in shipped.levels():
        target.create_target_machine(cpu=level)


def test_the_flagship_is_shipped_in_all_its_forms():
    forms = [form for form in shipped_forms() if isinstance(form, OneBitClassifier)]
    given = [*OneBitClassifier.forms, *OneBitClassifier.sized_forms]
    assert [form.get_params() for form in forms] == [
        OneBitClassifier(**form).get_params() for form in given
    ]
    assert len(shipped_tasks()) > 4 * len(forms)


@pytest.mark.parametrize(
    ("n_features", "n_classes"), [(4, 3), (40, 10), (64, 10), (200, 20), (5, 40), (2**16, 2)]
)
def test_the_flagship_is_shipped_for_all_sizes(n_features, n_classes):
    """Examples of any size, and records, find the code of the defaults in a wheel."""
    found = set()
    for form in shipped_forms():
        if isinstance(form, OneBitClassifier):
            run, _ = form.set_params(classes=range(3))._prepare_example(np.zeros(3))
            found.add(run.kernels)
    learner = OneBitClassifier(classes=range(n_classes))
    run, _ = learner._prepare_example(np.zeros(n_features))
    assert run.kernels in found


KEYS = """
from onebit.core.fingerprint import fingerprint
from onebit.core.engine import ENTRY_POINTS
from onebit.warming import _first_round, shipped_forms
for form in shipped_forms():
    learner, X, _ = _first_round(form)
    run, _ = learner._prepare_example(X[0])
    for name in ENTRY_POINTS:
        print(form, name, fingerprint(run.kernels.function(name).py_func, {}))
"""


def test_fingerprints_do_not_depend_on_the_processor():
    """If not: constants that are computed when a module is imported differ in their last bits."""
    different = {
        "OPENBLAS_CORETYPE": "Sandybridge",
        "NPY_DISABLE_CPU_FEATURES": " ".join(disabled_features()),
    }
    here = run_python(KEYS, check=True).stdout.splitlines()
    there = subprocess.check_output(
        [sys.executable, "-W", "ignore", "-c", KEYS], env=os.environ | different, text=True
    ).splitlines()
    assert len(here) > 100
    assert here == there


def disabled_features():
    """Features of this processor that NumPy would use."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__[name]]
