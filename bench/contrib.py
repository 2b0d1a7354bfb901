"""The adapters of onebit.contrib, with River and coba beside them.

``python bench/contrib.py river`` prints the time of a round with a dict of ten numbers; ``python
bench/contrib.py coba [name ...]`` the share of right actions in coba's own evaluator, for
OneBitClassifier and for coba's learners of Vowpal Wabbit. wine and digits are
those of scikit-learn; other names are streams of `onebit.streams.load`. Columns are played raw and
prepared, that is, scaled by what is known only when all rows are.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from measuring import Measured, repeated
from onebit import Banditron, OneBitClassifier, streams

N_ROUNDS, REPEATS = 200, 50
ARMS: list[Any] = [0, 1, 2]


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tool", choices=["river", "coba"])
    parser.add_argument("names", nargs="*", default=["wine", "digits"])
    parser.add_argument("--rows", type=int, default=5_000, help="at most this many of each stream")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # those of Vowpal Wabbit and of scikit-learn's SGD
    if given.tool == "river":
        for result in river():
            unsure = "  (other processes kept the machine busy)" if result.disturbed else ""
            print(f"{result.tool:<48}{result.microseconds:8.1f} µs a round{unsure}", flush=True)
    for name in given.names if given.tool == "coba" else []:
        for prepared in (False, True):
            coba(name, prepared, given.rows, given.seeds)


def river() -> Iterator[Measured]:
    """Yield the time of a round: predict and learn, or pull and update."""
    from river import bandit, compat, linear_model
    from sklearn.linear_model import SGDClassifier

    from onebit.contrib.river import RiverClassifier, RiverPolicy

    rng = random.Random(0)
    rounds = [
        ({f"x{i}": rng.gauss(0.0, 1.0) for i in range(10)}, rng.choice(ARMS))
        for _ in range(N_ROUNDS)
    ]

    def classify(model: Any) -> None:
        for x, y in rounds:
            model.predict_one(x)
            model.learn_one(x, y)

    def pull(policy: Any) -> None:
        for x, y in rounds:
            arm = policy.pull(ARMS, x)
            policy.update(arm, x, int(arm == y))

    def measured(name: str, run: Callable[[Any], None], model: Any) -> Measured:
        run(model)  # compiles
        return Measured(name, N_ROUNDS, repeated(REPEATS, run, lambda: (model,))[0])

    for cls in (Banditron, OneBitClassifier):
        learner = cls(classes=ARMS, random_state=0)
        yield measured(f"RiverPolicy({cls.__name__})", pull, RiverPolicy(learner))
        yield measured(f"RiverClassifier({cls.__name__})", classify, RiverClassifier(learner))
    wrapped: Any = OneBitClassifier(random_state=0)
    for inside in (SGDClassifier(loss="log_loss"), wrapped):
        wrapper = compat.convert_sklearn_to_river(inside, classes=ARMS)
        yield measured(f"River's wrapper of {type(inside).__name__}", classify, wrapper)
    yield measured("River SoftmaxRegression", classify, linear_model.SoftmaxRegression())
    yield measured("River LinUCBDisjoint", pull, bandit.LinUCBDisjoint(seed=0))


def coba(name: str, prepared: bool, rows: int, seeds: int) -> None:
    """Print the share of right actions of each learner on one stream."""
    import coba as cb
    from coba import learners

    from onebit.contrib.coba import CobaLearner

    made: dict[str, Callable[[], Any]] = {
        "OneBitClassifier": lambda: CobaLearner(OneBitClassifier(random_state=0))
    } | {
        cls.__name__: cls
        for cls in (
            learners.VowpalEpsilonLearner,
            learners.VowpalSoftmaxLearner,
            learners.VowpalBagLearner,
            learners.VowpalCoverLearner,
            learners.VowpalSquarecbLearner,
            learners.VowpalRegcbLearner,
        )
    }
    # Their defaults multiply features by one another; a linear model may do better with few rows.
    for cls in (learners.VowpalEpsilonLearner, learners.VowpalSquarecbLearner):
        made[f"{cls.__name__}, linear"] = partial(cls, features=[1, "a", "ax"])
    print(f"{name}, {'prepared' if prepared else 'raw'}")
    for tool, new in made.items():
        shares = []
        for seed in range(seeds):
            X, y = _rows(name, prepared, seed)
            labels = [str(label) for label in y[:rows].tolist()]
            (environment,) = cb.Environments.from_supervised(X[:rows].tolist(), labels, "c")
            found = cb.SequentialCB(["reward"]).evaluate(environment, new())
            shares.append(np.mean([one["reward"] for one in found]))
        print(f"    {tool:<32}{100 * np.mean(shares):6.1f} %", flush=True)


def _rows(name: str, prepared: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name not in ("wine", "digits"):
        return streams.load(name, seed=seed, prepared=prepared)
    from sklearn import datasets
    from sklearn.preprocessing import scale

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(seed).permutation(y.size)
    return (scale(X) if prepared else X)[order], y[order]


if __name__ == "__main__":
    main()
