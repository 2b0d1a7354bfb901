"""Streams, as specified on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

STREAMS = (
    "A name of onebit.streams.NAMES, or a file: .csv, .tsv, .parquet, .vw, any other is svmlight; "
    "also .gz, .bz2, .xz."
)

Name = Annotated[str, typer.Option(help=STREAMS)]
Label = Annotated[
    str | None, typer.Option(help="Column of the label in a table; else label, y, target, class.")
]
Unit = Annotated[bool, typer.Option("--unit", help="Divide each example by its length.")]
Noise = Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of labels made wrong.")]
Shuffle = Annotated[bool, typer.Option("--shuffle", help="Play a file in a random order.")]
Epochs = Annotated[int, typer.Option(min=1, help="Times to go through the stream.")]
