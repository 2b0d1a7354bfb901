"""Clicks: what to tell a learner of visitors who click nothing.

A shop shows each visitor one of 20 articles. x has ten numbers. About half of the visitors would
click none of the articles, and some would click several. A click is ``correct=True``. What is told
of a visitor who did not click: ``correct=False``, or ``truth=NONE_OF_THESE``, which is for someone
who looked at all labels.

    python bench/clicks.py --seeds 3
"""

from __future__ import annotations

import argparse

import numpy as np

from onebit import NONE_OF_THESE, OneBitClassifier

VISITORS, ARTICLES, FEATURES = 20_000, 20, 10
BIAS, STRENGTH = -5.5, 0.7
"""Log-odds of a click on an average article, and how much they depend on the visitor."""


def shop(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the visitors, and which articles each would click."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(VISITORS, FEATURES))
    scores = BIAS + rng.normal(size=ARTICLES) + STRENGTH * X @ rng.normal(size=(FEATURES, ARTICLES))
    return X, rng.random(scores.shape) < 1.0 / (1.0 + np.exp(-scores))


def clicks(X: np.ndarray, would: np.ndarray, seed: int, unclicked: dict[str, object]) -> int:
    """Return how many visitors click what a learner shows, if it is told this of the others."""
    learner, count = OneBitClassifier(classes=range(ARTICLES), random_state=seed), 0
    for x, liked in zip(X, would, strict=True):
        decision = learner.decide(x)
        clicked = bool(liked[decision.label])
        learner.learn(decision, **({"correct": True} if clicked else unclicked))
        count += clicked
    return count


def main() -> None:
    """Print the shop, and the clicks of each way."""
    parser = argparse.ArgumentParser(description="Clicks with either feedback.")
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    shops = [shop(seed) for seed in seeds]
    number = [would.sum(axis=1) for _, would in shops]
    rows = {
        "would click none, %": [100 * np.mean(n == 0) for n in number],
        "would click several, %": [100 * np.mean(n > 1) for n in number],
        "clicks of a random article": [would.mean(axis=0).mean() * VISITORS for _, would in shops],
        "clicks of the best article": [would.sum(axis=0).max() for _, would in shops],
        "clicks, correct=False": [
            clicks(*shop, seed, {"correct": False}) for seed, shop in zip(seeds, shops, strict=True)
        ],
        "clicks, truth=NONE_OF_THESE": [
            clicks(*shop, seed, {"truth": NONE_OF_THESE})
            for seed, shop in zip(seeds, shops, strict=True)
        ],
    }
    for name, values in rows.items():
        print(f"{name:<30}" + "".join(f"{value:>10,.0f}" for value in values))


if __name__ == "__main__":
    main()
