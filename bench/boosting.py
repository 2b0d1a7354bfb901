"""Rounds a second of one booster, with compiled trees and with those of River.

``python bench/boosting.py [--rows 2000]``, on optdigits; ONEBIT_DATA names the folder of the data.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from river import tree

from onebit import AdaBoostOLMpp, HoeffdingTree, play, streams

N_LEARNERS = 20
RIVER_ROWS = 300
"""As many take as long as thousands with compiled trees."""


def main() -> None:
    """Print a line for each kind of tree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000, help="at most this many rows")
    most = parser.parse_args().rows
    X, y = streams.load("optdigits", seed=0, prepared=False)
    kinds = {
        "HoeffdingTree": HoeffdingTree(leaves="naive_bayes"),
        "HoeffdingTree, half of the features": HoeffdingTree(
            leaves="naive_bayes", max_features=0.5
        ),
        "River HoeffdingTreeClassifier": tree.HoeffdingTreeClassifier(),
    }
    print(f"AdaBoostOLMpp with {N_LEARNERS} weak learners, optdigits (10 classes, 64 features)")
    for title, weak in kinds.items():
        n = min(most, RIVER_ROWS) if title.startswith("River") else min(most, y.size)
        play(AdaBoostOLMpp(weak, N_LEARNERS, classes=np.unique(y)), X[:10], y[:10])  # compiles
        booster = AdaBoostOLMpp(weak, N_LEARNERS, random_state=0)
        start = time.process_time()
        play(booster, X[:n], y[:n])
        seconds = time.process_time() - start
        print(f"    {title:<40}{n / seconds:10,.0f} rounds a second ({n:,})", flush=True)


if __name__ == "__main__":
    main()
