"""`onebit learners`: every learner, what it costs and what is proven of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from onebit.cli.app import AsJson, app
from onebit.cli.parameters import learner_classes, parameters_of, shown

if TYPE_CHECKING:
    from onebit import Learner


@app.command()
def learners(
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a table in Markdown instead.")
    ] = False,
) -> None:
    """List every learner, what it costs and what is proven of it."""
    found = learner_classes()
    if as_markdown:
        print(learners_as_markdown(found.values()))
        return
    if as_json:
        print(json.dumps([learner_as_json(cls) for cls in found.values()], indent=2))
        return
    # Two lines per learner: six columns side by side would not fit a terminal.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, leading=1, padding=(0, 1, 0, 0))
    table.add_column("learner\n[dim]feedback", no_wrap=True)
    table.add_column("cost of a round\n[dim]bound on its mistakes")
    table.add_column("reference\n[dim]default parameters")
    for name, cls in found.items():
        table.add_row(
            f"[bold]{name}[/]\n[dim]{cls.feedback}",
            f"{escape(str(cls.cost))}\n[dim]{escape(str(cls.bound))}",
            f"{escape(cls.reference)}\n[dim]{escape(shown(parameters_of(cls())))}",
        )
    console = Console()
    console.print(table)
    console.print("\nd features, nnz of them not zero; K classes; T rounds.")


def learners_as_markdown(classes: Iterable[type[Learner]]) -> str:
    """Return the table of the site, those that need one bit first."""
    lines = ["| learner | told | time of a round | proven | reference |", "| --- " * 5 + "|"]
    for cls in sorted(classes, key=lambda cls: cls.feedback):
        cells = (f"`{cls.__name__}`", told(cls), str(cls.cost), str(cls.bound), cls.reference)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def told(cls: type[Learner]) -> str:
    """Return what a learner is told after a round."""
    if "feedback" in cls._get_param_names():
        return "one bit or the label"
    if cls.feedback == "bandit":
        return "one bit"
    multi_class = cls().__sklearn_tags__().classifier_tags.multi_class
    return "the label" if multi_class else "the label, of two"


def learner_as_json(cls: type[Learner]) -> dict[str, Any]:
    """Return the details of a learner."""
    return {
        "learner": cls.__name__,
        "feedback": cls.feedback,
        "cost": str(cls.cost),
        "bound": str(cls.bound),
        "reference": cls.reference,
        "parameters": parameters_of(cls()),
    }
