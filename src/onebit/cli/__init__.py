"""The command line, one file a command: `onebit learners`, `run`, `demo`, `regret`."""

import sys

try:
    import rich as _rich  # noqa: F401
    import typer as _typer  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(f"the command line needs {missing.name}: pip install 'onebit[cli]'")

from onebit.cli import demo, learners, regret, run  # noqa: F401  (each registers its command)
from onebit.cli.app import main as main
