"""False alarms of OneBitClassifier: changes that it notices on streams that do not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import Learner
from onebit.lab.experiment import Experiment, Section, Sweep, is_there
from onebit.lab.measures import ONLINE
from onebit.lab.shared import Made
from onebit.learners import OneBitClassifier
from onebit.streams import StreamSpec, load

if TYPE_CHECKING:
    import pandas as pd

NAMED = ("letter", "satimage", "shuttle", "snips", "dna", "connect4")

ROUNDS = {"small": 20_000, "full": 100_000}
RUNS = {"small": 18, "full": 200}
"""Over all streams, which take turns."""


@dataclass(frozen=True)
class Alarms:
    """Mistakes, and the rounds in which the learner noticed a change."""

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return what `Online` does, and the learner's `changes_`."""
        found = ONLINE(learner, X, y, epochs)
        return found | {"changes": [repr(change) for change in learner.changes_]}


def clouds(rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian clouds around random centres, one for each label."""
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(2, 9)), int(rng.integers(3, 12))
    centres = rng.uniform(0.5, 2.5) * rng.normal(size=(K, d))
    y = rng.choice(K, size=rounds, p=rng.dirichlet(np.ones(K)))
    return centres[y] + rng.normal(size=(rounds, d)), y


def redrawn(name: str, rounds: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return rows of a named stream, drawn with replacement."""
    X, y = load(name, seed=0)
    rows = np.random.default_rng(seed).integers(y.size, size=rounds)
    return X[rows], y[rows]


def _sweeps(scale: str) -> dict[str, Sweep]:
    n = ROUNDS[scale]
    streams = {
        "synsep": StreamSpec("synsep", n),
        "synnonsep": StreamSpec("synnonsep", n),
        "clouds": Made(clouds, (n,)),
        **{name: Made(redrawn, (name, n)) for name in NAMED if is_there(name)},
    }
    learners = {"OneBitClassifier": OneBitClassifier()}
    # Seeds differ between streams, so that as many problems are drawn as there are runs.
    return {
        name: Sweep(
            learners, {}, {name: source}, list(range(i, RUNS[scale], len(streams))), Alarms()
        )
        for i, (name, source) in enumerate(streams.items())
    }


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    runs = pd.concat(tables.values())
    alarmed = runs.changes.map(len) > 0
    rows = [
        [name, int(alarmed[runs.stream == name].sum()), int((runs.stream == name).sum())]
        for name in dict.fromkeys(runs.stream)
    ]
    shown = runs[alarmed].assign(error=lambda some: (100 * some.error).map("{:.1f}".format))
    shown = shown.assign(changes=shown.changes.map(", ".join))
    return [
        Section(
            "Runs with an alarm",
            f"{ROUNDS[scale]:,} rounds of streams that do not change.",
            tables={
                "alarms": pd.DataFrame(
                    [*rows, ["all", int(alarmed.sum()), len(runs)]],
                    columns=["stream", "runs with an alarm", "runs"],
                ),
                "changes": shown[["stream", "seed", "error", "changes"]].rename(
                    columns={"error": "error %"}
                ),
            },
        )
    ]


EXPERIMENT = Experiment(
    "alarms",
    "False alarms of OneBitClassifier",
    "No paper: docs/comparison.md.",
    [
        "Streams are SynSep, SynNonSep, clouds around random centres, and named streams whose rows "
        "are drawn with replacement.",
        f"At the small scale: {RUNS['small']} runs of {ROUNDS['small']:,} rounds.",
    ],
    _sweeps,
    _sections,
)
