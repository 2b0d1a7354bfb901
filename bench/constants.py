"""Other constants of OneBitClassifier: how mistakes change on streams' first rows.

``python bench/constants.py [name=value[,name=value...] ...]``, with names of
`onebit.numerics.tuning`, as in ``full.explore=0.1 full.doubt=0.5,changes.label=20``. Printed is 100
times the logarithm of the ratio of errors to those with the constants as they are, negative for
fewer mistakes, with its standard error, seed by seed. ``--diagonal`` plays the streams of the
diagonal form, not of the full one; ``--last`` plays the last rows, for a look at what was not
chosen on the first.
"""

from __future__ import annotations

import argparse

import numpy as np

from onebit import OneBitClassifier, play, streams
from onebit.numerics.tuning import tuned

FULL_STREAMS = [
    "confidit-synthetic",
    "vowel",
    "dna",
    "satimage",
    "optdigits",
    "letter",
    "poker",
    "shuttle",
    "connect4",
    "covtype",
    "kddcup99",
]
"""Those that the full form plays."""

DIAGONAL_STREAMS = [
    "mnist",
    "fars",
    "synnonsep",
    "20newsgroups",
    "reuters_r8",
    "rcv1",
    "ag_news",
    "amazon4",
    "fdu_mtl",
    "snips",
    "banking77",
    "clinc150",
]
"""Those that the diagonal form plays."""

OTHERS = [
    "full.least_lesson=0.3",
    "full.least_lesson=0.6",
    "full.explore=0.1",
    "full.constant=1",
]


def main() -> None:
    """Print a line for each stream, and the mean of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("forms", nargs="*", default=OTHERS, metavar="name=value,...")
    parser.add_argument("--diagonal", action="store_true", help="the diagonal form, not the full")
    parser.add_argument("--views", default="line", help="the members of the mixture")
    parser.add_argument("--streams", metavar="A,B,...")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--last", action="store_true", help="the last rows, not the first")
    given = parser.parse_args()
    print(f"{'stream':<20}{'error %':>8}" + "".join(f"  {text:>19}" for text in given.forms))
    means = []
    names = DIAGONAL_STREAMS if given.diagonal else FULL_STREAMS
    for name in given.streams.split(",") if given.streams else names:
        runs = [errors(name, seed, given) for seed in range(given.seeds)]
        found = np.array(runs)
        ratios = 100 * np.log(found[:, 1:] / found[:, :1])
        means.append(ratios.mean(axis=0))
        sure = ratios.std(axis=0, ddof=1) / np.sqrt(given.seeds)
        print(f"{name:<20}{100 * found[:, 0].mean():8.2f}", end="")
        columns = zip(given.forms, means[-1], sure, strict=True)
        for text, mean, se in columns:
            print(f"  {f'{mean:+.1f} ±{se:4.1f}':>{max(19, len(text))}}", end="")
        print(flush=True)
    print(f"{'mean':<28}", end="")
    for text, mean in zip(given.forms, np.mean(means, axis=0), strict=True):
        print(f"  {f'{mean:+.1f}      ':>{max(19, len(text))}}", end="")
    print()


def errors(name: str, seed: int, given: argparse.Namespace) -> list[float]:
    """Return the share of mistakes with the constants as they are, and with others."""
    X, y = streams.load(name, seed=seed)
    classes, rows = np.unique(y), slice(-given.rows, None) if given.last else slice(given.rows)
    covariance = "diagonal" if given.diagonal else "full"
    found = []
    for constants in [{}, *(parsed(text) for text in given.forms)]:
        with tuned(**constants):
            learner = OneBitClassifier(
                classes=classes, random_state=seed, covariance=covariance, views=given.views
            )
            found.append(play(learner, X[rows], y[rows], record=False).error_rate)
    return found


def parsed(text: str) -> dict[str, float]:
    """Return constants by their names."""
    pairs = (pair.split("=") for pair in text.split(","))
    return {name: float(value) for name, value in pairs}


if __name__ == "__main__":
    main()
