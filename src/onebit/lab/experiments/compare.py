"""OneBitClassifier against Vowpal Wabbit and contextualbandits, on all named streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.lab.experiment import Experiment, Finding, Section, Sweep, is_there
from onebit.lab.feedback import FEEDBACK
from onebit.lab.measures import Online
from onebit.lab.tools import (
    ConstantLabel,
    ContextualbanditsLinUCB,
    ContextualbanditsTrees,
    VowpalWabbit,
)
from onebit.lab.verdicts import Verdict, counts, mean_and_sd, verdict
from onebit.learners import AROW, named
from onebit.streams import StreamSpec

if TYPE_CHECKING:
    import pandas as pd

ROWS = {
    "confidit-synthetic": 1_000,
    "vowel": 990,
    "dna": 3_186,
    "satimage": 6_435,
    "optdigits": 5_620,
    "reuters_r8": 7_674,
    "ag_news": 7_600,
    "amazon4": 8_000,
    "snips": 14_484,
    "letter": 20_000,
    "poker": 25_010,
    "rcv1": 23_428,
    "shuttle": 58_000,
    "connect4": 67_557,
    "banking77": 13_083,
    "fars": 100_968,
    "20newsgroups": 18_828,
    "fdu_mtl": 31_780,
    "clinc150": 22_500,
    "covtype": 581_012,
    "mnist": 70_000,
    "synsep": 1_000_000,
    "synnonsep": 1_000_000,
    "kddcup99": 494_020,
}
"""All named streams, the cheapest first, and how many rows each has."""

NARROW = (
    *("confidit-synthetic", "vowel", "dna", "satimage", "optdigits", "letter", "poker"),
    *("shuttle", "connect4", "fars", "covtype", "kddcup99"),
)
"""Streams of few features: of hundreds, a matrix for each label would be too large."""

FIRST_ROWS = 10_000
"""Rows that contextualbandits, which takes milliseconds for a round, is compared on."""

SMALL = 8_000
"""Maximum number of rows of the streams of the small scale."""

SEEDS, FEW_SEEDS = 5, 2
"""At the full scale, and at the small one and of contextualbandits."""

MUCH_BETTER = 0.85
"""A ratio of errors that is more than luck."""


def _vw(exploration: str) -> VowpalWabbit:
    return VowpalWabbit(exploration, standardize=False)


WAYS = {
    "bag": _vw("--bag 5"),
    "bag legacy": _vw("--bag 5 --cb_force_legacy"),
    "squarecb": _vw("--squarecb"),
    "epsilon": _vw("--epsilon 0.02"),
    "epsilon dm": _vw("--epsilon 0.02 --cb_force_legacy --cb_type dm"),
    "softmax": _vw("--cb_explore_adf --softmax --lambda 10"),
    "regcb": _vw("--cb_explore_adf --regcb"),
}
"""Vowpal Wabbit's ways to explore, on the rows as they are prepared."""

CONSTANT, AROW_TOLD, VW_TOLD = "constant", "AROW, told", "VW --oaa, told"

ENDS = {AROW_TOLD: AROW(), VW_TOLD: VowpalWabbit(standardize=False, reduction="--oaa")}
"""Told every label: the other end of the scale, not rivals."""

CONTEXTUALBANDITS = {
    "LinUCB 1": ContextualbanditsLinUCB(1.0, standardize=False, first_seed=1),
    "LinUCB 0.1": ContextualbanditsLinUCB(0.1, standardize=False, first_seed=1),
    "trees": ContextualbanditsTrees(standardize=False, first_seed=1),
}

OURS = "onebit"
"""The name of our learner in tables."""


def of_scale(rows: Mapping[str, int], scale: str, **options: Any) -> dict[str, StreamSpec]:
    """Return the streams that exist here and belong to a scale."""
    most = max(rows.values()) if scale == "full" else SMALL
    return {n: StreamSpec(n, k, **options) for n, k in rows.items() if k <= most and is_there(n)}


def seeds_of(scale: str) -> list[int]:
    """Return the seeds of a scale."""
    return list(range(SEEDS if scale == "full" else FEW_SEEDS))


def measure_of(feedback: str, change: str = "") -> Online:
    """Return what is counted, with a kind of feedback that has a name."""
    if feedback not in FEEDBACK:
        known = ", ".join(repr(name) for name in FEEDBACK if name)
        raise ValueError(f"no feedback {feedback!r}: there are {known}; by default, at once")
    return Online(change=change, feedback=FEEDBACK[feedback])


def _sweeps(
    scale: str, *, learner: str = "OneBitClassifier", feedback: str = ""
) -> dict[str, Sweep]:
    """Return all rows of each stream, and the first rows, which contextualbandits plays too."""
    ours, seeds = {OURS: named(learner)()}, seeds_of(scale)
    streams, measure = of_scale(ROWS, scale), measure_of(feedback)
    if not measure.feedback.is_immediate:
        tools = {**ours, **WAYS, CONSTANT: ConstantLabel()}
        return {"all rows": Sweep(tools, {}, streams, seeds, measure)}
    first = {n: StreamSpec(n, min(ROWS[n], FIRST_ROWS)) for n in NARROW if n in streams}
    return {
        "all rows": Sweep({**ours, **WAYS, CONSTANT: ConstantLabel(), **ENDS}, {}, streams, seeds),
        "first rows": Sweep({**ours, **CONTEXTUALBANDITS}, {}, first, seeds[:FEW_SEEDS]),
    }


def errors_of(runs: pd.DataFrame) -> dict[str, list[float]]:
    """Return the errors of each tool on one stream, in percent, of the seeds that all have."""
    by_tool = {name: some.set_index("seed").error for name, some in runs.groupby("learner")}
    common = sorted(set.intersection(*(set(errors.index) for errors in by_tool.values())))
    return {name: (100 * errors[common]).tolist() for name, errors in by_tool.items()}


def judged(
    errors: Mapping[str, list[float]], rivals: Iterable[str]
) -> tuple[list[str], Verdict | None]:
    """Return the cells of a row that show the best rival, and the verdict."""
    best = verdict(errors[OURS], {name: errors[name] for name in rivals if name in errors})
    if best is None:
        return ["", "", "", "no runs"], None
    return [mean_and_sd(best.theirs), best.which, f"{best.ratio:.2f}", best.says], best


def claim(
    verdicts: Sequence[tuple[str, Verdict]], rivals: str, much_better: str = ""
) -> list[Finding]:
    """Return whether we make fewer mistakes than the best of some rivals everywhere."""
    if not verdicts:
        return []
    return [
        Finding(
            f"OneBitClassifier makes fewer mistakes than {rivals} on each stream "
            "(a claim of ours).",
            all(best.says == "fewer" for _, best in verdicts),
            f"{counts(verdicts, rivals)} {much_better}".strip(),
        )
    ]


def shown_rows(n: int) -> str:
    """Return a number of rows, in short."""
    if n < 100_000:
        return f"{n:,}"
    return f"{n / 1_000:.0f}k" if n < 1_000_000 else f"{n / 1_000_000:g}M"


TEXT = (
    "Error in percent, mean and standard deviation over n seeds. The best rival is the one with "
    "the least mean error on that stream, in hindsight. A tie is a difference within one standard "
    "error, seed by seed."
)


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    rows, verdicts, ends, ratios = [], [], [], []
    for stream, runs in tables["all rows"].groupby("stream", sort=False):
        errors = errors_of(runs)
        cells, best = judged(errors, [*WAYS, CONSTANT])
        sizes = runs[runs.learner == CONSTANT].iloc[0]
        sizes = [shown_rows(int(sizes.rounds)), int(sizes.n_classes), len(errors[OURS])]
        rows.append([stream, *sizes, mean_and_sd(errors[OURS]), *cells])
        shown = (CONSTANT, OURS, *ENDS)
        ends.append([stream, *(mean_and_sd(errors.get(name, [])) for name in shown)])
        if best is not None:
            verdicts.append((str(stream), best))
        if (of_vw := judged(errors, WAYS)[1]) is not None:
            ratios.append(of_vw.ratio)
    few = sum(ratio <= MUCH_BETTER for ratio in ratios)
    columns = ["stream", "rows", "K", "n", OURS, "best rival", "which", "ratio", "mistakes"]
    sections = [
        Section(
            "All rows",
            TEXT,
            tables={"error %": pd.DataFrame(rows, columns=columns)},
            findings=claim(
                verdicts,
                "the best rival",
                f"At most {MUCH_BETTER:g} times the error of the best of Vowpal Wabbit on {few} of "
                f"{len(ratios)}.",
            ),
        )
    ]
    if set(ENDS) & set(tables["all rows"].learner):
        columns = ["stream", CONSTANT, OURS, *ENDS]
        sections.append(
            Section(
                "The ends of the scale",
                "Error in percent of the best constant label, and of tools told every label.",
                tables={"error %": pd.DataFrame(ends, columns=columns)},
            )
        )
    if "first rows" in tables:
        sections.append(_first_rows(tables["first rows"]))
    return sections


def _first_rows(table: pd.DataFrame) -> Section:
    import pandas as pd

    rows, verdicts = [], []
    for stream, runs in table.groupby("stream", sort=False):
        errors = errors_of(runs)
        (*_, ratio, says), best = judged(errors, CONTEXTUALBANDITS)
        shown = (errors.get(name) for name in (OURS, *CONTEXTUALBANDITS))
        means = (f"{np.mean(some):.2f}" if some else "" for some in shown)
        n = f"{int(runs.rounds.iloc[0]):,}"
        rows.append([stream, n, len(errors[OURS]), *means, ratio, says])
        if best is not None:
            verdicts.append((str(stream), best))
    columns = ["stream", "rows", "n", OURS, *CONTEXTUALBANDITS, "ratio", "mistakes"]
    return Section(
        "The first rows, and contextualbandits",
        "Mean error in percent over n seeds.",
        tables={"error %": pd.DataFrame(rows, columns=columns)},
        findings=claim(verdicts, "the best of contextualbandits"),
    )


EXPERIMENT = Experiment(
    "compare",
    "OneBitClassifier and other tools",
    "No paper: the comparison of docs/comparison.md.",
    [
        "All tools get the same rows, prepared as onebit.streams.load says.",
        "--learner plays any learner in the place of OneBitClassifier; --feedback lets bits come "
        "late, or in a share of the rounds.",
        f"At the small scale: streams of at most {SMALL:,} rows, {FEW_SEEDS} seeds.",
    ],
    _sweeps,
    _sections,
)
