"""Other tools that play the same rounds: Vowpal Wabbit, contextualbandits, bayesianbandits.

A tool chooses a label for each row and is told one bit, unless its name says that it is told every
label. Columns are standardised in hindsight for all of them: their users would do so, and the tools
do not. `OneBitClassifier` gets the columns as they are.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from onebit.lab.measures import standardized, with_constant


class Tool(BaseEstimator):
    """A tool in one way to use it; its parameters are those of `__init__`.

    Subclasses define `labels`.

    Attributes
    ----------
    package : str
        The distribution whose version a result depends on.
    """

    package: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @property
    def version(self) -> str | None:
        """The package and its version, or None if it is not installed."""
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return None

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the label chosen in each round; `y` says only what `feedback` allows."""
        raise NotImplementedError

    def play(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> dict[str, Any]:
        """Return rounds, mistakes and time; tools do not say where they explored or updated."""
        start = perf_counter()
        with threadpool_limits(1):  # other processes play on the other cores
            labels = self.labels(X, y, n_classes, seed)
        seconds = perf_counter() - start
        mistakes = int(np.count_nonzero(labels != y))
        return result(len(y), mistakes, seconds, self.version)


def result(rounds: int, mistakes: int, seconds: float, version: str | None) -> dict[str, Any]:
    """Return the result of a tool's run, with the columns that runs of learners have."""
    return {
        "rounds": rounds,
        "mistakes": mistakes,
        "explored": math.nan,
        "updated": math.nan,
        "error": mistakes / rounds,
        "seconds": seconds,
        "version": version,
    }


class VowpalWabbit(Tool):
    """Vowpal Wabbit under --cbify, which draws a label, learns from its bit and counts mistakes.

    So `vw` on the command line plays the same rounds: `command` has all arguments but the files.

    Parameters
    ----------
    exploration : str
        The arguments that say how it explores, such as "--squarecb".
    interactions : str
        Such as "-q ::", all products of two columns.
    learning_rate : float
    """

    package = "vowpalwabbit"

    BITS = 22
    """The table of weights has 2^22 places, so that few of the products share one."""

    def __init__(
        self, exploration: str = "", interactions: str = "", learning_rate: float = 0.5
    ) -> None:
        self.exploration = exploration
        self.interactions = interactions
        self.learning_rate = learning_rate

    def command(self, n_classes: int, seed: int) -> list[str]:
        """Return the arguments of the command line."""
        return [
            *("--cbify", str(n_classes), *self.exploration.split(), *self.interactions.split()),
            *("--learning_rate", f"{self.learning_rate:g}", "-b", str(self.BITS)),
            *("--random_seed", str(seed)),
        ]

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return what it writes as its predictions; they must have the mistakes that it counts."""
        from vowpalwabbit import Workspace

        with tempfile.TemporaryDirectory() as folder:
            rounds, predictions = Path(folder, "rounds.txt"), Path(folder, "labels.txt")
            rounds.write_text("".join(vw_lines(X, y)))
            files = ["--data", str(rounds), "--predictions", str(predictions)]
            workspace = Workspace(arg_list=[*self.command(n_classes, seed), *files, "--quiet"])
            counted = workspace.get_sum_loss()
            workspace.finish()
            labels = np.loadtxt(predictions, dtype=np.int64, ndmin=1) - 1
        if labels.shape != y.shape or np.count_nonzero(labels != y) != round(counted):
            raise ValueError("Vowpal Wabbit wrote other labels than it counted")
        return labels


def vw_lines(X: Any, y: np.ndarray) -> Iterator[str]:
    """Yield each round as a line of Vowpal Wabbit's text, columns standardised.

    Names of features are no numbers: it takes numbers for places in its table of weights, and
    under its bandit reductions those of different labels then collide.
    """
    X = sp.csr_array(standardized(X))
    words = [f"f{j}:%.6g" for j in range(X.shape[1])]
    for i, label in enumerate((y + 1).tolist()):
        row = slice(X.indptr[i], X.indptr[i + 1])
        features = " ".join([words[j] for j in X.indices[row]]) % tuple(X.data[row].tolist())
        yield f"{label} |x {features}\n"


class ContextualbanditsLinUCB(Tool):
    """LinUCB of contextualbandits, one row at a time, with its default parameters."""

    package = "contextualbandits"

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the label chosen in each round."""
        from contextualbandits.online import LinUCB

        X = _dense(standardized(X))
        model = LinUCB(nchoices=n_classes, random_state=seed)
        labels = np.empty(y.size, dtype=np.int64)
        for t in range(y.size):
            x = X[t : t + 1]
            labels[t] = model.predict(x)[0]
            model.partial_fit(x, labels[t : t + 1], (labels[t : t + 1] == y[t]).astype(np.float64))
        return labels


class ContextualbanditsTrees(Tool):
    """The tree explorer of contextualbandits, `PartitionedTS`, with its default parameters.

    It cannot be updated: the trees are grown again from all rounds when there are a tenth more.
    """

    package = "contextualbandits"

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the label chosen in each round."""
        from contextualbandits.online import PartitionedTS

        X = _dense(standardized(X))
        model = PartitionedTS(nchoices=n_classes, random_state=seed, njobs=1)
        labels = np.empty(y.size, dtype=np.int64)
        for first, last in _blocks(y.size, 0.1):
            labels[first:last] = model.predict(X[first:last])
            correct = (labels[:last] == y[:last]).astype(np.float64)
            model.fit(X[:last], labels[:last], correct)
        return labels


class BayesianBandits(Tool):
    """Thompson sampling of bayesianbandits, with a Bayesian logistic regression for each label.

    One row at a time, with its default parameters and a constant column.
    """

    package = "bayesianbandits"

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the label chosen in each round."""
        from bayesianbandits import Arm, BayesianGLM, ContextualAgent, ThompsonSampling

        X = with_constant(_dense(standardized(X)))
        arms = [Arm(k, learner=BayesianGLM(link="logit")) for k in range(n_classes)]
        agent = ContextualAgent(arms, ThompsonSampling(), random_seed=seed)
        labels = np.empty(y.size, dtype=np.int64)
        with warnings.catch_warnings():
            # With few iterations by default it warns in many rounds.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for t in range(y.size):
                x = X[t : t + 1]
                labels[t] = agent.pull(x)[0]
                agent.update(x, np.array([float(labels[t] == y[t])]))
        return labels


class ConstantLabel(Tool):
    """The label that is right most often, in hindsight."""

    package = "numpy"

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the same label for each round."""
        return np.full(y.size, np.bincount(y).argmax())

    def play(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> dict[str, Any]:
        """Return also how many columns and labels the stream has."""
        sizes = {"n_features": X.shape[1], "n_classes": n_classes}
        return {**super().play(X, y, n_classes, seed), **sizes}


class BoostedTrees(Tool):
    """Gradient-boosted trees of scikit-learn, told every label, with their default parameters.

    They are grown again from all rounds when there are a fifth more.
    """

    package = "scikit-learn"

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the predictions for each block by the trees that were grown before it."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        X = _dense(X)
        labels = np.zeros(y.size, dtype=np.int64)
        for first, last in _blocks(y.size, 0.2):
            told = y[:first]
            if np.unique(told).size > 1:
                model = HistGradientBoostingClassifier(random_state=seed)
                labels[first:last] = model.fit(X[:first], told).predict(X[first:last])
            elif first:
                labels[first:last] = told[0]
        return labels


FIRST_BLOCK = 50
"""Rounds before trees are grown for the first time, and the fewest between two times."""


def _blocks(n: int, share: float) -> Iterator[tuple[int, int]]:
    """Yield the first round of each block, and of the next; blocks grow with the rounds before."""
    first = 0
    while first < n:
        last = min(n, first + max(FIRST_BLOCK, int(share * first)))
        yield first, last
        first = last


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
