"""Tables as all commands print them."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table


def plain_table(title: str | None = None, **options: Any) -> Table:
    """Return a table with a line under its head and no frame."""
    return Table(
        title=title,
        title_style="",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        **options,
    )
