"""The command line, one file per command: `onebit learners`, `run`, `demo`, `serve` and so on."""

import sys
from importlib import import_module
from typing import NoReturn

from onebit.cli.interrupts import quiet_interrupts

with quiet_interrupts():
    try:
        import rich as _rich  # noqa: F401
        import typer as _typer  # noqa: F401
    except ModuleNotFoundError as missing:
        sys.exit(f"the command line needs {missing.name}: pip install 'onebit[cli]'")
    from onebit.cli import app

_MODULES = {
    "compare": "compare",
    "demo": "demo",
    "evaluate": "evaluate",
    "explain": "explain",
    "lab": "lab",
    "learners": "learners",
    "regret": "regret",
    "run": "run",
    "serve": "serve",
    "log": "serve",
    "key": "serve",
    "warm-up": "warm_up",
}
"""Commands, with the modules that register them when they are imported."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit; only what this command needs is imported."""
    app.open_closed_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    asked = arguments[0] if arguments else ""
    with quiet_interrupts():
        for module in [_MODULES[asked]] if asked in _MODULES else dict.fromkeys(_MODULES.values()):
            import_module(f"onebit.cli.{module}")
    app.main(arguments)
