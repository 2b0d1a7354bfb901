"""Error and speed of OneBitClassifier, as it is, beside Vowpal Wabbit in seven ways to explore.

Run it with ``make compare``; ``onebit.streams.load`` says where the data are looked for. Each seed
shuffles the stream and seeds the tools. The error is the share of rounds whose label was wrong, in
one pass, exploration included. Vowpal Wabbit's best is the way with the lowest mean on that stream,
chosen after the fact: no single way is as good on all of them.

Every run is saved when it is done, so an interrupted comparison goes on where it stopped. Runs of
Vowpal Wabbit are kept from one comparison to the next; those of onebit are made anew each time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import onebit
import rivals
from measuring import Measured, machine, repeated
from onebit import Learner, play, streams

ROWS = {
    "dna": 3_186,
    "satimage": 6_435,
    "optdigits": 5_620,
    "reuters_r8": 7_674,
    "snips": 14_484,
    "letter": 20_000,
    "shuttle": 58_000,
    "connect4": 67_557,
    "banking77": 13_083,
    "fars": 100_968,
    "20newsgroups": 18_828,
    "clinc150": 22_500,
    "covtype": 581_012,
    "mnist": 70_000,
    "synsep": 1_000_000,
    "synnonsep": 1_000_000,
    "kddcup99": 494_020,
}
"""The streams, those of little work first, and how many rows each must have."""

MORE_ROWS = {
    "vowel": 990,
    "ag_news": 7_600,
    "amazon4": 8_000,
    "poker": 25_010,
    "rcv1": 23_428,
    "fdu_mtl": 31_780,
}
"""Streams that are compared only if they are named."""

WAYS = {
    "bag": "--bag 5",
    "bag legacy": "--bag 5 --cb_force_legacy",
    "squarecb": "--squarecb",
    "epsilon": "--epsilon 0.02",
    "epsilon dm": "--epsilon 0.02 --cb_force_legacy --cb_type dm",
    "softmax": "--cb_explore_adf --softmax --lambda 10",
    "regcb": "--cb_explore_adf --regcb",
}
"""Vowpal Wabbit's ways to explore, all under --cbify."""

BITS = 22
"""Vowpal Wabbit's weights have 2^22 places: enough that words rarely share one."""

TIMED = ("mnist", "synsep")
TIMED_WAY = "bag"
BETTER = 0.85
"""A ratio of errors that is more than luck."""

out = Console(width=80, highlight=False)
log = Console(stderr=True, style="dim", highlight=False)


@dataclass(frozen=True)
class Run:
    """One tool on one stream with one seed."""

    stream: str
    tool: str
    seed: int
    rows: int
    classes: int
    error: float
    seconds: float

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What tells it from other runs."""
        return self.stream, self.tool, self.seed, self.rows


class Results:
    """The runs in a file, which is rewritten after each of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read()

    def read(self) -> None:
        """Read the file, which another comparison may have added to."""
        self.content = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.runs = {run.key: run for run in (Run(**run) for run in self.content.get("runs", []))}

    def add(self, run: Run) -> None:
        """Add a run, in the place of one of the same key if there is one."""
        self.read()
        self.runs[run.key] = run
        self.write(machine=machine(), runs=[asdict(self.runs[key]) for key in sorted(self.runs)])

    def write(self, **parts: Any) -> None:
        """Replace parts of the file."""
        self.content.update(parts)
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(self.content, indent=1) + "\n")
        os.replace(unfinished, self.path)

    def errors(self, stream: str, tool: str, rows: int, seeds: int) -> list[float]:
        """Return the errors in percent over the seeds; nothing if one is missing."""
        keys = [(stream, tool, seed, rows) for seed in range(seeds)]
        return [100 * self.runs[key].error for key in keys] if self.runs.keys() >= {*keys} else []


@dataclass(frozen=True)
class Stream:
    """A stream with labels 0 to `n_classes` - 1."""

    name: str
    X: Any
    y: np.ndarray
    n_classes: int


def load(name: str, seed: int, rounds: int) -> Stream:
    """Return the first rounds of a stream."""
    X, y = streams.load(name, seed=seed)
    expected = {**ROWS, **MORE_ROWS}[name]
    if len(y) != expected:
        raise ValueError(f"{name} has {len(y):,} rows here, not {expected:,}: other data?")
    classes, y = np.unique(y, return_inverse=True)
    return Stream(name, X[:rounds], y[:rounds], classes.size)


def run_of_onebit(learner: type[Learner], stream: Stream, seed: int) -> Run:
    """Play a learner with its default parameters."""
    start = time.perf_counter()
    error = play(_fresh(learner, stream, seed), stream.X, stream.y, record=False).error_rate
    seconds = time.perf_counter() - start
    rows = stream.y.size
    return Run(stream.name, learner.__name__, seed, rows, stream.n_classes, error, seconds)


def runs_of_vowpal_wabbit(ways: list[str], stream: Stream, seed: int) -> Iterator[Run]:
    """Yield a run for each of these ways to explore."""
    rows = stream.y.size
    with tempfile.TemporaryDirectory() as folder:
        cache = rivals.write_vw_cache(Path(folder), stream.X, stream.y, stream.n_classes, BITS)
        for way in ways:
            start = time.perf_counter()
            error = rivals.run_vowpal_wabbit(
                way, cache, stream.n_classes, rows, bits=BITS, seed=seed
            )
            seconds = time.perf_counter() - start
            yield Run(stream.name, _tool(way), seed, rows, stream.n_classes, error, seconds)


_GIVEN: dict[str, Any] = {}
"""Parameters of the learner that are not its defaults."""


def _fresh(learner: type[Learner], stream: Stream, seed: int) -> Learner:
    return learner(classes=np.arange(stream.n_classes), random_state=seed, **_GIVEN)


def _tool(way: str) -> str:
    return f"VW {way}"


def compare(options: argparse.Namespace, learner: type[Learner], results: Results) -> None:
    """Make the runs that are missing, all streams with the first seed first."""
    ways = [] if options.only == "onebit" else list(WAYS.values())
    absent = set()
    for seed in range(options.seeds):
        for name, rows in options.streams.items():
            missing = [
                way
                for way in ways
                if options.fresh or (name, _tool(way), seed, rows) not in results.runs
            ]
            if name in absent or (options.only == "vw" and not missing):
                continue
            try:
                stream = load(name, seed, rows)
            except FileNotFoundError as error:
                log.print(f"no data: {error}")
                absent.add(name)
                continue
            if options.only != "vw":
                _add(results, run_of_onebit(learner, stream, seed))
            if missing:
                for run in runs_of_vowpal_wabbit(missing, stream, seed):
                    _add(results, run)


def _add(results: Results, run: Run) -> None:
    results.add(run)
    log.print(
        f"seed {run.seed} {run.stream}, {run.tool}: "
        f"error {100 * run.error:.2f} %, {run.seconds:.1f} s"
    )


def show_errors(options: argparse.Namespace, learner: type[Learner], results: Results) -> None:
    """Print the errors of both tools on each stream, and on how many streams onebit has fewer."""
    table = _table(
        f"{learner.__name__} and the best of VW: error %, mean ± sd of {options.seeds} seeds"
    )
    for heading in ("rows", "K", "onebit", "best VW", "which", "ratio"):
        table.add_column(heading, justify="left" if heading == "which" else "right", no_wrap=True)
    n_classes = {run.stream: run.classes for run in results.runs.values()}
    ratios, incomplete = [], []
    for name, rows in options.streams.items():
        ours = results.errors(name, learner.__name__, rows, options.seeds)
        theirs = {
            way: results.errors(name, _tool(arguments), rows, options.seeds)
            for way, arguments in WAYS.items()
        }
        tried = [way for way in theirs if theirs[way]]
        best = min(tried, key=lambda way: np.mean(theirs[way]), default="")
        if len(tried) < len(WAYS):
            incomplete.append(name)
        if ours and best:
            ratios.append(np.mean(ours) / np.mean(theirs[best]))
        table.add_row(
            name,
            f"{rows:,}",
            str(n_classes.get(name, "")),
            _mean_and_sd(ours),
            _mean_and_sd(theirs.get(best, [])),
            best,
            f"{ratios[-1]:.2f}" if ours and best else "",
        )
    out.print(table)
    counts = [f"at most {bound:g} on {sum(r <= bound for r in ratios)}" for bound in (1, BETTER)]
    out.print(f"Of {len(ratios)} streams, the ratio is {' and '.join(counts)}.")
    if incomplete:
        out.print(f"Runs of Vowpal Wabbit are missing on {', '.join(incomplete)}.")


def _mean_and_sd(errors: list[float]) -> str:
    """Return both with as many decimals as give the mean three digits, four at most."""
    if not errors:
        return ""
    mean = np.mean(errors)
    decimals = 2 if mean == 0 else min(4, max(0, 2 - math.floor(math.log10(mean))))
    sd = f" ±{np.std(errors, ddof=1):.{decimals}f}" if len(errors) > 1 else ""
    return f"{mean:.{decimals}f}{sd}"


def _table(title: str) -> Table:
    table = Table(
        "stream",
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    table.columns[0].no_wrap = True
    return table


def speed(options: argparse.Namespace, learner: type[Learner], results: Results) -> None:
    """Time both tools on the same rounds in memory or in Vowpal Wabbit's cache, and print it."""
    table = _table("Rounds a second, the fastest run")
    for heading in ("rows", learner.__name__, f"VW {WAYS[TIMED_WAY]}", "x VW"):
        table.add_column(heading, justify="right", no_wrap=True)
    timed = {}
    for name in TIMED:
        if name not in options.streams:
            continue
        try:
            stream = load(name, 0, options.streams[name])
        except FileNotFoundError:
            continue
        log.print(f"timing {name}")
        pair = _timed_onebit(learner, stream, options.repeats), _timed_vw(stream, options.repeats)
        timed[name] = [
            {**asdict(tool), "rounds_a_second": 1e6 / tool.microseconds} for tool in pair
        ]
        ours, theirs = (1e6 / tool.microseconds for tool in pair)
        disturbed = " (disturbed)" if any(tool.disturbed for tool in pair) else ""
        table.add_row(
            name,
            f"{stream.y.size:,}",
            f"{ours:,.0f}",
            f"{theirs:,.0f}",
            f"{ours / theirs:.1f}{disturbed}",
        )
    if timed:
        results.read()
        results.write(speed=timed)
        out.print(table)


def _timed_onebit(learner: type[Learner], stream: Stream, repeats: int) -> Measured:
    play(_fresh(learner, stream, 0), stream.X[:20], stream.y[:20])  # compiles
    runs, history = repeated(
        repeats, lambda: play(_fresh(learner, stream, 0), stream.X, stream.y, record=False)
    )
    return Measured(learner.__name__, stream.y.size, runs, history.error_rate)


def _timed_vw(stream: Stream, repeats: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        cache = rivals.write_vw_cache(Path(folder), stream.X, stream.y, stream.n_classes, BITS)
        return rivals.vowpal_wabbit(
            WAYS[TIMED_WAY], cache, stream.n_classes, stream.y.size, repeats, BITS
        )


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--streams", metavar="A,B,...", help=f"default: all but {', '.join(MORE_ROWS)}"
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0, 1, ... (default 5)")
    parser.add_argument("--rounds", type=int, help="only the first rounds of each stream")
    parser.add_argument("--learner", default="OneBitClassifier", help="any learner of onebit")
    parser.add_argument(
        "--as-prepared",
        action="store_true",
        help="leave the rows, which are prepared, as they are: standardize=False",
    )
    parser.add_argument(
        "--only", choices=("vw", "onebit", "speed", "table"), help="these runs; table: none"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="make the runs that were kept anew, too"
    )
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each tool")
    parser.add_argument("--json", type=Path, default=Path("compare-results.json"), metavar="FILE")
    options = parser.parse_args(arguments)
    known = {**ROWS, **MORE_ROWS}
    names = list(ROWS) if options.streams is None else options.streams.split(",")
    for name in names:
        if name not in known:
            parser.error(f"no stream {name!r}: there are {', '.join(known)}")
    options.streams = {name: min(known[name], options.rounds or known[name]) for name in names}
    if options.learner not in onebit.learners.__all__:
        parser.error(
            f"no learner {options.learner!r}: there are {', '.join(onebit.learners.__all__)}"
        )
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, show and write."""
    options = _parsed(arguments)
    learner = getattr(onebit, options.learner)
    if options.as_prepared:
        _GIVEN["standardize"] = False
    results = Results(options.json)
    if options.only in (None, "vw", "onebit"):
        compare(options, learner, results)
    if options.only != "speed":
        show_errors(options, learner, results)
    if options.only in (None, "speed"):
        speed(options, learner, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
