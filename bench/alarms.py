"""False alarms: how often OneBitClassifier sees a change in streams that do not change.

``python bench/alarms.py``: 200 runs of 100,000 rounds, on synthetic streams and on named ones,
whose rows are drawn with replacement, so that every round is drawn from the same distribution. An
alarm is an entry in the learner's `changes_`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from comparing import log, out
from onebit import OneBitClassifier, play, streams
from verdicts import table

RUNS, ROUNDS = 200, 100_000

MOST = 0.05
"""The share of runs that may have an alarm."""


def linear(n: int, seed: int, noise: float) -> tuple[Any, np.ndarray]:
    """Return measurements, and labels of a linear rule, some of which are drawn at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10)) * rng.lognormal(size=10) + rng.normal(size=10)
    y = np.argmax((X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(10, 6)), axis=1)
    return X, np.where(rng.random(n) < noise, rng.integers(6, size=n), y)


def nonlinear(n: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return measurements, and labels that no linear rule tells well: of the nearest centre."""
    rng = np.random.default_rng(seed)
    X, centres = rng.normal(size=(n, 4)), rng.normal(size=(30, 4))
    nearest = np.argmin(((X[:, np.newaxis] - centres) ** 2).sum(axis=2), axis=1)
    return X, rng.integers(5, size=30)[nearest]


def skewed(n: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return words, and labels of which each is half as frequent as the one before."""
    rng = np.random.default_rng(seed)
    y = np.minimum(rng.geometric(0.5, size=n) - 1, 11)
    X = (rng.random((n, 60)) < 0.1).astype(np.float64)
    X[np.arange(n), 3 * y + rng.integers(3, size=n)] = 1.0
    return X, y


def named(name: str, n: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return rows of a stream, drawn with replacement."""
    X, y = _loaded(name)
    rows = np.random.default_rng(seed).integers(y.size, size=n)
    return X[rows], y[rows]


@lru_cache(maxsize=1)
def _loaded(name: str) -> tuple[Any, np.ndarray]:
    return streams.load(name)


def synsep(n: int, seed: int, noise: float) -> tuple[Any, np.ndarray]:
    """Return SynSep with labels that are wrong in a share of the rounds."""
    return streams.synnonsep(n, noise=noise, seed=seed)


KINDS: dict[str, Callable[[int, int], tuple[Any, np.ndarray]]] = {
    "synsep": partial(synsep, noise=0.0),
    "synnonsep": partial(synsep, noise=0.05),
    "linear": partial(linear, noise=0.0),
    "linear, 30 % noise": partial(linear, noise=0.3),
    "nonlinear": nonlinear,
    "skewed": skewed,
    "covtype": partial(named, "covtype"),
    "letter": partial(named, "letter"),
    "poker": partial(named, "poker"),
    "snips": partial(named, "snips"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Count the runs with an alarm, kind by kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="in all (default 200)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of a run (default 100,000)")
    options = parser.parse_args(arguments)
    of_each = -(-options.runs // len(KINDS))
    title = f"Changes seen where there is none, in runs of {options.rounds:,} rounds"
    shown = table(title, [], "stream", "runs", "with an alarm", "alarms")
    runs = alarmed = 0
    for kind, make in KINDS.items():
        alarms = []
        for seed in range(of_each):
            try:
                X, y = make(options.rounds, seed)
            except FileNotFoundError as error:
                log.print(f"no data: {error}")
                break
            learner = OneBitClassifier(random_state=seed)
            play(learner, X, y, record=False)
            if not hasattr(learner, "changes_"):
                parser.error("OneBitClassifier has no changes_ here: it never sees a change")
            alarms.append(len(learner.changes_))
            log.print(f"{kind}, seed {seed}: {alarms[-1]} alarms")
        with_alarm = int(np.count_nonzero(alarms))
        shown.add_row(kind, str(len(alarms)), str(with_alarm), str(sum(alarms)))
        runs, alarmed = runs + len(alarms), alarmed + with_alarm
    out.print(shown)
    out.print(f"{alarmed} of {runs} runs, {alarmed / max(runs, 1):.1%}, have an alarm.")
    return int(alarmed > MOST * runs)


if __name__ == "__main__":
    sys.exit(main())
