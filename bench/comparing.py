"""What comparisons share: the rounds, our runs and those of rivals, and their options.

Each seed shuffles the stream and seeds the tools. The error is the share of the counted rounds
whose label was wrong, in one pass, exploration included. Rivals' runs are kept in rivals.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console

import onebit
import rivals
from onebit import Learner, play, streams
from onebit.lab.kept import SEEDS, Kept, Runs
from rounds import FEEDBACK, Feedback, Rounds, choose_and_learn

out = Console(width=80, highlight=False, record=True)
log = Console(stderr=True, style="dim", highlight=False)


@dataclass(frozen=True)
class Line:
    """One line of a table: a stream, how many of its rows are played, and what changes in it."""

    stream: str
    rows: int
    change: str = ""
    counted: int = 0
    make: Callable[[Any, np.ndarray, int], tuple[Any, np.ndarray]] | None = None
    """Makes the change, from X, y and the seed."""
    order: str = "shuffled"

    def runs(self, tool: str, feedback: str) -> Runs:
        """Return the key of a tool's runs."""
        return Runs(self.stream, self.change, feedback, self.rows, self.counted or self.rows, tool)

    def load(self, seed: int) -> Rounds:
        """Return the rounds of one seed."""
        X, y, n_classes = _loaded(self.stream, seed, self.order)
        X, y = X[: self.rows], y[: self.rows]
        if len(y) != self.rows:
            raise ValueError(f"{self.stream} has {len(y):,} rows here, not {self.rows:,}")
        if self.make is not None:
            X, y = self.make(X, y, seed)
        return Rounds(X, y, n_classes, self.rows - (self.counted or self.rows))


@lru_cache(maxsize=1)
def _loaded(stream: str, seed: int, order: str) -> tuple[Any, np.ndarray, int]:
    X, y = streams.load(stream, seed=seed, order=order)
    classes, codes = np.unique(y, return_inverse=True)
    return X, codes, classes.size


# Our runs


def our_mistakes(learner: Learner, rounds: Rounds, seed: int, feedback: Feedback) -> int:
    """Play the rounds with one of our learners."""
    if feedback.is_usual or learner.feedback == "full":
        history = play(learner, rounds.X, rounds.y)
        return int(np.count_nonzero(history.mistakes[rounds.since :]))
    X = rounds.X

    def decide(t: int) -> tuple[int, Any]:
        decision = learner.decide(X[t : t + 1] if sp.issparse(X) else X[t])
        return int(decision.label), decision

    def learn(decision: Any, correct: bool) -> None:
        learner.learn(decision, correct=correct)

    return choose_and_learn(feedback, rounds, seed, decide, learn)


# Rivals' runs


def add_missing(
    kept: Kept,
    lines: Iterable[Line],
    tools: Sequence[rivals.Tool],
    options: argparse.Namespace,
) -> None:
    """Make the runs of rivals that are missing, or with --fresh all of them, and keep each.

    The rows of a stream are loaded once for all of its changes.
    """
    feedback = FEEDBACK[options.feedback]
    able = [tool for tool in tools if feedback.is_usual or tool.takes_feedback]
    for stream in dict.fromkeys(line.stream for line in lines):
        of_stream = [line for line in lines if line.stream == stream]
        for seed in range(options.seeds):
            for line in of_stream:
                wanted = [
                    tool
                    for tool in able
                    if seed < tool.seeds
                    and (
                        options.fresh
                        or not kept.has(line.runs(tool.name, options.feedback), seed, tool.version)
                    )
                ]
                if not wanted or (rounds := _rounds(line, seed)) is None:
                    continue
                for tool, mistakes in rivals.mistakes(wanted, rounds, seed, feedback):
                    kept.add(line.runs(tool.name, options.feedback), tool.version, seed, mistakes)
                    _say(line, tool.name, seed, mistakes / rounds.counted)


def _rounds(line: Line, seed: int) -> Rounds | None:
    try:
        return line.load(seed)
    except FileNotFoundError as error:
        log.print(f"no data: {error}")
        return None


def _say(line: Line, tool: str, seed: int, error: float) -> None:
    what = f"{line.stream}, {line.change}" if line.change else line.stream
    log.print(f"seed {seed} {what}, {tool}: error {100 * error:.2f} %", soft_wrap=True)


# Both


@dataclass
class Errors:
    """Errors in percent on one line, seed by seed: of our learners, and of rivals.

    All are of as many seeds as each rival has, but for rivals that have none. `missing` says, of
    each rival, how many more seeds there should be.
    """

    line: Line
    n_classes: int
    ours: list[list[float]]
    constant: list[float]
    rivals: dict[str, list[float]]
    missing: dict[str, int]


def measured(
    kept: Kept,
    lines: Iterable[Line],
    tools: Sequence[rivals.Tool],
    options: argparse.Namespace,
    learners: Sequence[Callable[[int, int], Learner]],
) -> Iterator[Errors]:
    """Play our learners, each made from n_classes and a seed, and look up rivals, line by line."""
    feedback = FEEDBACK[options.feedback]
    for line in lines:
        most = min(options.seeds, *(tool.seeds for tool in tools))
        found = {
            tool.short: kept.errors(line.runs(tool.name, options.feedback), most) for tool in tools
        }
        n_seeds = min((len(errors) for errors in found.values() if errors), default=most)
        ours: list[list[float]] = [[] for _ in learners]
        constant, n_classes = [], 0
        for seed in range(n_seeds):
            rounds = _rounds(line, seed)
            if rounds is None:
                break
            n_classes = rounds.n_classes
            most_frequent = np.bincount(rounds.y[rounds.since :]).max()
            constant.append(100.0 - 100.0 * most_frequent / rounds.counted)
            for errors, new in zip(ours, learners, strict=True):
                learner = new(n_classes, seed)
                mistakes = our_mistakes(learner, rounds, seed, feedback)
                errors.append(100.0 * mistakes / rounds.counted)
                _say(line, type(learner).__name__, seed, mistakes / rounds.counted)
        else:
            theirs = {name: errors[:n_seeds] for name, errors in found.items()}
            missing = {name: most - len(errors) for name, errors in found.items()}
            yield Errors(line, n_classes, ours, constant, theirs, missing)


def say_what_is_missing(found: Sequence[Errors]) -> None:
    """Print which rivals have too few runs on which lines."""
    for errors in found:
        few = [f"{name} ({n})" for name, n in errors.missing.items() if n]
        if few:
            name = f"{errors.line.stream} {errors.line.change}".strip()
            out.print(f"Seeds missing on {name}: {', '.join(few)}. --missing makes these runs.")


def what_is_shown(options: argparse.Namespace) -> str:
    """Return what the figures of a table are, for its title."""
    when = f", feedback {options.feedback}" if options.feedback else ""
    return f"error %, mean ± sd of n seeds{when}"


PAGE = Path(__file__).parent.parent / "docs" / "comparison.md"


def write_page(command: str, options: argparse.Namespace) -> None:
    """Put all that was printed where the page has what this command prints.

    Of feedback that is not usual, the page has some streams only, and says which.
    """
    if options.feedback:
        command += f' --feedback "{options.feedback}" --streams {",".join(options.streams)}'
    text = PAGE.read_text()
    head, mark, rest = text.partition(f"<!-- Made by `{command} --write-page`. -->\n```\n")
    if not mark:
        raise ValueError(f"{PAGE} has no place for what {command} prints")
    lines = (line.rstrip() for line in out.export_text().splitlines())
    PAGE.write_text(head + mark + "\n".join(lines) + "\n```\n" + rest.partition("```\n")[2])


# Options


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that all comparisons have."""
    made = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    made.add_argument("--streams", metavar="A,B,...", help="only these streams")
    made.add_argument("--seeds", type=int, default=SEEDS, help="seeds 0, 1, ... (default 5)")
    made.add_argument("--learner", default="OneBitClassifier", help="any learner of onebit")
    made.add_argument(
        "--as-prepared",
        action="store_true",
        help="leave the rows, which are prepared, as they are: standardize=False",
    )
    made.add_argument(
        "--feedback", default="", choices=list(FEEDBACK), help="when bits come (default: at once)"
    )
    made.add_argument("--missing", action="store_true", help="make rivals' runs that are missing")
    made.add_argument("--fresh", action="store_true", help="make all of rivals' runs anew")
    made.add_argument(
        "--write-page", action="store_true", help=f"write the tables into docs/{PAGE.name}"
    )
    made.add_argument("--only-rivals", action="store_true", help="no runs of ours, and no tables")
    return made


def parsed(
    made: argparse.ArgumentParser, names: Sequence[str], arguments: Sequence[str] | None
) -> argparse.Namespace:
    """Return the options, with `streams` a list."""
    options = made.parse_args(arguments)
    chosen = list(names) if options.streams is None else options.streams.split(",")
    for name in chosen:
        if name not in names:
            made.error(f"no stream {name!r}: there are {', '.join(names)}")
    options.streams = chosen
    if not 1 <= options.seeds <= SEEDS:
        made.error(f"--seeds is 1 to {SEEDS}, as many as runs of rivals are kept of")
    try:
        options.learner = onebit.learners.named(options.learner).__name__
    except ValueError as error:
        made.error(str(error))
    return options


def chosen_learner(options: argparse.Namespace) -> Callable[[int, int], Learner]:
    """Return what makes the learner that the options name, from n_classes and a seed."""
    cls = getattr(onebit, options.learner)
    given = {"standardize": False} if options.as_prepared else {}
    return lambda n_classes, seed: cls(classes=np.arange(n_classes), random_state=seed, **given)
