"""Kakade, Shalev-Shwartz and Tewari (2008): the error on their streams up to several rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onebit.lab.experiment import Experiment, Section, Sweep, View
from onebit.lab.measures import Online
from onebit.learners import SOBA, Banditron, Perceptron
from onebit.streams import StreamSpec

if TYPE_CHECKING:
    import pandas as pd

CHECKPOINTS = (1_000, 10_000, 100_000, 300_000, 1_000_000)

LEARNERS = {
    "Perceptron": Perceptron(),
    "Banditron 0.014": Banditron(gamma=0.014),
    "Banditron 2^-7": Banditron(gamma=2**-7),
    "SOBA 0.01": SOBA(gamma=0.01),
    "SOBA 2^-7": SOBA(gamma=2**-7),
}


def _sweeps(scale: str) -> dict[str, Sweep]:
    rounds = CHECKPOINTS[-1] if scale == "full" else 100_000
    streams = {name: StreamSpec(name, rounds) for name in ("synsep", "synnonsep")}
    seeds = list(range(5 if scale == "full" else 2))
    return {"errors": Sweep(LEARNERS, {}, streams, seeds, Online(at=CHECKPOINTS))}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    shown = {}
    for stream, runs in View(tables["errors"]).streams.items():
        rows = []
        for name, some in runs.groupby("learner", sort=False):
            errors = 100 * np.stack([np.array(curve) for curve in some.curve_errors])
            spread = errors.std(axis=0, ddof=min(1, len(errors) - 1))
            cells = (f"{m:.2g} ±{s:.2g}" for m, s in zip(errors.mean(axis=0), spread, strict=True))
            rows.append([name, *cells])
        at = runs.curve_rounds.iloc[0]
        shown[stream] = pd.DataFrame(rows, columns=["learner", *map(_short, at)])
    return [
        Section(
            "Error up to a round",
            "In percent, mean and standard deviation over the seeds, each of which draws the "
            "stream and the learner's exploration anew.",
            tables=shown,
        )
    ]


def _short(t: int) -> str:
    return f"{t // 1_000_000}M" if t >= 1_000_000 else f"{t // 1000}k"


EXPERIMENT = Experiment(
    "errors",
    "The streams of the Banditron paper",
    "S. Kakade, S. Shalev-Shwartz and A. Tewari. ICML 2008.",
    [
        "The streams are as public re-implementations agree on them; the learners, except "
        "Banditron and Perceptron, are later.",
        "At the small scale: 100,000 rounds, 2 seeds.",
    ],
    _sweeps,
    _sections,
)
