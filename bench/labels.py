"""What labels are worth among bits: OneBitClassifier told a tenth of them, or taught a few first.

``python bench/labels.py {truths, taught} [name ...]``. The error is that of the bits, of all rounds
in "truths", of the rounds after the labelled examples, always the same ones, in "taught". Those
examples are drawn at random: without the first ones of each label, a stream would begin with the
labels that happen to be frequent in its first rows. Beside each mean but the first is the step from
the one before it, with its standard error, seed by seed.
"""

from __future__ import annotations

import argparse

import numpy as np

from onebit import OneBitClassifier, play, streams
from onebit.lab.experiments.compare import ROWS

TAUGHT = ["clinc150", "banking77", "20newsgroups", "letter", "mnist"]
EXAMPLES = [0, 1, 3, 5]
SHARE = 0.1
MANY = 10


def main() -> None:
    """Print the tables, a stream at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["truths", "taught"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    if given.table == "taught":
        shown = [f"{n} of each" for n in EXAMPLES]
        names, errors = given.names or TAUGHT, taught
    else:
        shown = ["bits alone", f"{SHARE:.0%} truths"]
        names, errors = given.names or list(ROWS), with_truths
    print(f"{'stream':<14}{shown[0]:>10}" + "".join(f"{title:>24}" for title in shown[1:]))
    for name in names:
        if given.table == "truths" and np.unique(streams.load(name, seed=0)[1]).size < MANY:
            continue
        found = np.array([errors(name, seed) for seed in range(given.seeds)])
        steps = np.diff(found, axis=1)
        sure = steps.std(axis=0, ddof=1) / np.sqrt(given.seeds)
        print(f"{name:<14}{found[:, 0].mean():10.2f}", end="")
        for mean, step, se in zip(found[:, 1:].mean(0), steps.mean(0), sure, strict=True):
            print(f"{mean:9.2f} ({step:+6.2f} ±{se:4.2f})", end="")
        print(flush=True)


def taught(name: str, seed: int) -> list[float]:
    """Return the error, in percent, after so many labelled examples of each label."""
    X, y = streams.load(name, seed=seed)
    classes = np.unique(y)
    rng = np.random.default_rng(seed)
    known = [rng.permutation(np.flatnonzero(y == label))[: max(EXAMPLES)] for label in classes]
    rest = np.setdiff1d(np.arange(y.size), np.concatenate(known))
    errors = []
    for n in EXAMPLES:
        learner = OneBitClassifier(classes=classes, random_state=seed)
        if n:
            examples = np.sort(np.concatenate([of_label[:n] for of_label in known]))
            learner.teach(X[examples], y[examples])
        errors.append(100 * play(learner, X[rest], y[rest]).error_rate)
    return errors


def with_truths(name: str, seed: int) -> list[float]:
    """Return the errors, in percent, of bits alone and with truths in some rounds."""
    X, y = streams.load(name, seed=seed)
    classes = np.unique(y)
    alone = play(OneBitClassifier(classes=classes, random_state=seed), X, y).error_rate
    learner, mistakes, at = OneBitClassifier(classes=classes, random_state=seed), 0, 0
    told = np.flatnonzero(np.random.default_rng(seed).random(y.size) < SHARE)
    for i in [*told.tolist(), y.size]:
        if i > at:
            mistakes += play(learner, X[at:i], y[at:i], record=False).n_mistakes
        if i < y.size:
            (decision,) = learner.decide_many(X[i : i + 1])
            mistakes += decision.label != y[i]
            learner.learn(decision, truth=y[i].item())
        at = i + 1
    return [100 * alone, 100 * mistakes / y.size]


if __name__ == "__main__":
    main()
