"""Measure the start of an installed wheel, in a process that finds nothing compiled.

    python tools/wheel_check.py WHEEL

It makes a virtual environment and an empty home in a temporary folder, installs the wheel, and
fails if the first decision and the first lesson of OneBitClassifier compile anything, or take two
seconds with onebit's own import.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LIMIT = 2.0
"""Seconds, beyond the imports of scikit-learn and Numba."""

MOST_MB = 15.0

FIRST = """
from time import perf_counter
import numba, scipy.sparse, scipy.special, sklearn.base, sklearn.utils.validation
import safetensors.numpy
start = perf_counter()
from onebit import OneBitClassifier
imported = perf_counter()
learner = OneBitClassifier(classes=["sport", "politics", "science"], random_state=0)
decision = learner.decide([1.0, 0.0, 2.0])
decided = perf_counter()
learner.learn(decision, correct=True)
learned = perf_counter()
from onebit.core.compiling import HOOKS, counts
print(imported - start, decided - imported, learned - decided, counts().compiled, len(HOOKS))
"""


def main(wheel: Path) -> None:
    """Install the wheel, run FIRST twice, and print its times."""
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        home, environment = Path(folder) / "home", Path(folder) / "venv"
        home.mkdir()
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        versions = [f"{name}=={version}" for name, version in versions_here()]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, str(wheel.resolve()), *versions], check=True)
        keep = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        command = [python, "-I", "-c", FIRST]
        totals = []
        for run in ("first", "second"):
            printed = subprocess.check_output(
                command, env={**keep, "HOME": str(home)}, cwd=home, text=True
            )
            *seconds, compiled, n_hooks = map(float, printed.split())
            totals.append(sum(seconds))
            print(
                f"{run} process: import {seconds[0]:.2f} s, decide {seconds[1]:.2f} s, "
                f"learn {seconds[2]:.2f} s, {compiled:.0f} functions compiled"
            )
            if compiled or not n_hooks:
                sys.exit("something was compiled: the code in the wheel was not found")
    if totals[0] > LIMIT or size > MOST_MB:
        sys.exit(f"at most {LIMIT:g} s and {MOST_MB:g} MB were expected")


def versions_here() -> list[tuple[str, str]]:
    """Return the versions that the wheel's code was compiled with."""
    import numba
    import numpy

    return [("numba", numba.__version__), ("numpy", numpy.__version__)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
