"""Bietti, Agarwal and Langford (2021): many small tables, every row a round, one bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.lab.experiment import Experiment, Finding, Section, Sweep, one_picture
from onebit.lab.experiments.bakeoff_pictures import draw_matrix, draw_ratios, draw_scatter
from onebit.lab.measures import OnlineStandardized
from onebit.lab.pictures import draw_panels
from onebit.lab.significance import significance, z_statistic
from onebit.lab.tools import (
    BayesianBandits,
    BoostedTrees,
    ConstantLabel,
    ContextualbanditsLinUCB,
    ContextualbanditsTrees,
    NearestNeighbours,
    RandomForest,
    SupportVectors,
    ToldEveryLabel,
    VowpalWabbit,
)
from onebit.learners import AROW, LinTS, LinUCB, OneBitClassifier
from onebit.streams import StreamSpec, from_file
from onebit.streams.formats import FORMATS
from onebit.streams.lines import format_of
from onebit.streams.named import VARIABLE

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = 10_000
"""Maximum number of rows of a table that are played."""

SMALL = 2_000
"""Maximum number of rows of the tables of the small scale."""

SEED = 7_000
"""Of the one order in which the rows are played, and of all tools."""

RATES = [0.05, 0.15, 0.5, 1.5, 5.0]
"""Learning rates of Vowpal Wabbit, around its default of 0.5.

On 46 tables the best for each way is 0.5 or 1.5, so that more at either end would not help it.
"""

EXPLORATION = {
    "epsilon 0.02": "--epsilon 0.02",
    "greedy, mtr": "--epsilon 0 --cb_type mtr",
    "bag 5": "--bag 5",
    "bag 5, greedify": "--bag 5 --greedify",
    "cover 8, nounif": "--cover 8 --nounif",
    "regcb": "--cb_explore_adf --regcb",
    "regcbopt": "--cb_explore_adf --regcbopt",
    "squarecb": "--squarecb",
}

PRODUCTS = "-q ::"

WITH_PRODUCTS = ("greedy, mtr", "regcbopt", "squarecb")

LINEAR = {f"VW {name}": VowpalWabbit(options) for name, options in EXPLORATION.items()}

QUADRATIC = {
    f"VW {name} {PRODUCTS}": VowpalWabbit(EXPLORATION[name], PRODUCTS) for name in WITH_PRODUCTS
}

CONSTANT = "the constant label"
TREES = "boosted trees, told"
AROW_TOLD = "AROW, told"

TOOLS = {
    CONSTANT: ConstantLabel(),
    "contextualbandits LinUCB": ContextualbanditsLinUCB(),
    "contextualbandits trees": ContextualbanditsTrees(),
    TREES: BoostedTrees(),
    "random forest, told": RandomForest(),
    "support vectors, told": SupportVectors(),
    "nearest neighbours, told": NearestNeighbours(),
}

NARROW = {**QUADRATIC, "bayesianbandits": BayesianBandits()}
"""Tools whose round takes time quadratic or cubic in the columns: of narrow tables only."""

MOST_OF_NARROW = 300
"""Maximum columns of a narrow table: with more, a round of these tools takes tenths of a second."""

MOST_COLUMNS = 2_000
"""Maximum number of columns of any table: LinUCB has a matrix of their square for each label."""

OUR_LINEAR = {"onebit LinUCB": LinUCB(), "onebit LinTS": LinTS(v=1.0), AROW_TOLD: AROW()}

OURS = "OneBitClassifier"

TOLD = (AROW_TOLD, *(name for name, tool in TOOLS.items() if isinstance(tool, ToldEveryLabel)))
"""Told every label: the other end of the scale, not rivals."""

BEST_TOLD = "the best told"

SCATTERED = ("contextualbandits LinUCB", "contextualbandits trees", CONSTANT, TREES)
"""Beside which a picture shows our errors, after the best ways of Vowpal Wabbit."""


SHOWN = ("table", "rows", "columns", "K", "constant", "onebit", "best VW, linear",
         "against VW, linear", "best VW -q ::", "against VW -q ::", "contextualbandits trees",
         "boosted trees, told")  # fmt: skip
"""Columns of the table of every data set that pages show; others are in a second table."""

REASONS = {
    "GAMETES_Epistasis_2_Way_20atts_0.4H_EDM_1_1": "simulated genes: a pair of columns decides, "
    "and neither of them alone tells anything",
    "GAMETES_Epistasis_3_Way_20atts_0.2H_EDM_1_1": "the same with three columns",
    "GAMETES_Heterogeneity_20atts_1600_Het_0.4_0.2_50_EDM_2_001": "the same with a pair for half "
    "of the rows, and another pair for the other half",
    "Hill_Valley_without_noise": "100 points of a curve, all of nearly the same height: what "
    "counts are small differences of neighbours, directions of tiny variance",
    "adult": "products of columns tell a little more than the columns",
    "allhypo": "a diagnosis follows from hormones above or below limits",
    "car_evaluation": "a rule of and/or over categories",
    "clean1": "not known",
    "magic": "a curved boundary",
    "monk1": "the label is 1 if two columns are equal, or a third is 1",
    "monk2": "the label is 1 if exactly two of six columns are 1",
    "nursery": "a rule of and/or over categories that are coded as integers",
    "parity5+5": "the parity of five of ten bits, which only trees can see; the others guess",
    "phoneme": "a curved boundary",
    "ring": "two Gaussians of different variance: the label depends on squares",
    "splice": "letters that are coded as integers, as if they had an order",
    "wine_quality_red": "not known",
}
"""What decides the label in a table, where it is known."""


def data_folder() -> Path | None:
    """Return the folder of tables among the data, if it is there."""
    data = os.environ.get(VARIABLE)
    folder = None if data is None else Path(data, "bakeoff")
    return folder if folder is not None and folder.is_dir() else None


def _sweeps(scale: str, *, tables: str = "") -> dict[str, Sweep]:
    folder = Path(tables) if tables else data_folder()
    if folder is None:
        return {}
    streams, narrow = table_streams(folder, SMALL if scale == "small" else None)
    seeds = [SEED]
    wanted = {
        "onebit": Sweep({OURS: OneBitClassifier()}, {}, streams, seeds),
        "linear": Sweep(OUR_LINEAR, {}, streams, seeds, OnlineStandardized()),
        "vw": Sweep(LINEAR, {"learning_rate": RATES}, streams, seeds),
        "narrow": Sweep(NARROW, {"learning_rate": RATES}, narrow, seeds),
        "tools": Sweep(TOOLS, {}, streams, seeds),
    }
    return {part: sweep for part, sweep in wanted.items() if sweep.streams}


def table_streams(
    folder: Path, most: int | None
) -> tuple[dict[str, StreamSpec], dict[str, StreamSpec]]:
    """Return the tables in a folder, in the order of their names, and the narrow ones of these."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder")
    streams, narrow = {}, {}
    for path in sorted(path for path in folder.iterdir() if format_of(path) in FORMATS):
        table = from_file(path)
        if most is not None and table.n_examples > most:
            continue
        if table.n_features > MOST_COLUMNS:
            raise ValueError(
                f"{path}: a table has at most {MOST_COLUMNS:,} columns of numbers; here are "
                f"{table.n_features:,} (texts and categories are hashed)"
            )
        name = path.name.removesuffix("".join(path.suffixes[-1:]))
        name = name.removesuffix(format_of(path))
        streams[name] = StreamSpec(str(path), ROUNDS, shuffle=True)
        if table.n_features <= MOST_OF_NARROW:
            narrow[name] = streams[name]
    if not streams:
        limit = "" if most is None else f" of at most {most:,} rows"
        raise ValueError(f"{folder} has no table{limit}: a file that ends in {', '.join(FORMATS)}")
    return streams, narrow


class Results:
    """Mistakes of all tools on all tables; Vowpal Wabbit with one learning rate for each way.

    The learning rate is the one with the least mean logarithm of the error over all tables, in
    hindsight: the best for Vowpal Wabbit in the measure that the report shows.

    Attributes
    ----------
    tables : DataFrame
        rounds, n_features and n_classes of each table.
    mistakes : DataFrame
        A row for each table, a column for each tool; NaN where a tool did not play.
    rates : dict {tool: learning rate}
    microseconds : Series
        Time of a round of OneBitClassifier on each table.
    """

    def __init__(self, parts: dict[str, pd.DataFrame]) -> None:
        import pandas as pd

        constant = parts["tools"].query("learner == @CONSTANT").set_index("stream")
        self.tables = constant[["rounds", "n_features", "n_classes"]].astype(int)
        ours = parts["onebit"].set_index("stream")
        self.microseconds = 1e6 * ours.seconds / ours.rounds
        shown = ["stream", "learner", "mistakes", "rounds", "learning_rate"]
        runs = pd.concat([part.reindex(columns=shown) for part in parts.values()])
        vw = runs[runs.learning_rate.notna()]
        logs = np.log(_positive(vw.mistakes) / vw.rounds)
        means = logs.groupby([vw.learner, vw.learning_rate]).mean()
        self.rates = {name: means[name].idxmin() for name in dict.fromkeys(vw.learner)}
        rates = runs.learner.map(self.rates)
        chosen = runs[runs.learning_rate.isna() | (runs.learning_rate == rates)]
        order = [name for name in (OURS, *LINEAR, *NARROW, *TOOLS, *OUR_LINEAR)
                 if name in set(chosen.learner)]  # fmt: skip
        wide = chosen.pivot(index="stream", columns="learner", values="mistakes")
        self.mistakes = wide.loc[self.tables.index, order]

    @property
    def tools(self) -> list[str]:
        """All tools but ours."""
        return [name for name in self.mistakes if name != OURS]

    @property
    def errors(self) -> pd.DataFrame:
        """Errors in percent."""
        return 100 * self.mistakes.div(self.tables.rounds, axis=0)

    def played(self, *names: str) -> tuple[Any, ...]:
        """Return rounds and the mistakes of some tools, on the tables that all of them played."""
        some = self.mistakes[list(names)].dropna()
        return (self.tables.rounds[some.index], *(some[name] for name in names))

    def wins_and_losses(self, a: str, b: str) -> tuple[int, int]:
        """Return on how many tables tool `a` wins and loses significantly against `b`."""
        rounds, ours, theirs = self.played(a, b)
        found = significance(ours, theirs, rounds)
        return int(np.sum(found > 0)), int(np.sum(found < 0))

    def log_ratio(self, a: str, b: str) -> float:
        """Return the mean over the tables of log(error of a / error of b)."""
        _, ours, theirs = self.played(a, b)
        return float(np.log(_positive(ours) / _positive(theirs)).mean())

    def with_best(self) -> Results:
        """Return results with the best way of Vowpal Wabbit on each table, as if it were a tool."""
        found = copy(self)
        best = {f"the best {title}": self.of_best(names) for title, names in self.ways.items()}
        found.mistakes = self.mistakes.assign(**best)
        return found

    @property
    def ways(self) -> dict[str, list[str]]:
        """The ways of Vowpal Wabbit that have results, linear and with products."""
        groups = {"VW, linear": LINEAR, f"VW {PRODUCTS}": QUADRATIC}
        known = {title: [n for n in some if n in self.mistakes] for title, some in groups.items()}
        return {title: names for title, names in known.items() if names}

    def best(self, names: list[str]) -> pd.Series:
        """Return which of some tools has the lowest error on each table, in hindsight."""
        found = self.mistakes[names].dropna(how="all").idxmin(axis=1)
        return found.reindex(self.mistakes.index, fill_value="")

    def of_best(self, names: list[str]) -> pd.Series:
        """Return the mistakes of the best of some tools on each table."""
        return self.mistakes[names].min(axis=1)


def _positive(mistakes: Any) -> Any:
    """Return mistakes, at least one: the logarithm of none says too much."""
    return np.maximum(mistakes, 1)


def _sections(parts: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    results = Results(parts)
    missing = [name for name in (*LINEAR, *NARROW, *TOOLS) if name not in results.mistakes]
    absent = f" Not installed, and without kept results: {', '.join(missing)}." if missing else ""
    wide = results.tables.index[results.tables.n_features > MOST_OF_NARROW]
    if len(wide):
        absent += (
            f" More than {MOST_OF_NARROW} columns, and so without {', '.join(NARROW)}: "
            f"{', '.join(wide)}."
        )
    every = _every_table(results)
    return [
        Section(
            "Wins and losses",
            f"{len(results.tables)} tables. A win is a significant one (Z-test, one-sided, "
            "5 %); the ratio is error of OneBitClassifier / error of the tool. Each "
            "way of Vowpal Wabbit has one learning rate for all tables, chosen in hindsight from "
            f"{', '.join(f'{rate:g}' for rate in RATES)}, and columns standardised in hindsight; "
            "so have the other tools; the best way is chosen for each table in hindsight. "
            "OneBitClassifier gets the columns as they are, and has its "
            "default parameters." + absent,
            tables={"tools": _summary(results)},
            findings=_findings(results),
        ),
        Section(
            "What can be had at all",
            "The mean log ratio of each tool, in place of OneBitClassifier, against the ways of "
            "Vowpal Wabbit: the least and the largest. Tools told every label know more than one "
            "bit can say; the best of them on each table is chosen in hindsight.",
            tables={"mean log ratios": _told_ratios(results)},
        ),
        Section(
            "All tools against each other",
            "Significant wins minus losses of the tool in the row against that in the column.",
            figures={"matrix": one_picture(partial(draw_matrix, differences=_matrix(results)))},
            tables={"wins minus losses": _matrix(results).reset_index(names="tool")},
            wide=True,
            only=(),
        ),
        Section(
            "Errors, tool against tool",
            "Each point is a table. Below the diagonal, OneBitClassifier makes fewer mistakes; "
            "filled points are significant.",
            figures={"scatter": draw_panels(_scatters(results), "")},
            wide=True,
        ),
        Section(
            "By size",
            "Error of OneBitClassifier over that of the best way of Vowpal Wabbit on each table, "
            "in hindsight, against rows, labels and columns.",
            figures={"ratios": draw_panels([_ratios(results)], "")},
            wide=True,
        ),
        Section(
            "Every table",
            "Error in percent. Of Vowpal Wabbit, the best way on each table, in hindsight.",
            tables={
                "error %": every[[name for name in SHOWN if name in every]],
                "more tools": every[[name for name in every if name not in SHOWN[1:]]],
                "microseconds of a round of OneBitClassifier, beside what else the machine did": (
                    results.microseconds.agg(["mean", "max", "idxmax"]).to_frame().T
                ),
            },
            wide=True,
            only=("error %",),
        ),
        Section(
            "Losses",
            "Every table and tool told one bit where OneBitClassifier loses significantly, with "
            "the difference in standard errors, and what decides the label, where it is known.",
            tables={"losses": _losses(results)},
        ),
    ]


def _summary(results: Results) -> pd.DataFrame:
    import pandas as pd

    rows, results = [], results.with_best()
    for name in results.tools:
        wins, losses = results.wins_and_losses(OURS, name)
        error = results.errors[name]
        rows.append(
            {
                "tool": name,
                "learning rate": results.rates.get(name),
                "tables": int(error.notna().sum()),
                "wins": str(wins),
                "losses": str(losses),
                "mean log ratio": f"{results.log_ratio(OURS, name):+.2f}",
                "mean error %": f"{error.mean():.1f}",
            }
        )
    ours = {"tool": OURS, "tables": len(results.tables)}
    ours["mean error %"] = f"{results.errors[OURS].mean():.1f}"
    return pd.DataFrame([*rows, ours]).astype(object)


def _told_ratios(results: Results) -> pd.DataFrame:
    import pandas as pd

    told = [name for name in TOLD if name in results.mistakes]
    found = copy(results)
    found.mistakes = results.mistakes.assign(**{BEST_TOLD: results.of_best(told)})
    rows = []
    for tool in (OURS, *told, BEST_TOLD):
        row: dict[str, Any] = {"tool": tool}
        for title, names in results.ways.items():
            ratios = [found.log_ratio(tool, name) for name in names]
            row[f"against {title}"] = f"{max(ratios):+.2f} to {min(ratios):+.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


def _matrix(results: Results) -> pd.DataFrame:
    """Return wins minus losses of each tool against each other, the best first."""
    import pandas as pd

    names = list(results.mistakes)
    found = {
        a: {b: int(np.subtract(*results.wins_and_losses(a, b))) for b in names if b != a}
        for a in names
    }
    made = pd.DataFrame(found).T.reindex(index=names, columns=names)
    order = made.mean(axis=1).sort_values(ascending=False, kind="stable").index
    return made.loc[order, order]


def _scatters(results: Results) -> list[list[Callable[[Any], Any]]]:
    """Return what draws a panel for some tools, three in a row."""
    ways = [_best_way(results, names) for names in (LINEAR, QUADRATIC)]
    chosen = [name for name in (*ways, *SCATTERED) if name in results.mistakes]
    panels: list[Callable[[Any], Any]] = []
    for name in chosen:
        rounds, ours, theirs = results.played(OURS, name)
        found = significance(ours, theirs, rounds)
        panels.append(
            partial(draw_scatter, x=theirs / rounds, y=ours / rounds, found=found, name=name)
        )
    return [panels[i : i + 3] for i in range(0, len(panels) - len(panels) % 3, 3)] or [panels]


def _best_way(results: Results, names: dict[str, Any]) -> str:
    """Return the way of Vowpal Wabbit with the lowest mean logarithm of the error."""
    known = [name for name in names if name in results.mistakes]
    return min(known, key=lambda name: -results.log_ratio(OURS, name), default="")


def _ratios(results: Results) -> list[Callable[[Any], Any]]:
    ratios = {}
    for title, names in results.ways.items():
        ratios[title] = _positive(results.mistakes[OURS]) / _positive(results.of_best(names))
    columns = {"rounds": "rows", "n_classes": "labels", "n_features": "columns"}
    return [
        partial(draw_ratios, x=results.tables[column], ratios=ratios, name=name)
        for column, name in columns.items()
    ]


def _every_table(results: Results) -> pd.DataFrame:
    errors = results.errors
    found = results.tables.rename(
        columns={"rounds": "rows", "n_features": "columns", "n_classes": "K"}
    )
    found["constant"], found["onebit"] = (
        errors[CONSTANT].map(_decimals),
        errors[OURS].map(_decimals),
    )
    for title, names in results.ways.items():
        found[f"best {title}"] = errors[names].min(axis=1).map(_decimals)
        verdicts = significance(
            results.mistakes[OURS], results.of_best(names), results.tables.rounds
        )
        found[f"which, {title}"] = results.best(names).str.removeprefix("VW ").str.removesuffix(
            f" {PRODUCTS}"
        )  # fmt: skip
        found[f"against {title}"] = [("", "win", "LOSS")[verdict] for verdict in verdicts]
    for name in (*list(TOOLS)[1:], "bayesianbandits", *OUR_LINEAR):
        if name in errors:
            found[name] = errors[name].map(_decimals)
    return found.reset_index(names="table")


def _decimals(error: float) -> str:
    """Return an error with two decimals; nothing for a tool that did not play."""
    return "" if error != error else f"{error:.2f}"


def _losses(results: Results) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for name in (name for name in results.tools if name not in TOLD):
        rounds, ours, theirs = results.played(OURS, name)
        found = significance(ours, theirs, rounds)
        z = z_statistic(ours, theirs, rounds)
        for i in np.flatnonzero(found < 0):
            rows.append(
                {
                    "table": rounds.index[i],
                    "tool": name,
                    "onebit %": f"{100 * ours.iloc[i] / rounds.iloc[i]:.2f}",
                    "tool %": f"{100 * theirs.iloc[i] / rounds.iloc[i]:.2f}",
                    "standard errors": f"{-z[i]:.1f}",
                    "reason": REASONS.get(rounds.index[i], "not known"),
                }
            )
    columns = ["table", "tool", "onebit %", "tool %", "standard errors", "reason"]
    return pd.DataFrame(rows, columns=columns).sort_values("table", kind="stable")


def _findings(results: Results) -> list[Finding]:
    counts = {
        name: results.wins_and_losses(OURS, name) for name in results.tools if name not in TOLD
    }
    most = max(losses for _, losses in counts.values())
    behind = [name for name, (wins, losses) in counts.items() if losses > wins]
    rounds, ours, theirs = results.played(OURS, CONSTANT)
    below = rounds.index[significance(ours, theirs, rounds) < 0]
    return [
        Finding(
            "OneBitClassifier has at least as many significant wins as losses against each tool "
            "that is told one bit (a claim of ours).",
            not behind,
            f"at most {most} losses against one tool"
            + (f"; more losses than wins against {', '.join(behind)}" if behind else ""),
        ),
        Finding(
            "On no table does OneBitClassifier make significantly more mistakes than the constant "
            "label (a claim of ours).",
            not len(below),
            f"on {', '.join(below)}" if len(below) else f"none of {len(rounds)}",
        ),
    ]


EXPERIMENT = Experiment(
    "bakeoff",
    "A contextual bandit bake-off",
    "A. Bietti, A. Agarwal and J. Langford. JMLR 22, 2021; arXiv:1802.04064.",
    [
        "The paper has 525 tables of OpenML; these are any folder of tables, by default those in "
        "bakeoff/ among the data.",
        f"At most {ROUNDS:,} rows of a table, in one random order.",
        "The paper chooses Vowpal Wabbit's parameters on 200 of its tables, with nine learning "
        "rates; here they are chosen in hindsight on all, with five.",
        "Tools of other packages are added, and those told every label.",
        f"At the small scale: tables of at most {SMALL:,} rows.",
    ],
    _sweeps,
    _sections,
)
