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

import comparing
import rivals
from comparing import Line, out
from onebit.lab.kept import Kept
from onebit.lab.lines import MOVING_ROWS, NATURAL, NATURAL_ROWS
from onebit.lab.verdicts import counts, mean_and_sd, table, verdict
from onebit.streams.changes import CHANGES

MUCH_BETTER = 0.7
SUDDEN = ("all permuted", "two swapped")


def all_lines(names: Sequence[str]) -> list[Line]:
    """Return a line for each stream and change, and for each natural order."""
    return [
        Line(name, n, change, n - found.begins(n), found.make)
        for name in names
        if (n := MOVING_ROWS.get(name))
        for change, found in CHANGES.items()
    ] + [
        Line(name, NATURAL_ROWS[name], NATURAL, order="natural")
        for name in names
        if name in NATURAL_ROWS
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and show."""
    parser = comparing.parser(__doc__)
    parser.add_argument(
        "--changes", metavar="A,B,...", help=f"only these of: {', '.join(CHANGES)}, {NATURAL}"
    )
    options = comparing.parsed(parser, [*MOVING_ROWS, *NATURAL_ROWS], arguments)
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
        comparing.write_page("python bench/drift.py", options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
