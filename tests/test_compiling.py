"""Compiled code: an edit takes effect, and a later process does not compile again."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import onebit

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
    completed = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(cwd), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in completed.stdout.split()]


@pytest.fixture
def package(tmp_path):
    """A copy of onebit of its own, without compiled code."""
    source = Path(onebit.__file__).parent
    shutil.copytree(source, tmp_path / "onebit", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def edit(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("learners/banditron.py", "x, y_hat, -1.0)", "x, y_hat, -2.0)"),
        ("core/exploration.py", "p[best] = share + (", "p[0] = share + ("),
        ("core/linear.py", "scores[k] += W[a, k] * v_a", "scores[k] -= W[a, k] * v_a"),
    ],
)
def test_edited_kernel_takes_effect(package, file, old, new):
    before, compiling = run(RUN, package)
    again, cached = run(RUN, package)
    assert again == before
    assert cached < compiling / 2
    edit(package / "onebit" / file, old, new)
    after, _ = run(RUN, package)
    assert after != before
    edit(package / "onebit" / file, new, old)
    assert run(RUN, package)[0] == before


def test_old_versions_are_dropped(package):
    cache = package / "onebit" / "core" / "__pycache__"
    run(RUN, package)
    first = set(cache.glob("onebit.learners.banditron.*.play-*"))
    edit(package / "onebit/learners/banditron.py", "x, y_hat, -1.0)", "x, y_hat, -2.0)")
    run(RUN, package)
    second = set(cache.glob("onebit.learners.banditron.*.play-*"))
    assert len(first) == len(second) == 1
    assert first != second


def test_cache_goes_elsewhere_if_the_package_cannot_be_written(package, tmp_path):
    cache = tmp_path / "cache"
    run(RUN, package, NUMBA_CACHE_DIR=str(cache))
    assert list(cache.glob("onebit/onebit.learners.banditron.*"))


def test_learner_defined_without_a_file_works():
    code = """
import onebit.learners.banditron as b
source = open(b.__file__).read().replace("class Banditron", "class Mine")
names = {"__name__": "__main__"}
exec(compile(source, "<notebook>", "exec"), names)
X, y = __import__("onebit").streams.synsep(500, seed=0)
print(names["Mine"](random_state=0).fit(X, y).score(X, y))
"""
    (score,) = run(code, Path(onebit.__file__).parent.parent)
    assert 0 <= score <= 1


def test_import_is_quick():
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import onebit"], check=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0
