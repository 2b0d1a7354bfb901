"""Error of OneBitClassifier after a change, beside Vowpal Wabbit in seven ways to explore.

Run it with ``make compare-drift``. Streams change halfway: all labels are permuted; the two most
frequent are swapped; all are permuted gradually, over a fifth of the rows; the most frequent one
is held back until then. Or they change after a third and back after two (A-B-A). Only rounds after
the change are counted. Streams in their natural order, of time or of place, are counted whole.

Rivals' runs are kept in rivals.csv, as those of ``make compare``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import comparing
import rivals
from comparing import Line, out
from kept import Kept
from onebit import streams
from verdicts import counts, mean_and_sd, table, verdict

ROWS = {
    "optdigits": 5_620,
    "satimage": 6_435,
    "letter": 20_000,
    "snips": 14_484,
    "20newsgroups": 18_828,
    "banking77": 13_083,
    "mnist": 20_000,
}
"""Streams that are changed, and how many rows are played."""

NATURAL_ROWS = {"reuters_r8": 7_674, "amazon4": 8_000, "kddcup99": 100_000, "covtype": 100_000}
"""Streams in their natural order: that of time, but for covtype, where it is that of place."""

MUCH_BETTER = 0.7
SUDDEN = ("all permuted", "two swapped")


def permuted(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Permute all labels halfway."""
    return streams.relabelled(X, y, at=y.size // 2, seed=seed)


def two_swapped(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Swap the two most frequent labels halfway."""
    return streams.relabelled(X, y, at=y.size // 2, classes=_most_frequent(y, 2))


def gradual(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Permute all labels from halfway on, over a fifth of the rows."""
    return streams.relabelled(X, y, at=y.size // 2, over=y.size // 5, seed=seed)


def there_and_back(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Permute all labels for a third of the rows."""
    return streams.relabelled(X, y, at=y.size // 3, back=2 * y.size // 3, seed=seed)


def held_back(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Hold the most frequent label back until halfway."""
    (label,) = _most_frequent(y, 1)
    return streams.held_back(X, y, label=label, until=y.size // 2, seed=seed)


def _most_frequent(y: np.ndarray, n: int) -> np.ndarray:
    return np.argsort(-np.bincount(y), kind="stable")[:n]


CHANGES = {
    "all permuted": (permuted, 2),
    "two swapped": (two_swapped, 2),
    "gradual": (gradual, 2),
    "A-B-A": (there_and_back, 3),
    "held back": (held_back, 2),
}
"""Each change, and after which part of the rows it begins: a half or a third."""


def all_lines(names: Sequence[str]) -> list[Line]:
    """Return a line for each stream and change, and for each natural order."""
    return [
        Line(name, ROWS[name], change, ROWS[name] - ROWS[name] // part, make)
        for name in names
        if name in ROWS
        for change, (make, part) in CHANGES.items()
    ] + [
        Line(name, NATURAL_ROWS[name], "natural order", order="natural")
        for name in names
        if name in NATURAL_ROWS
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and show."""
    parser = comparing.parser(__doc__)
    parser.add_argument(
        "--changes", metavar="A,B,...", help=f"only these of: {', '.join(CHANGES)}, natural order"
    )
    options = comparing.parsed(parser, [*ROWS, *NATURAL_ROWS], arguments)
    lines = all_lines(options.streams)
    if options.changes is not None:
        lines = [line for line in lines if line.change in options.changes.split(",")]
    kept = Kept()
    if options.missing or options.fresh:
        comparing.add_missing(kept, lines, rivals.WAYS, options)
    if options.only_rivals:
        return 0
    learner = comparing.chosen_learner(options)
    found = list(comparing.measured(kept, lines, rivals.WAYS, options, [learner]))
    title = f"{options.learner} after a change: {comparing.what_is_shown(options)}"
    headings = ("stream", "change", "n", "onebit", "best VW", "which", "ratio", "")
    shown, verdicts = table(title, ["change", "which", ""], *headings), []
    for errors in found:
        best = verdict(errors.ours[0], errors.rivals)
        if best:
            verdicts.append((errors.line, best))
        shown.add_row(
            errors.line.stream,
            errors.line.change,
            str(len(errors.ours[0])),
            mean_and_sd(errors.ours[0]),
            mean_and_sd(best.theirs) if best else "",
            best.which if best else "",
            f"{best.ratio:.2f}" if best else "",
            best.says if best else "",
        )
    out.print(shown)
    named = [(f"{line.stream} {line.change}", best) for line, best in verdicts]
    out.print(counts(named, "the best of Vowpal Wabbit"))
    sudden = [best for line, best in verdicts if line.change in SUDDEN]
    much = sum(best.ratio <= MUCH_BETTER for best in sudden)
    out.print(
        f"At most {MUCH_BETTER:g} times the best of Vowpal Wabbit on {much} of {len(sudden)} lines "
        f"that are {' or '.join(SUDDEN)}."
    )
    comparing.say_what_is_missing(found)
    if options.write_page:
        comparing.write_page("python bench/drift.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
