"""Streams, as specified on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

STREAM = (
    "Play this stream: a name, one of onebit.streams.NAMES, or a file. Files are tables (.csv, "
    ".tsv, .parquet), arrays X and y (.npz), Vowpal Wabbit's (.vw) or else svmlight; compressed "
    "ones end in .gz, .bz2 or .xz."
)
REPEATABLE = " This option may be repeated."

Name = Annotated[str, typer.Option(metavar="NAME", help=STREAM)]
Names = Annotated[list[str] | None, typer.Option(metavar="NAME", help=STREAM + REPEATABLE)]
LearnerName = Annotated[
    str, typer.Option(metavar="NAME", help="Play this learner, by its name in any case.")
]
LearnerNames = Annotated[
    list[str],
    typer.Option(metavar="NAME", help="Play this learner, by its name in any case." + REPEATABLE),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the learner, as in gamma=0.1." + REPEATABLE,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Take the labels from this column of a table; by default it is the first there is of "
        "label, y, target and class.",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Play at most this many rounds; by default all, or 100000 of a synthetic stream.",
    ),
]
Unit = Annotated[bool, typer.Option("--unit", help="Divide each example by its length.")]
Noise = Annotated[
    float,
    typer.Option(
        metavar="SHARE", min=0.0, max=1.0, help="Replace this share of the labels by wrong ones."
    ),
]
Shuffle = Annotated[
    bool,
    typer.Option("--shuffle", help="Play a file in a random order, another one for each seed."),
]
Epochs = Annotated[
    int, typer.Option(metavar="N", min=1, help="Go through the stream this many times.")
]
