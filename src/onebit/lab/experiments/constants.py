"""Other constants of OneBitClassifier: how mistakes change on the first or last rows of streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import Learner
from onebit.lab.experiment import Experiment, Section, Sweep, is_there, mean_and_se
from onebit.lab.measures import ONLINE
from onebit.lab.shared import Made
from onebit.learners import OneBitClassifier
from onebit.numerics import posterior
from onebit.streams import Asked, load

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

VALUES = "least_lesson=0.3; least_lesson=0.6; explore=0.1; constant=1"

AS_IS = "as it is"


@dataclass(frozen=True)
class WithConstants:
    """Mistakes with other constants of the learner.

    Parameters
    ----------
    covariance : {"full", "diagonal"}
        The form whose constants are changed.
    values : tuple of pairs (name, value)
        Fields of `onebit.numerics.posterior.Form`.
    """

    covariance: str
    values: tuple[tuple[str, float], ...]

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return what `Online` does."""
        with changed(f"{self.covariance.upper()}_FORM", dict(self.values)):
            return ONLINE(learner, X, y, epochs)


@contextmanager
def changed(form: str, values: dict[str, float]) -> Iterator[None]:
    """Change constants of a form while the block runs."""
    usual = getattr(posterior, form)
    setattr(posterior, form, usual._replace(**values))
    try:
        yield
    finally:
        setattr(posterior, form, usual)


def last_rows(name: str, n: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return the last rows of a named stream."""
    X, y = load(name, seed=seed)
    return X[-n:], y[-n:]


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
        name: Made(last_rows, (name, n)) if last else Asked(name, n)
        for name in STREAMS[covariance]
        if is_there(name)
    }
    learners = {"OneBitClassifier": OneBitClassifier(covariance=covariance, views=views)}
    wanted = {AS_IS: Sweep(learners, {}, streams, seeds)}
    for text in values.split(";"):
        measure = WithConstants(covariance, tuple(_pairs(text)))
        wanted[text.strip()] = Sweep(learners, {}, streams, seeds, measure)
    return wanted


def _pairs(text: str) -> Iterator[tuple[str, float]]:
    for pair in text.split(","):
        name, _, value = pair.strip().partition("=")
        if name not in posterior.Form._fields:
            known = ", ".join(posterior.Form._fields)
            raise ValueError(f"no constant {name!r}: there are {known}")
        yield name, float(value)


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    def errors(part: str, stream: str) -> np.ndarray:
        runs = tables[part]
        return runs[runs.stream == stream].sort_values("seed").error.to_numpy()

    others = [part for part in tables if part != AS_IS]
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


EXPERIMENT = Experiment(
    "constants",
    "Other constants of OneBitClassifier",
    "No paper: docs/notes.md.",
    [
        '--values "explore=0.1; doubt=0.5,sure=0.01" sets constants by their names in '
        "onebit.numerics.posterior.Form.",
        "--covariance diagonal is for the constants of the diagonal form, not of the full one; "
        "--views chooses the members of the mixture; --last yes plays the last rows, to look at "
        "what was not chosen on the first.",
        f"At the small scale: {ROWS['small']:,} rows, {SEEDS['small']} seeds.",
    ],
    _sweeps,
    _sections,
)
