"""onebit: OneBitClassifier beside Vowpal Wabbit, on stationary and on changing streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onebit.lab.kept import SEEDS, Kept, Runs
from onebit.lab.lines import MOVING_ROWS, NATURAL, NATURAL_ROWS, ROWS
from onebit.lab.measures import Online
from onebit.lab.papers.paper import Finding, Paper, Section, Sweep, is_there
from onebit.lab.verdicts import Verdict, counts, mean_and_sd, verdict
from onebit.learners import OneBitClassifier
from onebit.streams import CHANGES, SYNTHETIC, Asked

if TYPE_CHECKING:
    import pandas as pd

OURS = {"OneBitClassifier": OneBitClassifier()}

SMALL = 8_000
"""Most rows of the streams of the small scale."""

TOLD = "VW --oaa"
"""The one way to run Vowpal Wabbit in which it is told the label."""

TITLES = {
    "still": "Streams that stand still",
    **{change: f"Streams that move: {change}" for change in (*CHANGES, NATURAL)},
}


def _sweeps(scale: str) -> dict[str, Sweep]:
    """Return a sweep for each change and each first round of it, as only later rounds count."""
    most, seeds = (10**9, SEEDS) if scale == "full" else (SMALL, 2)

    def here(rows: dict[str, int]) -> dict[str, int]:
        return {
            name: n for name, n in rows.items()
            if n <= most and (name in SYNTHETIC or is_there(name))
        }  # fmt: skip

    wanted = {
        "still": Sweep(OURS, {}, _asked(here(ROWS)), list(range(seeds))),
        f"{NATURAL}": Sweep(
            OURS,
            {},
            _asked(here(NATURAL_ROWS), order="natural"),
            list(range(seeds)),
        ),
    }
    for change, found in CHANGES.items():
        for name, n in here(MOVING_ROWS).items():
            wanted[f"{change}, {name}"] = Sweep(
                OURS,
                {},
                _asked({name: n}, change=change),
                list(range(seeds)),
                Online(since=found.begins(n)),
            )
    return {part: sweep for part, sweep in wanted.items() if sweep.streams}


def _asked(rows: dict[str, int], **options: Any) -> dict[str, Asked]:
    return {name: Asked(name, n, **options) for name, n in rows.items()}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    kept, sections = Kept(), []
    counted = " Only rounds after the change are counted."
    for kind, title in TITLES.items():
        parts = [table for part, table in tables.items() if part.partition(", ")[0] == kind]
        if not parts:
            continue
        rows, verdicts = [], []
        for stream, runs in pd.concat(parts).groupby("stream", sort=False):
            ours = [100 * error for error in runs.sort_values("seed").error]
            theirs = _kept_of(kept, str(stream), kind, int(runs.rounds.iloc[0]))
            n = min([len(ours), *map(len, theirs.values())])
            ours, theirs = ours[:n], {name: errors[:n] for name, errors in theirs.items()}
            best = verdict(ours, theirs)
            rows.append([stream, len(ours), mean_and_sd(ours), *_cells(best)])
            if best:
                verdicts.append((str(stream), best))
        columns = ["stream", "seeds", "onebit", "best VW", "which", "ratio", "mistakes"]
        sections.append(
            Section(
                title,
                "Error in percent, mean and standard deviation over the seeds; of Vowpal Wabbit's "
                "seven ways to explore, that which is best on the stream in hindsight, from the "
                "runs that the repository keeps." + counted * (kind in CHANGES),
                tables={"error %": pd.DataFrame(rows, columns=columns)},
                findings=_found(verdicts),
            )
        )
    return sections


def _kept_of(kept: Kept, stream: str, kind: str, counted: int) -> dict[str, list[float]]:
    """Return the errors of each way to explore that has runs."""
    change = "" if kind == "still" else kind
    found = {
        runs.tool.removeprefix("VW "): kept.errors(runs, SEEDS)
        for runs in kept.mistakes
        if runs.tool.startswith("VW ")
        and runs.tool != TOLD
        and (runs.stream, runs.change, runs.feedback, runs.counted) == (stream, change, "", counted)
        and _is_whole(runs)
    }
    return {name: errors for name, errors in found.items() if errors}


def _is_whole(runs: Runs) -> bool:
    """Tell whether runs are of all rows, not only of the first ones of a stream."""
    if runs.change in CHANGES:
        return runs.rows == MOVING_ROWS.get(runs.stream)
    return runs.rows == (NATURAL_ROWS if runs.change else ROWS).get(runs.stream)


def _cells(best: Verdict | None) -> list[str]:
    if best is None:
        return ["", "", "", "no runs are kept"]
    return [mean_and_sd(best.theirs), best.which, f"{best.ratio:.2f}", best.says]


def _found(verdicts: list[tuple[str, Verdict]]) -> list[Finding]:
    if not verdicts:
        return []
    return [
        Finding(
            "OneBitClassifier makes fewer mistakes than the best of Vowpal Wabbit on each stream "
            "(a claim of ours).",
            all(best.says == "fewer" for _, best in verdicts),
            counts(verdicts, "the best of Vowpal Wabbit"),
        )
    ]


PAPER = Paper(
    "onebit",
    "OneBitClassifier and Vowpal Wabbit",
    "No paper: the comparison of docs/comparison.md.",
    [
        "There is no paper: what is claimed is ours.",
        "Where Vowpal Wabbit has runs of fewer seeds than onebit, the verdict is on those that "
        "both have.",
        "At the small scale: streams of at most 8,000 rows, 2 seeds.",
    ],
    _sweeps,
    _sections,
)
