"""`onebit warm-up`: compile ahead of time, for container images."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import onebit
from onebit.cli.app import AsJson, app
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
    as_json: AsJson = False,
) -> None:
    """Compile learners ahead of time, and store the code on disk."""
    if every and names:
        raise ValueError(f"--all takes no names of learners; got {', '.join(names)}")
    classes = [onebit.learners.named(name) for name in names or ["OneBitClassifier"]]
    rows, cache = [], None
    for cls in learner_classes().values() if every else classes:
        for form in cls.forms:
            (warmed,), cache = onebit.warm_up(cls(**form))
            row = {
                "learner": str(warmed.learner),
                "seconds": round(warmed.seconds, 2),
                "compiled": warmed.compiled,
                "loaded": warmed.loaded,
            }
            rows.append(row)
            if not as_json:
                print("{learner}: {compiled} compiled, {loaded} loaded, {seconds} s".format(**row))
    if as_json:
        print(json.dumps({"forms": rows, "cache": None if cache is None else str(cache)}, indent=2))
    elif cache is None:
        print("compiled code is not stored: no folder can be written; set NUMBA_CACHE_DIR")
    else:
        print(f"compiled code is in {cache}")
