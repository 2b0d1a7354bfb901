"""Whether intervals hold what they promise: ``python bench/intervals.py [--logs 2000]``.

Logs are simulated whose truth is known: contexts, labels that are right with known probabilities,
and a logging policy that changes half-way. For each policy, size and method: how often the 95 %
interval holds the policy's accuracy on the log's examples, its mean width, how often the interval
for all times holds at every row of the run, and how often there was a number, not bounds alone.
Then: how often wrong probabilities in a log are noticed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit.evaluation import Log, check_probabilities
from onebit.evaluation.estimators import Sums
from onebit.evaluation.intervals import BETS, LowerBound, log_prior_anytime

CONTEXTS, LABELS, FLOOR, LEVEL = 6, 5, 0.02, 0.95
SIZES = (100, 500, 1000)
METHODS = ("ips", "dr")


@dataclass
class World:
    """Contexts, how probably each label is right in each, and two logging policies."""

    right: np.ndarray
    logging: np.ndarray
    """(2, n_contexts, n_labels): of the first half of a log, and of the second."""

    @classmethod
    def make(cls, seed: int = 0, *, covered: bool = True) -> World:
        """Return a world; if it is not covered, one label is never chosen in half of it."""
        rng = np.random.default_rng(seed)
        right = rng.dirichlet(np.full(LABELS, 0.3), size=CONTEXTS)
        sharp = rng.dirichlet(np.full(LABELS, 0.2), size=(2, CONTEXTS))
        logging = FLOOR + (1.0 - LABELS * FLOOR) * sharp
        if not covered:
            logging[:, : CONTEXTS // 2, -1] = 0.0
            logging /= logging.sum(axis=-1, keepdims=True)
        return cls(right, logging)

    def log(self, n: int, rng: np.random.Generator) -> Log:
        """Return a log of n decisions."""
        contexts = rng.integers(CONTEXTS, size=n)
        h = self.logging[(np.arange(n) >= n // 2).astype(int), contexts]
        labels = drawn(h, rng)
        p = h[np.arange(n), labels]
        correct = labels == drawn(self.right[contexts], rng)
        least = h.min(axis=1)
        x = np.eye(CONTEXTS)[contexts]
        return Log(labels, p, correct, x=x, classes=range(LABELS), least=least)

    def policies(self) -> dict[str, Any]:
        """Return the policies to be judged, each as a table (n_contexts, n_labels)."""
        best = np.eye(LABELS)[self.right.argmax(axis=1)]
        return {
            "what was chosen": None,
            "uniform": np.full((CONTEXTS, LABELS), 1.0 / LABELS),
            "always the last": np.tile(np.eye(LABELS)[-1], (CONTEXTS, 1)),
            "the best": best,
        }

    def accuracy(self, policy: Any, log: Log) -> np.ndarray:
        """Return the probability, in each row, that the policy is right."""
        contexts = np.asarray(log.x).argmax(axis=1)
        if policy is None:
            chosen = self.logging[(np.arange(len(log)) >= len(log) // 2).astype(int), contexts]
        else:
            chosen = policy[contexts]
        return (chosen * self.right[contexts]).sum(axis=1)


def drawn(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a label for each row of probabilities."""
    return (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1).clip(max=p.shape[1] - 1)


class Recorded(LowerBound):
    """A bound that remembers what each row gained, to look at it at all times."""

    def __init__(self) -> None:
        super().__init__()
        self.gained: list[np.ndarray] = []

    def update(self, values: Any) -> None:
        """Take more values."""
        found = np.asarray(values, dtype=np.float64)
        # Of values that are the same for all bets, each bet is there twice, and both are the same.
        bets = BETS if found.ndim == 2 else BETS[: BETS.size // 2]
        gained = np.log1p(found.reshape(len(found), -1) * bets)
        self.gained.append(gained)
        self.log_capital += np.resize(gained.sum(axis=0), BETS.size)
        self.n += len(found)

    def ever_refutes(self, means: np.ndarray, alpha: float) -> bool:
        """Tell whether the mean so far was below the bound at some time."""
        n = np.arange(1, means.size + 1)[:, None]
        so_far = means.cumsum()[:, None] / n
        gained, bets, prior = np.concatenate(self.gained), BETS, log_prior_anytime()
        if gained.shape[1] < BETS.size:
            bets, prior = BETS[: BETS.size // 2], prior[: BETS.size // 2] + np.log(2.0)
        logs = prior + gained.cumsum(axis=0) - n * np.log1p(bets * so_far)
        highest, needed = logs.max(axis=1), -np.log(alpha)
        near = highest > needed - np.log(bets.size)  # else all bets together do not reach it
        total = highest[near] + np.log(np.exp(logs[near] - highest[near, None]).sum(axis=1))
        return bool((total > needed).any())


@dataclass
class Outcome:
    """Of one log: whether both kinds of intervals held, the width, and if there was a number."""

    fixed: bool
    anytime: bool
    width: float
    number: bool


def judge(
    log: Log, policy: Any, accuracy: np.ndarray, method: str, level: float = LEVEL
) -> Outcome:
    """Return what comes of estimating a policy's accuracy."""
    function = None if policy is None else (lambda x: policy[x.argmax(axis=1)])
    sums = Sums(function, method, greedy=False, model=None, clip=100.0)
    right = sums.known.right = Recorded()
    wrong = sums.known.wrong = Recorded()
    sums.take(log)
    found, alpha = sums.estimate(level, anytime=False), 0.5 * (1.0 - level)
    held = not right.ever_refutes(accuracy, alpha) and not wrong.ever_refutes(1 - accuracy, alpha)
    inside = found.low <= accuracy.mean() <= found.high
    return Outcome(bool(inside), held, found.high - found.low, found.is_covered)


def simulate(logs: int, sizes: tuple[int, ...], methods: tuple[str, ...], seed: int = 0) -> Any:
    """Yield (policy, size, method, outcomes) of all combinations."""
    for n in sizes:
        for covered in (True, False):
            world = World.make(covered=covered)
            policies = world.policies()
            if not covered:
                policies = {"badly covered": policies["always the last"]}
            rng = np.random.default_rng(seed)
            outcomes: dict[tuple[str, str], list[Outcome]] = {}
            for _ in range(logs):
                log = world.log(n, rng)
                for name, policy in policies.items():
                    accuracy = world.accuracy(policy, log)
                    for method in methods if policy is not None else ("ips",):
                        one = judge(log, policy, accuracy, method)
                        outcomes.setdefault((name, method), []).append(one)
            for (name, method), found in outcomes.items():
                yield name, n, method, found


def noticed(logs: int, n: int, claim: Any, seed: int = 1) -> float:
    """Return how often the probabilities of a log are noticed to be wrong.

    `claim` makes what the log says of what was true.
    """
    world, rng, found = World.make(), np.random.default_rng(seed), 0
    for _ in range(logs):
        log = world.log(n, rng)
        p = claim(log.probabilities)
        wrong = Log(log.labels, p, log.correct, least=np.minimum(log.least, p.min()))
        found += not check_probabilities(wrong).passed
    return found / logs


CLAIMS = {
    "true": lambda p: p,
    "half as sure": lambda p: 0.5 * p + 0.5 / LABELS,
    "uniform": lambda p: np.full(p.size, 1.0 / LABELS),
    "all 1": lambda p: np.ones(p.size),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    print(f"{given.logs} logs; {LEVEL:.0%} intervals\n")
    print("| policy | rows | method | fixed holds % | at all times % | mean width | a number % |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    worst = 1.0
    for name, n, method, found in simulate(given.logs, given.sizes, METHODS):
        fixed, anytime, width, number = (
            np.mean([getattr(one, part) for one in found])
            for part in ("fixed", "anytime", "width", "number")
        )
        worst = min(worst, fixed, anytime)
        print(
            f"| {name} | {n:,} | {method} | {100 * fixed:.2f} | {100 * anytime:.2f} "
            f"| {width:.3f} | {100 * number:.0f} |",
            flush=True,
        )
    print(f"\nthe least of all: {100 * worst:.2f} %\n")
    print("| the log says | noticed %, 300 rows | 3,000 rows |")
    print("| --- | ---: | ---: |")
    logs = max(given.logs // 10, 10)
    for words, claim in CLAIMS.items():
        cells = (f"{100 * noticed(logs, n, claim):.1f}" for n in (300, 3000))
        print(f"| {words} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
