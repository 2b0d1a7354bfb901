"""The command line, one file a command: `onebit learners`, `run`, `compare`, `demo`, ...."""

import sys

try:
    import rich as _rich  # noqa: F401
    import typer as _typer  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(f"the command line needs {missing.name}: pip install 'onebit[cli]'")

# Each registers its command.
from onebit.cli import compare, demo, lab, learners, regret, run, warm_up  # noqa: F401
from onebit.cli.app import main as main
