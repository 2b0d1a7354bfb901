"""What all commands share: the application, its options and its errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

import onebit

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SINGLE_OPTIONS = (
    "--learner",
    "--stream",
    "--rounds",
    "--seed",
    "--classes",
    "--plot",
    "--save",
    "--out",
    "--label",
    "--seeds",
    "--noise",
    "--epochs",
)
"""Options of which the last would win silently."""

REPEATABLE = {"compare": ("--learner", "--stream")}
"""Those of them that some commands take several times."""

EXTRAS = {"distributed": "dask", "joblib": "lab", "pandas": "lab", "pyarrow": "parquet"}
"""The extra that provides a missing module."""

Seed = Annotated[
    int, typer.Option(metavar="N", min=0, help="Use this seed for the stream and the learner.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and show no progress.")]


def open_closed_streams() -> None:
    """Read nothing from streams that are closed, and write nothing to them.

    Files that are opened later would have their descriptors, and libraries write to these.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # The lowest free descriptor is the one that is missing.
            descriptor = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w"))


def main(arguments: list[str]) -> NoReturn:
    """Run a command and exit: 0 if all went well, 2 with one line on stderr if not."""
    if os.environ.get("COLUMNS") == "0":  # as terminals without a size say; Rich prints nothing
        del os.environ["COLUMNS"]
    options = [argument.partition("=")[0] for argument in arguments]
    repeatable = REPEATABLE.get(arguments[0] if arguments else "", ())
    for option in SINGLE_OPTIONS:
        if options.count(option) > 1 and option not in repeatable:
            fail(f"{option} is given {options.count(option)} times; it takes one value")
    # Typer's exceptions are in different modules in different versions; this name is stable.
    usage_error: Any = typer.BadParameter.__bases__[0]
    try:
        code = app(arguments or ["--help"], prog_name="onebit", standalone_mode=False)
        sys.stdout.flush()
    except usage_error as error:
        fail(error.format_message())
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0], "cli")
        sys.exit(f"this needs {error.name}: pip install 'onebit[{extra}]'")
    except BrokenPipeError:
        stop_writing()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # how Rich ends then
            stop_writing()
        raise
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ArithmeticError, MemoryError) as error:
        fail(str(error) or type(error).__name__)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(code or 0)


def stop_writing() -> NoReturn:
    """Exit quietly: the reader of the output, such as `head`, has closed it."""
    # Python flushes once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def fail(message: str) -> NoReturn:
    """Print an error as one line, and exit."""
    print("onebit: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(2)


def print_version(wanted: bool) -> None:
    """Print the version and exit, if that is wanted."""
    if wanted:
        print(f"onebit {onebit.__version__}")
        raise typer.Exit


@app.callback()
def before_any_command(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=print_version, help="Print the version."),
    ] = False,
) -> None:
    """Classification when the only feedback is one bit: right or wrong."""
