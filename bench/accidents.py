"""Everyday accidents of tables, such as a clock or an odd row, beside the stream without them.

``python bench/accidents.py [accident ...] [--seeds 10]``. Ten Gaussian features, five linear
classes, 20,000 rounds. The table has the error of OneBitClassifier in %, and by how many points it
exceeds that on the plain stream of the same seed.

Where cells are missing, what they said is lost: "mean" in place of a code is what someone who knew
which they were could do, and how much of the loss no scale can mend.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from onebit import OneBitClassifier, play

ROUNDS, FEATURES, CLASSES = 20_000, 10, 5


def plain(seed: int, rounds: int = ROUNDS) -> tuple[np.ndarray, np.ndarray]:
    """Return ten Gaussian features, and the best of five linear scores of each row."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rounds, FEATURES))
    return X, (X @ rng.standard_normal((FEATURES, CLASSES))).argmax(axis=1)


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


def _missing(code: float | None) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    def change(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        X = 20.0 + 3.0 * X
        X[rng.random(X.shape) < 0.01] = X.mean() if code is None else code
        return X

    return change


ACCIDENTS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "nothing": lambda X, rng: X,
    "a column with the row number": _row_number,
    "the same, shuffled": _shuffled_row_number,
    "a clock, 60 s apart": _clock,
    "a clock with nights": _clock_with_nights,
    "one row times 1e4": _odd_row,
    "one of the first ten rows times 1e4": _odd_first_row,
    "one cell in 1,000 times 1e3": _odd_cells,
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


def error(accident: str, seed: int, **parameters: Any) -> float:
    """Return the share of mistakes on the stream of this seed with an accident."""
    X, y = plain(seed)
    X = ACCIDENTS[accident](X, np.random.default_rng([seed, 1]))
    return play(OneBitClassifier(random_state=seed, **parameters), X, y).error_rate


def main() -> None:
    """Print the table, an accident at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*ACCIDENTS])
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    without = 100 * np.array([error("nothing", seed) for seed in range(given.seeds)])
    print(f"{'accident':<38}{'error':>7}{'more':>8}{'most':>7}")
    for name in given.names:
        errors = 100 * np.array([error(name, seed) for seed in range(given.seeds)])
        more = errors - without
        print(f"{name:<38}{errors.mean():7.2f}{more.mean():+8.2f}{more.max():+7.2f}", flush=True)


if __name__ == "__main__":
    main()
