"""Other tools that play the same rounds: Vowpal Wabbit, contextualbandits, bayesianbandits.

A tool chooses a label for each row and is told one bit, unless its name says that it is told every
label. Columns are standardised in hindsight for all of them: their users would do so, and the tools
do not. `OneBitClassifier` gets the columns as they are.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from onebit.lab.feedback import Feedback
from onebit.lab.measures import ONLINE, Online, result_of_labels, standardized, with_constant


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

    def labels_told_later(
        self, X: Any, y: np.ndarray, n_classes: int, seed: int, feedback: Feedback
    ) -> np.ndarray:
        """Return the label chosen in each round, where bits come late or not at all."""
        raise ValueError(f"{self} takes each bit at once")

    def play(
        self, X: Any, y: np.ndarray, n_classes: int, seed: int, measure: Online = ONLINE
    ) -> dict[str, Any]:
        """Return rounds, mistakes and time; tools do not say where they explored or updated."""
        start = perf_counter()
        with threadpool_limits(1):  # other processes play on the other cores
            if measure.feedback.is_immediate:
                labels = self.labels(X, y, n_classes, seed)
            else:
                labels = self.labels_told_later(X, y, n_classes, seed, measure.feedback)
        found = result_of_labels(labels, y, measure.first_counted(y.size), perf_counter() - start)
        return found | {"version": self.version}


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
    standardize : bool
        Whether columns are standardised in hindsight, or played as they are.
    reduction : str
        "--cbify" for one bit, "--oaa" to be told every label.
    """

    package = "vowpalwabbit"

    BITS = 22
    """The table of weights has 2^22 places, so that few of the products share one."""

    def __init__(
        self,
        exploration: str = "",
        interactions: str = "",
        learning_rate: float = 0.5,
        standardize: bool = True,
        reduction: str = "--cbify",
    ) -> None:
        self.exploration = exploration
        self.interactions = interactions
        self.learning_rate = learning_rate
        self.standardize = standardize
        self.reduction = reduction

    def command(self, n_classes: int, seed: int) -> list[str]:
        """Return the arguments of the command line."""
        return [
            *(self.reduction, str(n_classes), *self.exploration.split()),
            *self.interactions.split(),
            *("--learning_rate", f"{self.learning_rate:g}", "-b", str(self.BITS)),
            *("--random_seed", str(seed)),
        ]

    def _features(self, X: Any) -> Iterator[str]:
        return vw_features(standardized(X) if self.standardize else X)

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return what it writes as its predictions; they must have the mistakes that it counts."""
        truths = map(str, (y + 1).tolist())
        labels, counted = self._played(X, truths, self.command(n_classes, seed))
        if labels.shape != y.shape or np.count_nonzero(labels != y) != round(counted):
            raise ValueError("Vowpal Wabbit wrote other labels than it counted")
        return labels

    def labels_of_several(self, X: Any, right: np.ndarray, seed: int) -> np.ndarray:
        """Return the label chosen in each round, where several labels are `right`, or none.

        It is told the cost of the label that it chose, 0 or 1, of the costs of all.
        """
        n_classes = right.shape[1]
        costs = [f"{k + 1}:%d" for k in range(n_classes)]
        truths = (" ".join(costs) % tuple(row) for row in (~right).tolist())
        command = [*self.command(n_classes, seed), "--cbify_cs"]
        labels, counted = self._played(X, truths, command)
        is_right = right[np.arange(len(right)), labels]
        if np.count_nonzero(right.any(axis=1) & ~is_right) != round(counted):
            raise ValueError("Vowpal Wabbit wrote other labels than it counted")
        return labels

    def _played(
        self, X: Any, truths: Iterable[str], command: list[str]
    ) -> tuple[np.ndarray, float]:
        """Return the labels that it writes as its predictions, and the cost that it counts."""
        from vowpalwabbit import Workspace

        with tempfile.TemporaryDirectory() as folder:
            rounds, predictions = Path(folder, "rounds.txt"), Path(folder, "labels.txt")
            with rounds.open("w") as file:
                for truth, features in zip(truths, self._features(X), strict=True):
                    file.write(f"{truth} {features}\n")
            files = ["--data", str(rounds), "--predictions", str(predictions)]
            workspace = Workspace(arg_list=[*command, *files, "--quiet"])
            counted = workspace.get_sum_loss()
            workspace.finish()
            return np.loadtxt(predictions, dtype=np.int64, ndmin=1) - 1, counted

    def labels_told_later(
        self, X: Any, y: np.ndarray, n_classes: int, seed: int, feedback: Feedback
    ) -> np.ndarray:
        """Return labels drawn from the probabilities that it gives.

        --cbify, which draws by itself, can only be told at once.
        """
        from vowpalwabbit import Workspace

        command = self.command(n_classes, seed)
        command[0] = "--cb_explore"
        command = [word for word in command if word != "--cb_explore_adf"]
        workspace = Workspace(arg_list=[*command, "--quiet"])
        lines = list(self._features(X))
        rng = np.random.default_rng([seed, 2])

        def decide(t: int) -> tuple[int, tuple[int, int, float]]:
            p = np.array(workspace.predict(lines[t]))
            p /= p.sum()
            label = int(rng.choice(p.size, p=p))
            return label, (t, label, p[label])

        def learn(decision: tuple[int, int, float], correct: bool) -> None:
            t, label, probability = decision
            workspace.learn(f"{label + 1}:{int(not correct)}:{probability:.6g} {lines[t]}")

        labels = feedback.labels(y, seed, decide, learn)
        workspace.finish()
        return labels


def vw_features(X: Any) -> Iterator[str]:
    """Yield the features of each round in Vowpal Wabbit's text.

    Names of features are not numbers: it takes numbers for places in its table of weights, and
    under its bandit reductions those of different labels then collide.
    """
    X = sp.csr_array(X)
    words = [f"f{j}:%.6g" for j in range(X.shape[1])]
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        yield "|x " + " ".join([words[j] for j in X.indices[row]]) % tuple(X.data[row].tolist())


class Contextualbandits(Tool):
    """A policy of contextualbandits.

    Parameters
    ----------
    standardize : bool
        Whether columns are standardised in hindsight, or played as they are.
    first_seed : int
        Added to the seed, as the package refuses a seed of 0.
    """

    package = "contextualbandits"

    def __init__(self, standardize: bool = True, first_seed: int = 0) -> None:
        self.standardize = standardize
        self.first_seed = first_seed

    def _rows(self, X: Any) -> np.ndarray:
        return _dense(standardized(X) if self.standardize else X)


class ContextualbanditsLinUCB(Contextualbandits):
    """LinUCB of contextualbandits, one row at a time.

    Parameters
    ----------
    alpha : float
        Width of the confidence intervals; by default that of the package.
    standardize, first_seed
        As in `Contextualbandits`.
    """

    def __init__(self, alpha: float = 1.0, standardize: bool = True, first_seed: int = 0) -> None:
        super().__init__(standardize, first_seed)
        self.alpha = alpha

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the label chosen in each round."""
        from contextualbandits.online import LinUCB

        X, seed = self._rows(X), seed + self.first_seed
        model = LinUCB(nchoices=n_classes, alpha=self.alpha, random_state=seed)
        labels = np.empty(y.size, dtype=np.int64)
        for t in range(y.size):
            x = X[t : t + 1]
            labels[t] = model.predict(x)[0]
            model.partial_fit(x, labels[t : t + 1], (labels[t : t + 1] == y[t]).astype(np.float64))
        return labels


class ContextualbanditsTrees(Contextualbandits):
    """The tree explorer of contextualbandits, `PartitionedTS`, with its default parameters.

    It cannot be updated: the trees are grown again from all rounds when there are a tenth more.
    """

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the label chosen in each round."""
        from contextualbandits.online import PartitionedTS

        X, seed = self._rows(X), seed + self.first_seed
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

    def play(
        self, X: Any, y: np.ndarray, n_classes: int, seed: int, measure: Online = ONLINE
    ) -> dict[str, Any]:
        """Return also how many columns and labels the stream has."""
        y = y[measure.first_counted(y.size) :]
        sizes = {"n_features": X.shape[1], "n_classes": n_classes}
        return {**super().play(X, y, n_classes, seed), **sizes}


class ToldEveryLabel(Tool):
    """A classifier of scikit-learn, told every label, with its default parameters.

    It is trained again on all rounds when there are a fifth more. Subclasses define `_model`.
    """

    package = "scikit-learn"

    def _model(self, seed: int) -> Any:
        """Return the classifier before it is trained."""
        raise NotImplementedError

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the predictions for each block by the model that was trained before it."""
        X = self._rows(X)
        labels = np.zeros(y.size, dtype=np.int64)
        for first, last in _blocks(y.size, 0.2):
            told = y[:first]
            if np.unique(told).size > 1:
                labels[first:last] = self._model(seed).fit(X[:first], told).predict(X[first:last])
            elif first:
                labels[first:last] = told[0]
        return labels

    def _rows(self, X: Any) -> np.ndarray:
        return _dense(standardized(X))


class BoostedTrees(ToldEveryLabel):
    """Gradient-boosted trees, which do not depend on the scales of columns."""

    def _model(self, seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=seed)

    def _rows(self, X: Any) -> np.ndarray:
        return _dense(X)


class RandomForest(ToldEveryLabel):
    """A random forest."""

    def _model(self, seed: int) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(random_state=seed)


class SupportVectors(ToldEveryLabel):
    """A support vector machine with Gaussian kernels."""

    def _model(self, seed: int) -> Any:
        from sklearn.svm import SVC

        return SVC(random_state=seed)


class NearestNeighbours(ToldEveryLabel):
    """The five nearest rounds."""

    def _model(self, seed: int) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier()


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
