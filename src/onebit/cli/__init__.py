"""The command line, one file a command: `onebit learners`, `run`, `demo`, `serve` and so on."""

import sys

try:
    import rich as _rich  # noqa: F401
    import typer as _typer  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(f"the command line needs {missing.name}: pip install 'onebit[cli]'")

# Each registers its command.
from onebit.cli import demo, evaluate, learners, regret, run, serve, warm_up  # noqa: F401
from onebit.cli.app import main as main
