"""Who made fewer mistakes, in numbers, words and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich import box
from rich.table import Table


@dataclass(frozen=True)
class Verdict:
    """Our errors against those of the best rival, which is chosen in hindsight by its mean."""

    which: str
    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """Return our mean error over theirs."""
        return float(np.mean(self.ours)) / max(float(np.mean(self.theirs)), 1e-300)

    @property
    def says(self) -> str:
        """Return "fewer" mistakes, "more", or a "tie": within one standard error.

        That is the standard error of the mean of the differences, seed by seed.
        """
        differences = np.subtract(self.ours, self.theirs)
        mean = differences.mean()
        error = differences.std(ddof=1) / math.sqrt(len(differences)) if len(self.ours) > 1 else 0.0
        if abs(mean) <= error:
            return "tie"
        return "fewer" if mean < 0 else "MORE"


def verdict(ours: list[float], others: dict[str, list[float]]) -> Verdict | None:
    """Return how our errors compare with the best rival that has runs."""
    complete = {name: errors for name, errors in others.items() if errors}
    if not ours or not complete:
        return None
    best = min(complete, key=lambda name: np.mean(complete[name]))
    return Verdict(best, ours, complete[best])


def counts(verdicts: Sequence[tuple[str, Verdict]], rival: str) -> str:
    """Return in words on how many streams we make fewer, as many and more mistakes, and where."""
    by = {
        say: [name for name, verdict in verdicts if verdict.says == say]
        for say in ("fewer", "tie", "MORE")
    }
    words = (
        f"Of {len(verdicts)}, {len(by['fewer'])} have fewer mistakes than {rival}, "
        f"{len(by['tie'])} are ties within one standard error, {len(by['MORE'])} have more"
    )
    return f"{words}: {', '.join(by['MORE'])}." if by["MORE"] else f"{words}."


def table(title: str, left: Sequence[str], *headings: str) -> Table:
    """Return a table with right-aligned columns, except for the first and those in `left`."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    for i, heading in enumerate(headings):
        justify: Any = "left" if i == 0 or heading in left else "right"
        made.add_column(heading, justify=justify, no_wrap=True)
    return made


def mean_and_sd(errors: list[float]) -> str:
    """Return both with at most three decimals, so that the mean has three digits."""
    if not errors:
        return ""
    mean = np.mean(errors)
    decimals = 2 if mean == 0 else min(3, max(0, 2 - math.floor(math.log10(mean))))
    sd = f" ±{np.std(errors, ddof=1):.{decimals}f}" if len(errors) > 1 else ""
    return f"{mean:.{decimals}f}{sd}"
