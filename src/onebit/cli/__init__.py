"""The command line, one file a command: `onebit learners`, `run`, `demo`, `serve` and so on."""

import sys

try:
    import rich as _rich  # noqa: F401
    import typer as _typer  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(f"the command line needs {missing.name}: pip install 'onebit[cli]'")

# Each registers its command.
from onebit.cli import (  # noqa: F401
    compare,
    demo,
    evaluate,
    lab,
    learners,
    regret,
    run,
    serve,
    warm_up,
)
from onebit.cli.app import main as main
