"""Other constants of OneBitClassifier: how mistakes change on the first or last rows of streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import Learner
from onebit.lab.experiment import Experiment, Section, Sweep, is_there, mean_and_se
from onebit.lab.experiments.bakeoff import data_folder, table_streams
from onebit.lab.measures import ONLINE
from onebit.lab.shared import Made
from onebit.learners import OneBitClassifier
from onebit.numerics.tuning import constants, tuned
from onebit.streams import StreamSpec, load, relabelled

if TYPE_CHECKING:
    import pandas as pd

STREAMS = {
    "full": (
        *("confidit-synthetic", "vowel", "dna", "satimage", "optdigits", "letter", "poker"),
        *("shuttle", "connect4", "covtype", "kddcup99"),
    ),
    "diagonal": (
        *("mnist", "fars", "synnonsep", "20newsgroups", "reuters_r8", "rcv1", "ag_news"),
        *("amazon4", "fdu_mtl", "snips", "banking77", "clinc150"),
    ),
}
"""Those that each form of the covariance plays by default."""

ROWS = {"small": 2_000, "full": 10_000}
SEEDS = {"small": 2, "full": 6}

VALUES = "full.least_lesson=0.3; full.least_lesson=0.6; full.explore=0.1; full.constant=1"

AS_IS = "as it is"

EACH = "each"
"""In place of values: each constant halved, and doubled."""

TABLE_ROWS = {"small": 1_500, "full": 3_000}
"""For `EACH`, tables of the bake-off with at most this many rows."""

CHANGING = ("satimage", "optdigits", "letter", "shuttle")
"""For `EACH`, streams whose labels change places half-way, and back after three quarters."""

LINES = ("snips", "mnist")
"""For `EACH`, streams that have the line alone, in the diagonal form."""


@dataclass(frozen=True)
class WithConstants:
    """Mistakes with other constants of the learner.

    Parameters
    ----------
    values : tuple of pairs (name, value)
        Constants, by their names in `onebit.numerics.tuning`.
    """

    values: tuple[tuple[str, float], ...]

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return what `Online` does."""
        with tuned(**dict(self.values)):
            return ONLINE(learner, X, y, epochs)


def last_rows(name: str, n: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return the last rows of a named stream."""
    X, y = load(name, seed=seed)
    return X[-n:], y[-n:]


def changing_rows(name: str, n: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return the first rows of a named stream, with labels that change places and return."""
    X, y = load(name, seed=seed)
    return relabelled(X[:n], y[:n], at=n // 2, back=3 * n // 4, seed=seed)


def _streams_for_each(scale: str) -> dict[str, Any]:
    """Return tables, streams that change, and streams that have the line alone."""
    n, folder = ROWS[scale], data_folder()
    tables = {} if folder is None else table_streams(folder, TABLE_ROWS[scale])[0]
    changing = {
        f"{name}, changing": Made(changing_rows, (name, n)) for name in CHANGING if is_there(name)
    }
    return tables | changing | {name: StreamSpec(name, n) for name in LINES if is_there(name)}


def _halved_and_doubled() -> Iterator[tuple[str, str]]:
    """Yield each constant that is not zero with its half, and with its double.

    In these streams exactly one label is right: constants of independent labels change nothing.
    """
    for name, value in constants().items():
        for factor in (0.5, 2.0):
            if value and not name.startswith("independent"):
                other = factor * value
                yield name, f"{name}={min(other, 0.95) if 'share' in name else other!r}"


def _sweeps(
    scale: str,
    *,
    values: str = VALUES,
    covariance: str = "full",
    views: str = "line",
    last: bool = False,
) -> dict[str, Sweep]:
    """Return a sweep for each way to change constants, ways separated by semicolons."""
    if covariance not in STREAMS:
        raise ValueError(f"the covariance is {' or '.join(STREAMS)}; got {covariance!r}")
    n, seeds = ROWS[scale], list(range(SEEDS[scale]))
    streams = {
        name: Made(last_rows, (name, n)) if last else StreamSpec(name, n)
        for name in STREAMS[covariance]
        if is_there(name)
    }
    learners = {"OneBitClassifier": OneBitClassifier(covariance=covariance, views=views)}
    if values == EACH:
        streams, learners = _streams_for_each(scale), {"OneBitClassifier": OneBitClassifier()}
        values = ";".join(text for _, text in _halved_and_doubled())
    wanted = {AS_IS: Sweep(learners, {}, streams, seeds)}
    for text in values.split(";"):
        measure = WithConstants(tuple(_pairs(text)))
        wanted[text.strip()] = Sweep(learners, {}, streams, seeds, measure)
    return wanted


def _pairs(text: str) -> Iterator[tuple[str, float]]:
    for pair in text.split(","):
        name, _, value = pair.strip().partition("=")
        if name not in constants():
            raise ValueError(f"no constant {name!r}: there are {', '.join(constants())}")
        yield name, float(value)


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    def errors(part: str, stream: str) -> np.ndarray:
        runs = tables[part]
        return runs[runs.stream == stream].sort_values("seed").error.to_numpy()

    others = [part for part in tables if part != AS_IS]
    each = [text for _, text in _halved_and_doubled()]
    if others == each:
        return [_section_of_each(tables, errors)]
    rows, means = [], []
    for stream in dict.fromkeys(tables[AS_IS].stream):
        usual = errors(AS_IS, stream)
        ratios = [100 * np.log(errors(part, stream) / usual) for part in others]
        rows.append([stream, f"{100 * usual.mean():.2f}", *(mean_and_se(r, 1) for r in ratios)])
        means.append([ratio.mean() for ratio in ratios])
    rows.append(["mean", "", *(f"{mean:+.1f}" for mean in np.mean(means, axis=0))])
    return [
        Section(
            "Mistakes with other constants",
            f"{ROWS[scale]:,} rows. 100 times the logarithm of the ratio of errors to those with "
            "the constants as they are, negative for fewer mistakes, with its standard error, seed "
            "by seed.",
            tables={"100 log ratio": pd.DataFrame(rows, columns=["stream", "error %", *others])},
        )
    ]


def _section_of_each(tables: dict[str, pd.DataFrame], errors: Any) -> Section:
    """Return what each constant costs when it is halved, and doubled."""
    import pandas as pd

    streams = list(dict.fromkeys(tables[AS_IS].stream))
    found: dict[str, list[str]] = {}
    for name, text in _halved_and_doubled():
        ratios = [np.log(_mean(errors(text, s)) / _mean(errors(AS_IS, s))) for s in streams]
        found.setdefault(name, [f"{constants()[name]:.4g}"]).append(
            mean_and_se(100 * np.array(ratios), 2)
        )
    return Section(
        "What each constant costs when it is halved, and doubled",
        f"{len(streams)} streams. 100 times the logarithm of the ratio of errors to those with the "
        "constants as they are, negative for fewer mistakes: the mean over streams, with its "
        "standard error over streams.",
        tables={
            "100 log ratio": pd.DataFrame(
                [[name, *row] for name, row in found.items()],
                columns=["constant", "value", "halved", "doubled"],
            )
        },
    )


def _mean(errors: np.ndarray) -> float:
    """Return the mean error; a stream without one counts as if it had one in 5,000 rounds."""
    return float(errors.mean()) + 2e-4


EXPERIMENT = Experiment(
    "constants",
    "Other constants of OneBitClassifier",
    "No paper: docs/notes.md.",
    [
        '--values "full.explore=0.1; full.doubt=0.5,changes.label=20" sets constants by their '
        "names in onebit.numerics.tuning.",
        "--covariance diagonal plays the streams of the diagonal form, not of the full one; "
        "--views chooses the members of the mixture; --last yes plays the last rows, to look at "
        "what was not chosen on the first.",
        "--values each halves and doubles each constant, one at a time, on tables of the bake-off, "
        "streams that change and streams that have the line alone.",
        f"At the small scale: {ROWS['small']:,} rows, {SEEDS['small']} seeds.",
    ],
    _sweeps,
    _sections,
)
