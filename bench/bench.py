"""How fast onebit is, beside other tools, on the same rounds of one machine in one run.

Run it with ``make bench``. Times of onebit are those of compiled code: what the first run of a
process takes to compile it, or to load it from the cache on disk, is in the JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

import ours
import rivals
from measuring import EARLY, Measured, machine
from onebit import SOBA, Banditron, streams
from onebit.numerics.second_order import PENDING
from onebit.streams.synthetic import N_CLASSES

FULL_SIZE = 1_000_000
_REFERENCE = f"VW {rivals.VOWPAL_WABBIT[0]}"
_RANK_ONE = next(iter(rivals.RANK_ONE))

out = Console(width=80, highlight=False)
log = Console(stderr=True, style="dim", highlight=False)


@dataclass(frozen=True)
class Size:
    """How much to measure.

    Updates of the inverse come in multiples of `PENDING`: fewer would leave out the rewriting of
    the matrix, which is most of their cost.
    """

    rounds: int
    early: int = EARLY
    full_rounds: int = 2_000
    inverse_updates: int = 2 * PENDING
    online_rounds: int = 1_000
    repeats: int = 5
    online_repeats: int = 10


@dataclass(frozen=True)
class Figure:
    """A number, the range it had over the runs, and whether other processes disturbed them."""

    value: float
    low: float
    high: float
    disturbed: bool


@dataclass(frozen=True)
class Target:
    """What a figure should be at least or at most."""

    words: str
    unit: str
    figure: Figure
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def verdict(self) -> str:
        """``met``, ``not met``, or ``unsure`` if the figure proves nothing."""
        if self.figure.disturbed:
            return "unsure"
        return "met" if self.at_least <= self.figure.value <= self.at_most else "not met"

    @property
    def bound(self) -> str:
        """For example ``at least 8 x``."""
        if self.at_most == math.inf:
            return f"at least {self.at_least:g} {self.unit}"
        return f"at most {self.at_most:g} {self.unit}"


def _ratio(over: Measured, under: Measured) -> Figure:
    """Return the ratio of the times of two fastest runs, with its range over all pairs of runs."""
    return Figure(
        over.microseconds / under.microseconds,
        over.microseconds / under.slowest_microseconds,
        over.slowest_microseconds / under.microseconds,
        over.disturbed or under.disturbed,
    )


def _time(result: Measured) -> Figure:
    """Return the time of a round in the fastest run, with its range over all runs."""
    fastest = result.microseconds
    return Figure(fastest, fastest, result.slowest_microseconds, result.disturbed)


Section = tuple[list[Measured], list[Target]]


def stream(size: Size) -> Section:
    """Whole runs over SynSep."""
    log.print(f"making {size.rounds:,} rounds of SynSep")
    X, y = streams.synsep(size.rounds)
    results = []
    log.print("score pass")
    results.append(ours.score_pass(X, N_CLASSES, size.repeats))
    for form in ours.forms(full_covariance=False):
        log.print(form.name)
        results.append(ours.stream(form, X, y, N_CLASSES, size.repeats))
    with tempfile.TemporaryDirectory() as folder:
        log.print("writing Vowpal Wabbit's cache")
        cache = rivals.write_vw_cache(Path(folder), X, y, N_CLASSES)
        for exploration in rivals.VOWPAL_WABBIT:
            log.print(f"VW {exploration}")
            results.append(
                rivals.vowpal_wabbit(exploration, cache, N_CLASSES, size.rounds, size.repeats)
            )
    few, labels = X[: size.early], y[: size.early]
    dense = few.toarray()
    log.print("River")
    results.append(rivals.river(few, labels, N_CLASSES, size.repeats))
    log.print("NumPy")
    results.append(
        rivals.numpy_banditron(dense, labels, N_CLASSES, Banditron().gamma, size.repeats)
    )

    tools = {result.tool: result for result in results}
    vw, scoring, soba = tools[_REFERENCE], tools["score pass"], tools["SOBA"]
    _show_stream(results, vw, scoring)
    linear = [f.name for f in ours.forms(full_covariance=False) if f.linear_cost]
    slowest = max((tools[name] for name in linear), key=lambda result: result.microseconds)
    return results, [
        Target("SOBA diagonal: speed of VW epsilon", "x", _ratio(vw, soba), at_least=8.0),
        Target(
            "Banditron: speed of VW epsilon", "x", _ratio(vw, tools["Banditron"]), at_least=10.0
        ),
        Target("SOBA diagonal: time of a score pass", "x", _ratio(soba, scoring), at_most=4.0),
        Target(f"{slowest.tool}: of a score pass", "x", _ratio(slowest, scoring), at_most=6.0),
    ]


def online(size: Size) -> Section:
    """Single rounds from Python."""
    X, y = streams.synsep(size.online_rounds)
    results = []
    for form in ours.forms(full_covariance=False):
        if form.linear_cost:
            log.print(f"{form.name}, decide and learn")
            results.append(ours.online(form, X, y, N_CLASSES, size.online_repeats))
    table = _table("decide + learn, a sparse row", "µs together")
    for result in results:
        table.add_row(result.tool, f"{result.microseconds:.2f}")
    out.print(table)
    slowest = max(results, key=lambda result: result.microseconds)
    target = Target(f"decide + learn: {slowest.tool}", "µs", _time(slowest), at_most=10.0)
    return results, [target]


def records(size: Size) -> Section:
    """Single records from Python, made into examples."""
    log.print("Records")
    result = ours.records(size.online_rounds, size.online_repeats)
    table = _table("encode a record", "µs")
    table.add_row(result.tool, f"{result.microseconds:.1f}")
    out.print(table)
    return [result], [Target("encode a record", "µs", _time(result), at_most=40.0)]


def full(size: Size) -> Section:
    """Full covariance: SOBA's own rounds, and updates of its matrix alone.

    SOBA updates in few of these rounds, and computes A^{-1} z in every round whose label was
    right; only the second measurement shows what an update costs.
    """
    X, y = streams.synsep(size.full_rounds)
    results = []
    for form in ours.forms(full_covariance=True):
        log.print(form.name)
        results.append(ours.stream(form, X, y, N_CLASSES, size.repeats))
    gamma, a, dense = float(SOBA().gamma), SOBA().a, X.toarray()
    for tool in rivals.RANK_ONE:
        log.print(f"SOBA in {tool}")
        results.append(rivals.numpy_soba(tool, dense, y, N_CLASSES, gamma, a, size.repeats))
    tools = {result.tool: result for result in results}
    weights = X.shape[1] * N_CLASSES
    table = _table(
        f"Full covariance, {weights:,} weights, {size.full_rounds:,} rounds",
        "rounds/s",
        "x NumPy",
        "rounds\nright",
        "ms each",
        "updates",
        "error %",
    )
    for result in results:
        right = round(result.rounds * (1 - (result.error or 0.0)))
        table.add_row(
            result.tool,
            f"{1e6 / result.microseconds:,.0f}",
            f"{tools[_RANK_ONE].microseconds / result.microseconds:.1f}",
            f"{right:,}",
            f"{result.microseconds * result.rounds / 1e3 / max(right, 1):.2f}",
            f"{result.updates:,}",
            _percent(result.error),
        )
    out.print(table)

    log.print("updates of the inverse")
    X = X[: size.inverse_updates]
    updates = [ours.inverse_updates(X, N_CLASSES, size.repeats)]
    updates += [
        rivals.numpy_inverse_updates(tool, X.toarray(), N_CLASSES, size.repeats)
        for tool in rivals.RANK_ONE
    ]
    updaters = {result.tool: result for result, _ in updates}
    table = _table(f"{X.shape[0]} updates of the inverse alone", "ms an update", "x NumPy")
    for result, total in updates:
        if not math.isclose(total, updates[0][1], rel_tol=1e-6):
            raise RuntimeError(
                f"{result.tool} and {updates[0][0].tool} computed different inverses"
            )
        ratio = updaters[_RANK_ONE].microseconds / result.microseconds
        table.add_row(result.tool, f"{result.microseconds / 1e3:.2f}", f"{ratio:.1f}")
    out.print(table)
    rounds = _ratio(tools[_RANK_ONE], tools["SOBA covariance=full"])
    alone = _ratio(updaters[_RANK_ONE], updaters["onebit"])
    return [*results, *updaters.values()], [
        Target("Full SOBA: rounds/s of NumPy", "x", rounds, at_least=8.0),
        Target("Full SOBA: updates/s of NumPy", "x", alone, at_least=8.0),
    ]


SECTIONS = {"stream": stream, "online": online, "records": records, "full": full}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show and write; return 1 if at full size a target is not shown to be met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=FULL_SIZE, help="rounds of SynSep")
    parser.add_argument("--json", type=Path, default=Path("bench-results.json"), metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="a small run, to check that it works")
    parser.add_argument("--only", choices=SECTIONS, help="run one section")
    options = parser.parse_args(arguments)
    size = Size(options.rounds, early=min(EARLY, options.rounds))
    if options.quick:
        size = Size(
            min(options.rounds, 20_000),
            early=2_000,
            full_rounds=200,
            inverse_updates=PENDING,
            online_rounds=200,
            repeats=1,
        )

    where = machine()
    out.print(f"{where['cpu']}, {where['cores']} cores")
    out.print(f"Python {where['python']}, Numba {where['numba']}, NumPy {where['numpy']}, "
              f"VW {where['vowpalwabbit']}, River {where['river']}, {where['date']}")  # fmt: skip
    results: dict[str, list[Measured]] = {}
    targets: list[Target] = []
    for name, section in SECTIONS.items():
        if options.only in (None, name):
            results[name], reached = section(size)
            targets += reached
    _show_targets(targets)
    record = {
        "machine": where,
        "size": asdict(size),
        "sections": {
            name: [{**asdict(result), "microseconds": result.microseconds} for result in section]
            for name, section in results.items()
        },
        "targets": [
            {
                "words": target.words,
                "bound": target.bound,
                **asdict(target.figure),
                "verdict": target.verdict,
            }
            for target in targets
        ],
    }
    options.json.write_text(json.dumps(record, indent=2) + "\n")
    log.print(f"written to {options.json}")
    full_size = not options.quick and options.rounds >= FULL_SIZE
    return int(full_size and any(target.verdict != "met" for target in targets))


def _show_stream(results: list[Measured], vw: Measured, scoring: Measured) -> None:
    table = _table(
        "SynSep",
        "rounds",
        "µs a\nround",
        "error\n%",
        "first\n20k, %",
        "x VW\nspeed",
        "x score\npass",
    )
    for result in results:
        table.add_row(
            result.tool,
            f"{result.rounds:,}",
            f"{result.microseconds:.3g}",
            _percent(result.error),
            _percent(result.early_error),
            f"{vw.microseconds / result.microseconds:.3g}",
            f"{result.microseconds / scoring.microseconds:.3g}",
        )
    out.print(table)
    out.print(
        "onebit: a warm play(), input checks included, compiling excluded. VW: --cbify\n"
        f"from its binary cache, reading included. x VW is against {_REFERENCE}."
    )
    compiled = [r.first_run_seconds for r in results if r.first_run_seconds is not None]
    out.print(f"First runs, compiling or loading compiled code: up to {max(compiled):.1f} s each.")


def _show_targets(targets: list[Target]) -> None:
    table = _table("Targets", "measured", "range", "target", "")
    for target in targets:
        figure = target.figure
        table.add_row(
            target.words,
            f"{figure.value:.1f}",
            f"{figure.low:.1f}-{figure.high:.1f}",
            target.bound,
            target.verdict,
        )
    out.print(table)
    if any(target.figure.disturbed for target in targets):
        out.print("unsure: other processes kept the machine busy. Run it on an idle one.")


def _table(title: str, *columns: str) -> Table:
    table = Table("", title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


if __name__ == "__main__":
    sys.exit(main())
