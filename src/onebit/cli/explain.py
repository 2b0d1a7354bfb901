"""`onebit explain`: why a model prefers one label for a record."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import onebit
from onebit.cli.app import AsJson, app
from onebit.cli.parameters import parsed, parsed_list
from onebit.cli.pictures import check_picture, save_plot


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Read the model in this file.")],
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD",
            help="Explain this record: a text or JSON for a model that begins with Records, else a "
            "list of numbers. - reads it from stdin.",
        ),
    ],
    label: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="LABEL", help="Explain this label; by default the likeliest one."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="Compare with this label; by default the likeliest other one."
        ),
    ] = None,
    among: Annotated[
        str | None,
        typer.Option(metavar="LABELS", help="Offer these labels only, as in a,b,c."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the reasons in this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what speaks for a label and against another one."""
    check_picture(plot)
    loaded = onebit.load(model)
    x = _record(sys.stdin.read() if record == "-" else record)
    known = loaded.classes_.tolist()
    found = loaded.explain(
        x,
        label=_label(label, known),
        against=_label(against, known),
        among=None if among is None else parsed_list(among),
    )
    if plot:
        save_plot(plot, found.plot, height=4)
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    print(found)
    if plot:
        print(f"picture saved to {plot}")


def _record(text: str) -> Any:
    """Return a record that is JSON, or else a text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] in ("{", "["):
            raise ValueError(f"RECORD is no JSON: {error}") from None
        return text


def _label(given: str | None, known: list[Any]) -> Any:
    """Return the label that a text stands for: itself, if it is one of the labels."""
    return given if given is None or given in known else parsed(given)
