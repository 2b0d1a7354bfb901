"""`onebit warm-up`: compile ahead of time, for container images."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import onebit
from onebit.cli.app import AsJson, app
from onebit.cli.bars import compiling_bar
from onebit.cli.parameters import learner_classes


@app.command()
def warm_up(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Compile these learners, by their names in any case; by default OneBitClassifier.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Compile all learners there are.")] = False,
    native: Annotated[
        bool,
        typer.Option(
            "--native",
            help="Compile for this processor, also where code for its family came with onebit.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compile learners ahead of time, on all cores, and keep the code."""
    if every and names:
        raise ValueError(f"--all takes no names of learners; got {', '.join(names)}")
    classes = [onebit.learners.named(name) for name in names or ["OneBitClassifier"]]
    with compiling_bar(hidden=as_json) as progress:
        forms, cache = onebit.warm_up(
            *(learner_classes().values() if every else classes), native=native, progress=progress
        )
    rows = [
        {
            "learner": str(form.learner),
            "seconds": round(form.seconds, 2),
            "compiled": form.compiled,
            "loaded": form.loaded,
        }
        for form in forms
    ]
    for row in () if as_json else rows:
        print("{learner}: {compiled} compiled, {loaded} loaded, {seconds} s".format(**row))
    if as_json:
        print(json.dumps({"forms": rows, "cache": None if cache is None else str(cache)}, indent=2))
    elif cache is None:
        print("compiled code is not stored: no folder can be written; set NUMBA_CACHE_DIR")
    else:
        print(f"compiled code is in {cache}")
