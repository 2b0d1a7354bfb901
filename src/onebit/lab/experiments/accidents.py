"""Everyday accidents of tables, such as a clock or an odd row, and the stream without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from onebit.lab.experiment import Experiment, Section, Sweep
from onebit.lab.shared import Made
from onebit.learners import OneBitClassifier

if TYPE_CHECKING:
    import pandas as pd

ROUNDS, FEATURES, CLASSES = 20_000, 10, 5

SMALL = 4_000
"""Rounds of the small scale."""

SEEDS = {"small": 3, "full": 10}

NOTHING = "nothing"


Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def plain(seed: int, rounds: int = ROUNDS) -> tuple[np.ndarray, np.ndarray]:
    """Return ten Gaussian features, and the best of five linear scores of each row."""
    X, W = rows_and_rule(seed, rounds)
    return X, (X @ W).argmax(axis=1)


def rows_and_rule(seed: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ten Gaussian features, and the weights of five linear scores."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rounds, FEATURES))
    return X, rng.standard_normal((FEATURES, CLASSES))


def _row_number(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, np.arange(len(X))])


def _shuffled_row_number(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, rng.permutation(len(X))])


def _clock(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, 1.7e9 + 60.0 * np.arange(len(X))])


def _clock_with_nights(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    nights = 50_000.0 * (np.arange(len(X)) // 500)
    return np.column_stack([X, 1.7e9 + rng.exponential(60.0, len(X)).cumsum() + nights])


def _odd_row(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[rng.integers(len(X))] *= 1e4
    return X


def _odd_first_row(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[rng.integers(10)] *= 1e4
    return X


def _odd_cells(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[rng.random(X.shape) < 1e-3] *= 1e3
    return X


def _larger_unit(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X / 1000.0


def _shift(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[len(X) // 2 :, 0] += 50.0
    return X


def _gain(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X[len(X) // 2 :, 0] *= 50.0
    return X


def _random_walk(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, rng.standard_normal(len(X)).cumsum()])


def _cauchy(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, rng.standard_cauchy((len(X), 2))])


def _log_normal(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([X, rng.lognormal(0.0, 2.0, (len(X), 2))])


def _heavy_noise(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X + 0.01 * rng.standard_cauchy(X.shape)


def _rare_huge(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    counts = rng.poisson(5.0, (len(X), 2)).astype(float)
    counts[rng.random(counts.shape) < 1e-3] = 1e9
    return np.column_stack([X, counts])


def _missing(code: float | None) -> Change:
    def change(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        X = 20.0 + 3.0 * X
        X[_is_missing(X, rng)] = X.mean() if code is None else code
        return X

    return change


def _is_missing(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.random(X.shape) < 0.01


def lost_with_missing_cells(seed: int, rounds: int) -> float:
    """Return the error of the true rule, with missing cells replaced by the mean, zero."""
    X, W = rows_and_rule(seed, rounds)
    known = np.where(_is_missing(X, np.random.default_rng([seed, 1])), 0.0, X)
    return float(np.mean((known @ W).argmax(axis=1) != (X @ W).argmax(axis=1)))


ACCIDENTS: dict[str, Change] = {
    NOTHING: lambda X, rng: X,
    "a column with the row number": _row_number,
    "the same, shuffled": _shuffled_row_number,
    "a clock, 60 s apart": _clock,
    "a clock with nights": _clock_with_nights,
    "one row times 1e4": _odd_row,
    "one of the first ten rows times 1e4": _odd_first_row,
    "one cell in 1,000 times 1e3": _odd_cells,
    "every column in units of 1,000": _larger_unit,
    "a sensor shifts by 50": _shift,
    "a sensor is 50 times as sensitive": _gain,
    "a column that is a random walk": _random_walk,
    "two Cauchy columns": _cauchy,
    "two log-normal columns": _log_normal,
    "Cauchy noise in every cell": _heavy_noise,
    "counts, one in 1,000 is 1e9": _rare_huge,
    "1 % of cells missing: mean": _missing(None),
    "1 % of cells missing: 0": _missing(0.0),
    "1 % of cells missing: -1": _missing(-1.0),
    "1 % of cells missing: 999": _missing(999.0),
}


def with_accident(name: str, rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the plain stream of a seed, with an accident."""
    X, y = plain(seed, rounds)
    return ACCIDENTS[name](X, np.random.default_rng([seed, 1])), y


def _sweeps(scale: str) -> dict[str, Sweep]:
    rounds = ROUNDS if scale == "full" else SMALL
    streams = {name: Made(with_accident, (name, rounds)) for name in ACCIDENTS}
    ours = {"OneBitClassifier": OneBitClassifier()}
    return {"accidents": Sweep(ours, {}, streams, list(range(SEEDS[scale])))}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    runs, rows = tables["accidents"], []
    errors = 100 * runs.pivot(index="seed", columns="stream", values="error")
    for name in dict.fromkeys(runs.stream):
        more = errors[name] - errors[NOTHING]
        rows.append(
            [name, f"{errors[name].mean():.2f}", f"{more.mean():+.2f}", f"{more.max():+.2f}"]
        )
    columns = ["the same stream, and", "error %", "more", "most"]
    rounds = int(runs.rounds.iloc[0])
    lost = 100 * np.mean([lost_with_missing_cells(seed, rounds) for seed in errors.index])
    return [
        Section(
            "Accidents of tables",
            f"{FEATURES} Gaussian features, {CLASSES} linear classes. More: points over the plain "
            "stream of the same seed, on average; most: of the worst seed. Where cells are "
            "missing, what they said is lost: the true rule, with their means in their place, errs "
            f"in {lost:.2f} % of the rounds.",
            tables={"error %": pd.DataFrame(rows, columns=columns)},
        )
    ]


EXPERIMENT = Experiment(
    "accidents",
    "Everyday accidents of tables",
    "No paper: docs/one_bit_measurements.md.",
    [f"At the small scale: {SMALL:,} rounds, {SEEDS['small']} seeds."],
    _sweeps,
    _sections,
)
