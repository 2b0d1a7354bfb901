"""Many labels without names: how long it takes to find them, and what was tried against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from onebit.core import Learner
from onebit.lab.experiment import Experiment, Section, Sweep, is_there
from onebit.lab.shared import Made
from onebit.learners import OneBitClassifier
from onebit.streams import StreamSpec, load

if TYPE_CHECKING:
    import pandas as pd

STREAMS = ("clinc150", "banking77")
SEEDS = {"small": 2, "full": 5}

FOUND = 3
"""How often a label must be right to count as found."""

BLOCK = 25
"""Rounds after which past rounds are learned from again."""

BOUND = 0.37
"""Mistakes, divided by K^2, of a learner that knows which examples belong together.

It tries no label twice for a group, and none that belongs to another one."""

AS_IS, AGAIN, RARE = "as it is", "wrong bits again", "rare words weigh more"


@dataclass(frozen=True)
class Searched:
    """Mistakes before and after the right label was found.

    Parameters
    ----------
    again : float
        How many wrong bits of past rounds, drawn at random, are learned from again in a round.
    """

    again: float = 0.0

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the error, and what it is made of."""
        labels, truth = np.unique(y, return_inverse=True)
        n, rng = y.size, np.random.default_rng(learner.random_state)
        learner.set_params(classes=range(labels.size))
        rights = np.zeros(labels.size, dtype=int)
        is_tried = np.zeros((labels.size, labels.size), dtype=bool)
        chosen, confidence = np.zeros(n, dtype=int), np.zeros(n)
        is_found, is_repeated, is_known = np.zeros((3, n), dtype=bool)
        for i in range(n):
            (decision,) = learner.decide_many(X[i : i + 1])
            k = chosen[i] = int(decision.label)
            confidence[i] = decision.confidence
            is_found[i], is_known[i] = rights[truth[i]] >= FOUND, rights[k] >= FOUND
            is_repeated[i], is_tried[truth[i], k] = is_tried[truth[i], k], True
            rights[k] += k == truth[i]
            learner.learn(decision, correct=bool(k == truth[i]))
            if self.again and (i + 1) % BLOCK == 0:
                past = np.flatnonzero(chosen[: i + 1] != truth[: i + 1])
                some = rng.choice(past, min(past.size, round(self.again * BLOCK)), replace=False)
                learner.replay(X[some], chosen[some], np.ones(some.size), np.zeros(some.size))
        wrong = chosen != truth
        return {
            "rounds": n,
            "mistakes": int(wrong.sum()),
            "error": float(wrong.mean()),
            "not_found": float(np.mean(~is_found)),
            "error_found": float(wrong[is_found].mean()),
            "error_not_found": float(wrong[~is_found].mean()),
            "of_others": float(is_known[wrong & ~is_found].mean()),
            "repeated": float(is_repeated[wrong].mean()),
            "confidence": float(confidence.mean()),
            "bound": BOUND * labels.size**2 / n,
        }


def rare_words(name: str, seed: int) -> tuple[Any, np.ndarray]:
    """Return a stream of texts whose words have the square root of their idf as values."""
    X, y = load(name, seed=seed)
    n = np.bincount(X.indices, minlength=X.shape[1])
    idf = np.log((y.size + 1) / (n + 1))
    weighted = (X != 0).astype(np.float64) @ sp.diags_array(np.sqrt(idf / idf.max()))
    return sp.csr_array(normalize(weighted)), y


def _sweeps(scale: str) -> dict[str, Sweep]:
    learners = {"OneBitClassifier": OneBitClassifier(notice_changes=False)}
    plain = {name: StreamSpec(name) for name in STREAMS if is_there(name)}
    rare = {name: Made(rare_words, (name,)) for name in plain}
    seeds = list(range(SEEDS[scale]))
    wanted = {
        AS_IS: Sweep(learners, {}, plain, seeds, Searched()),
        AGAIN: Sweep(learners, {}, plain, seeds, Searched(1.0)),
        RARE: Sweep(learners, {}, rare, seeds, Searched()),
    }
    return wanted if plain else {}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    rows = []
    columns = {
        "error": "error %",
        "not_found": "not found yet",
        "error_not_found": "error then",
        "of_others": "to found labels",
        "error_found": "error if found",
        "repeated": "tried before",
        "confidence": "confidence",
    }
    for part, table in tables.items():
        for stream in dict.fromkeys(table.stream):
            of_stream = table[table.stream == stream]
            shown = [f"{100 * of_stream[name].mean():.1f}" for name in columns]
            rows.append([stream, part, *shown, f"{100 * of_stream.bound.mean():.1f}"])
    named = ["stream", "tried", *columns.values(), "bound"]
    return [Section("Many labels", TEXT, tables={"percent": pd.DataFrame(rows, columns=named)})]


TEXT = (
    f"A label is found when it was right {FOUND} times. In percent: the error; rounds whose label "
    "is not yet found, the error in these, and the share of their mistakes that go to labels found "
    "already; the error in all other rounds; the mistakes with a label that was tried before for "
    "the same truth; the mean confidence; and the error of a learner that knows which examples "
    f"belong together, {BOUND} K^2 mistakes."
)

EXPERIMENT = Experiment(
    "many_labels",
    "Many labels without names",
    "No paper: docs/descriptions.md.",
    [f"At the small scale: {SEEDS['small']} seeds."],
    _sweeps,
    _sections,
)
