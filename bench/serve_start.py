"""How long the service takes to import what it needs, with and without lazy modules.

    python bench/serve_start.py [--turns 8]

Each form is a new process; it prints the median processor seconds of each. The lazy modules are
`onebit.serve.starting.LAZY`; pandas is among them if it is installed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

FORMS = {
    "all modules at once": "import onebit.serve.running",
    "the same without pandas": "import sys; sys.modules['pandas'] = None\n"
    "import onebit.serve.running",
    "lazy modules (onebit serve)": "from onebit.serve.starting import import_running\n"
    "import_running()",
}


def processor_seconds(code: str) -> float:
    """Return the processor seconds that a new process takes to run some code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure the forms in turns."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    found: dict[str, list[float]] = {name: [] for name in FORMS}
    for _ in range(options.turns):
        for name, code in FORMS.items():
            found[name].append(processor_seconds(code))
    for name, seconds in found.items():
        print(f"{name:<28} {statistics.median(seconds):.2f} s, at least {min(seconds):.2f}")


if __name__ == "__main__":
    main()
