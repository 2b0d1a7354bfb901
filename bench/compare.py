"""Error and speed of OneBitClassifier, as it is, beside other tools on all named streams.

Run it with ``make compare``; ``onebit.streams.load`` says where the data are looked for. Rivals are
Vowpal Wabbit in seven ways to explore, and the label that is right most often; the best of them is
the one with the lowest mean error on that stream, chosen in hindsight: no single one is as good on
all of them. The first rows of streams that are not wide are played by contextualbandits, too.

A comparison plays only our learners; rivals' runs are kept in rivals.csv. ``--fresh`` makes all of
them anew, ``--missing`` those that are not there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

import comparing
import rivals
from comparing import Errors, Line, log, out
from measuring import Measured, machine, repeated
from onebit import AROW, LinUCB, play
from onebit.lab.kept import Kept
from onebit.lab.verdicts import counts, mean_and_sd, table, verdict
from rounds import ROWS

WIDE = (
    "reuters_r8",
    "ag_news",
    "amazon4",
    "snips",
    "rcv1",
    "banking77",
    "20newsgroups",
    "fdu_mtl",
    "clinc150",
    "mnist",
    "synsep",
    "synnonsep",
)
"""Streams of hundreds or thousands of features: too many for a matrix for each label."""

FIRST_ROWS = 10_000
"""Rows that contextualbandits, which takes milliseconds for a round, is compared on."""

BETTER = 0.85
"""A ratio of errors that is more than luck."""

TIMED = ("mnist", "synsep")
TIMED_WAY = "--bag 5"
TIMED_LINUCB = ("letter", "optdigits")
TIMED_ROWS = 2_000
"""Rows on which both LinUCBs are timed."""


def show(options: argparse.Namespace, kept: Kept) -> None:
    """Print our errors and the best rival's on all rows, and the ends of the scale."""
    lines = all_rows(options)
    if options.feedback:
        tools, learners = [*rivals.WAYS], [comparing.chosen_learner(options)]
    else:
        tools, learners = [*rivals.WAYS, rivals.OAA], [comparing.chosen_learner(options), _arow]
    found = list(comparing.measured(kept, lines, tools, options, learners))
    _show_errors(options, found)
    if not options.feedback:
        _show_scale(options, found)
    comparing.say_what_is_missing(found)


def _arow(n_classes: int, seed: int) -> AROW:
    return AROW(classes=np.arange(n_classes), random_state=seed)


def _ways(errors: Errors) -> dict[str, list[float]]:
    return {way.short: errors.rivals[way.short] for way in rivals.WAYS}


def _rows(n: int) -> str:
    if n < 100_000:
        return f"{n:,}"
    return f"{n / 1_000:.0f}k" if n < 1_000_000 else f"{n / 1_000_000:g}M"


def _show_errors(options: argparse.Namespace, found: Sequence[Errors]) -> None:
    title = f"{options.learner} and the best rival: {comparing.what_is_shown(options)}"
    headings = ("stream", "rows", "K", "n", "onebit", "best rival", "which", "ratio", "")
    shown, verdicts, ratios = table(title, ["which", ""], *headings), [], []
    for errors in found:
        ours = errors.ours[0]
        name = errors.line.stream
        best = verdict(ours, {**_ways(errors), "constant": errors.constant})
        best_way = verdict(ours, _ways(errors))
        if best_way:
            ratios.append(best_way.ratio)
        if best:
            verdicts.append((name, best))
        shown.add_row(
            name,
            _rows(errors.line.rows),
            str(errors.n_classes),
            str(len(ours)),
            mean_and_sd(ours),
            mean_and_sd(best.theirs) if best else "",
            best.which if best else "",
            f"{best.ratio:.2f}" if best else "",
            best.says if best else "",
        )
    out.print(shown)
    out.print(counts(verdicts, "the best rival"))
    few = sum(ratio <= BETTER for ratio in ratios)
    out.print(f"At most {BETTER:g} times the best of Vowpal Wabbit on {few} of {len(ratios)}.")


def _show_scale(options: argparse.Namespace, found: Sequence[Errors]) -> None:
    title = "The ends of the scale: nothing learned, and every label told"
    headings = ("stream", "constant", options.learner, "AROW, told", "VW --oaa, told")
    shown = table(title, [], *headings)
    for errors in found:
        columns = (errors.constant, *errors.ours, errors.rivals["oaa"])
        shown.add_row(errors.line.stream, *map(mean_and_sd, columns))
    out.print()
    out.print(shown)


def all_rows(options: argparse.Namespace) -> list[Line]:
    """Return a line for each stream."""
    return [Line(name, min(ROWS[name], options.rounds)) for name in options.streams]


def first_rows(options: argparse.Namespace) -> list[Line]:
    """Return the first rows of the streams that are not wide."""
    return [
        Line(line.stream, min(line.rows, FIRST_ROWS))
        for line in all_rows(options)
        if line.stream not in WIDE
    ]


def show_few(options: argparse.Namespace, kept: Kept) -> None:
    """Print our errors and those of contextualbandits on the first rows."""
    tools, lines = rivals.CONTEXTUALBANDITS, first_rows(options)
    if not lines or options.feedback:
        return
    learner = comparing.chosen_learner(options)
    found = list(comparing.measured(kept, lines, tools, options, [learner]))
    title = "The first rows, and contextualbandits: error %, mean of n seeds"
    headings = (
        "stream",
        "rows",
        "n",
        "onebit",
        *(tool.short for tool in tools),
        "ratio",
        "",
    )
    shown, verdicts = table(title, [""], *headings), []
    for errors in found:
        best = verdict(errors.ours[0], errors.rivals)
        if best:
            verdicts.append((errors.line.stream, best))
        columns = (errors.ours[0], *errors.rivals.values())
        shown.add_row(
            errors.line.stream,
            f"{errors.line.rows:,}",
            str(len(errors.ours[0])),
            *(f"{np.mean(column):.2f}" if column else "" for column in columns),
            f"{best.ratio:.2f}" if best else "",
            best.says if best else "",
        )
    out.print()
    out.print(shown)
    out.print(counts(verdicts, "the best of contextualbandits"))
    comparing.say_what_is_missing(found)


def speed(options: argparse.Namespace) -> None:
    """Time both tools on the same rounds in memory or in Vowpal Wabbit's cache, and print it."""
    shown = table(
        "Rounds a second, the fastest run", ["rival"], "stream", "rows", "onebit", "", "rival", "x"
    )
    timed = {}
    for name in (name for name in (*TIMED, *TIMED_LINUCB) if name in options.streams):
        rows = TIMED_ROWS if name in TIMED_LINUCB else min(ROWS[name], options.rounds)
        try:
            rounds = Line(name, rows).load(0)
        except FileNotFoundError:
            continue
        log.print(f"timing {name}")
        pair = (_lin_ucbs if name in TIMED_LINUCB else _learner_and_vw)(options, rounds)
        timed[name] = [
            {**asdict(tool), "rounds_a_second": 1e6 / tool.microseconds} for tool in pair
        ]
        ours, theirs = (1e6 / tool.microseconds for tool in pair)
        disturbed = " (disturbed)" if any(tool.disturbed for tool in pair) else ""
        shown.add_row(
            name,
            f"{rows:,}",
            f"{pair[0].tool} {ours:,.0f}",
            f"{theirs:,.0f}",
            pair[1].tool,
            f"{ours / theirs:.1f}{disturbed}",
        )
    if timed:
        content = {"machine": machine(), "speed": timed}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
        out.print()
        out.print(shown)


def _learner_and_vw(
    options: argparse.Namespace, rounds: comparing.Rounds
) -> tuple[Measured, Measured]:
    with tempfile.TemporaryDirectory() as folder:
        bits, n = rivals.COMPARED_BITS, rounds.y.size
        cache = rivals.write_vw_cache(Path(folder), rounds.X, rounds.y, rounds.n_classes, bits)
        theirs = rivals.vowpal_wabbit(TIMED_WAY, cache, rounds.n_classes, n, options.repeats, bits)
    new = comparing.chosen_learner(options)
    play(new(rounds.n_classes, 0), rounds.X[:20], rounds.y[:20])  # compiles
    runs, history = repeated(
        options.repeats,
        lambda: play(new(rounds.n_classes, 0), rounds.X, rounds.y, record=False),
    )
    return Measured(options.learner, n, runs, history.error_rate), theirs


def _lin_ucbs(options: argparse.Namespace, rounds: comparing.Rounds) -> tuple[Measured, Measured]:
    """Time both LinUCBs as their users call them: a stream, and one row at a time."""
    X, y, K = rounds.X, rounds.y, rounds.n_classes
    play(LinUCB(classes=np.arange(K)), X[:20], y[:20])  # compiles
    ours, history = repeated(options.repeats, lambda: play(LinUCB(classes=np.arange(K)), X, y))
    theirs, labels = repeated(
        1, lambda: rivals.run_contextualbandits(rivals.contextualbandits_lin_ucb(K, 1.0, 0), X, y)
    )
    return (
        Measured("LinUCB", y.size, ours, history.error_rate),
        Measured("contextualbandits", y.size, theirs, float(np.mean(labels != y))),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and show."""
    parser = comparing.parser(__doc__)
    parser.add_argument(
        "--rounds", type=int, default=10**9, help="only the first rounds of each stream"
    )
    parser.add_argument("--only-speed", action="store_true", help="only the measurement of speed")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each tool")
    parser.add_argument("--json", type=Path, default=Path("compare-results.json"), metavar="FILE")
    options = comparing.parsed(parser, list(ROWS), arguments)
    kept = Kept()
    if options.missing or options.fresh:
        comparing.add_missing(kept, all_rows(options), [*rivals.WAYS, rivals.OAA], options)
        comparing.add_missing(kept, first_rows(options), rivals.CONTEXTUALBANDITS, options)
    if not options.only_rivals and not options.only_speed:
        show(options, kept)
        show_few(options, kept)
    if options.write_page:
        comparing.write_page("python bench/compare.py", options)
    elif not options.only_rivals and not options.feedback:
        speed(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
