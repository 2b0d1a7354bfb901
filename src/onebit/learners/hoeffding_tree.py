"""Hoeffding trees: decision trees that grow with the stream; stumps and naive Bayes among them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import Cost, Kernels, ProbabilityLearner, lean_kernel
from onebit.core.generator import uniform
from onebit.core.ranges import PART
from onebit.core.state import MOST_ROUNDS, Count, Field, Generator
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import greedy
from onebit.theory import bounds

_LEAF = -1
"""Feature of a node that does not split."""

_THRESHOLDS = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5)
"""Thresholds that are tried for a feature, in standard deviations from its mean."""

_LEAST_PROBABILITY = 1e-300
"""A probability used instead of zero, whose logarithm is not finite."""

_LEAST_SHARE = 0.01
"""Share of the weight of a leaf that each side of a split must have."""

_LEAST_DEVIATION = 1e-3
"""Least deviation within a class, relative to the pooled one: its values may all be equal."""


class Scratch(NamedTuple):
    """Where x is in the tree, and what its leaf predicts.

    Attributes
    ----------
    node, leaf
        Position of its leaf among the nodes, and among the leaves.
    by_counts, by_bayes
        The label that the counts, and naive Bayes, would choose there.
    """

    node: np.ndarray
    leaf: np.ndarray
    by_counts: np.ndarray
    by_bayes: np.ndarray


class Parameters(NamedTuple):
    """Parameters of `HoeffdingTree`, as numbers; `bayes`: whether leaves use naive Bayes."""

    bayes: bool
    grace: int
    log_delta: float
    tie: float


class State(NamedTuple):
    """A tree, its leaves, and what each leaf has seen.

    Attributes
    ----------
    feature, threshold
        Of each node; the feature of a leaf is -1.
    link
        The left child of a node that splits (the right one comes after it), or the position of a
        leaf among the leaves.
    n_nodes
        Number of nodes.
    counts
        Weights of the classes in each leaf, including what it inherited from its parent.
    seen
        The same without what it inherited.
    sums, squares
        Sums of weight times feature, and of weight times feature^2.
    energy
        Sum of the squared weights.
    waited
        Examples since a split was last tried.
    right
        Weight of the examples that the counts, and naive Bayes, predicted correctly.
    used
        1 for the features that the tree uses.
    """

    feature: Annotated[np.ndarray, Field("nodes", dtype=np.int64, least=_LEAF, below="features")]
    threshold: Annotated[np.ndarray, Field("nodes")]
    link: Annotated[np.ndarray, Field("nodes", dtype=np.int64, least=0)]
    n_nodes: Count
    counts: Annotated[np.ndarray, Field("n_leaves", "classes", least=0.0)]
    seen: Annotated[np.ndarray, Field("n_leaves", "classes", least=0.0)]
    sums: Annotated[np.ndarray, Field("n_leaves", "classes", "features")]
    squares: Annotated[np.ndarray, Field("n_leaves", "classes", "features", least=0.0)]
    energy: Annotated[np.ndarray, Field("n_leaves", least=0.0)]
    waited: Annotated[np.ndarray, Field("n_leaves", dtype=np.int64, least=0, most=MOST_ROUNDS)]
    right: Annotated[np.ndarray, Field("n_leaves", 2, least=0.0)]
    used: Annotated[np.ndarray, Field("features", dtype=np.int64, least=0, most=1)]
    parameters: Parameters
    scratch: Scratch
    rng: Generator

    def check(self) -> None:
        """Check that the nodes form a tree, as compiled code follows links unchecked."""
        n, leaves = int(self.n_nodes[()]), []
        if not (n % 2 == 1 and n <= self.feature.size):
            raise ValueError(f"n_nodes is {n}, of {self.feature.size} at most")
        children = []
        for node in range(n):
            if self.feature[node] == _LEAF:
                leaves.append(int(self.link[node]))
            else:
                children += [int(self.link[node]), int(self.link[node]) + 1]
                if self.link[node] <= node:
                    raise ValueError(f"link[{node}] leads back")
        if sorted(children) != list(range(1, n)) or sorted(leaves) != list(range(len(leaves))):
            raise ValueError("feature and link are not a tree")


@lean_kernel
def value_of(x, j):
    """Return feature `j` of x."""
    if x.indices.size == x.n_features:
        return x.values[j]
    lo, hi = 0, x.indices.size
    while lo < hi:
        middle = (lo + hi) // 2
        if x.indices[middle] < j:
            lo = middle + 1
        else:
            hi = middle
    return x.values[lo] if lo < x.indices.size and x.indices[lo] == j else 0.0


@lean_kernel
def find_leaf(state, x):
    """Walk from the root to the leaf of x, and store it in the scratch."""
    node = 0
    while state.feature[node] >= 0:
        right = value_of(x, state.feature[node]) > state.threshold[node]
        node = state.link[node] + np.int64(right)
    state.scratch.node[()] = node
    state.scratch.leaf[()] = state.link[node]


@lean_kernel
def fill_by_counts(state, leaf, scores):
    """Fill ln((n_k + 1 / K) / (n + 1)), for the weight n_k of class k in a leaf."""
    K, total = scores.size, 0.0
    for k in range(K):
        total += state.counts[leaf, k]
    for k in range(K):
        scores[k] = math.log((state.counts[leaf, k] + 1.0 / K) / (total + 1.0))


@lean_kernel
def add_log_densities(state, leaf, x, scores):
    """Add, for each feature and class, the logarithm of its normal density at x."""
    at = 0
    for j in range(x.n_features):
        x_j = 0.0
        if at < x.indices.size and x.indices[at] == j:
            x_j = x.values[at]
            at += 1
        least = _LEAST_DEVIATION**2 * pooled_variance(state, leaf, j) if state.used[j] else 0.0
        if least == 0.0:
            continue
        for k in range(scores.size):
            if state.seen[leaf, k] > 0.0:
                mean, variance = moments(state, leaf, k, j, least)
                scores[k] -= 0.5 * (math.log(variance) + (x_j - mean) ** 2 / variance)


@lean_kernel
def moments(state, leaf, k, j, least):
    """Return mean and variance of feature `j` among the examples of class `k` in a leaf."""
    n = state.seen[leaf, k]
    mean = state.sums[leaf, k, j] / n
    return mean, max(state.squares[leaf, k, j] / n - mean * mean, least)


@lean_kernel
def pooled_variance(state, leaf, j):
    """Return the variance of feature `j` in a leaf; zero where it is only rounding error."""
    n = total = square = 0.0
    for k in range(state.seen.shape[1]):
        n += state.seen[leaf, k]
        total += state.sums[leaf, k, j]
        square += state.squares[leaf, k, j]
    if n == 0.0:
        return 0.0
    variance = square / n - (total / n) ** 2
    return variance if variance > 1e-12 * square / n else 0.0


@lean_kernel
def score(state, x, scores):
    """Fill the logarithms of the probabilities of the classes in the leaf of x."""
    find_leaf(state, x)
    leaf, scratch = state.scratch.leaf[()], state.scratch
    fill_by_counts(state, leaf, scores)
    if not state.parameters.bayes:
        return
    scratch.by_counts[()] = argmax(scores)
    by_bayes = state.right[leaf, 1] >= state.right[leaf, 0]
    fill_by_bayes(state, leaf, x, scores)
    scratch.by_bayes[()] = argmax(scores)
    if not by_bayes:
        fill_by_counts(state, leaf, scores)


@lean_kernel
def fill_by_bayes(state, leaf, x, scores):
    """Fill the logarithms of the probabilities that naive Bayes gives the classes in a leaf."""
    total = 0.0
    for k in range(scores.size):
        total += state.seen[leaf, k]
    if total == 0.0:
        return
    for k in range(scores.size):
        scores[k] = math.log(max(state.seen[leaf, k], _LEAST_PROBABILITY))
    add_log_densities(state, leaf, x, scores)
    largest, mass = -math.inf, 0.0
    for k in range(scores.size):
        if state.seen[leaf, k] > 0.0:
            largest = max(largest, scores[k])
    for k in range(scores.size):
        # The floor for classes that were never seen in this leaf, or are far too unlikely.
        known = state.seen[leaf, k] > 0.0 and scores[k] - largest > math.log(_LEAST_PROBABILITY)
        scores[k] = scores[k] - largest if known else math.log(_LEAST_PROBABILITY)
        mass += math.exp(scores[k])
    for k in range(scores.size):
        scores[k] -= math.log(mass)


@lean_kernel
def learn_weighted(state, x, truth, weight):
    """Add an example to its leaf, and split the leaf if that pays."""
    leaf, (bayes, grace, _, _) = state.scratch.leaf[()], state.parameters
    if bayes:
        state.right[leaf, 0] += weight * (state.scratch.by_counts[()] == truth)
        state.right[leaf, 1] += weight * (state.scratch.by_bayes[()] == truth)
    state.counts[leaf, truth] += weight
    full = state.n_nodes[()] == state.feature.size
    if full and not bayes:
        return  # the leaf will never split, so its moments are not needed
    state.seen[leaf, truth] += weight
    state.energy[leaf] += weight * weight
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        state.sums[leaf, truth, j] += weight * x_j
        state.squares[leaf, truth, j] += weight * x_j * x_j
    state.waited[leaf] += 1
    if not full and state.waited[leaf] >= grace:
        state.waited[leaf] = 0
        try_split(state, x.n_features)


@lean_kernel
def try_split(state, n_features):
    """Split the leaf of x at the best threshold, if Hoeffding's bound confirms the best feature.

    The gain is that of the Gini impurity, from zero to one.
    """
    leaf, (_, _, log_delta, tie) = state.scratch.leaf[()], state.parameters
    n = 0.0
    for k in range(state.seen.shape[1]):
        n += state.seen[leaf, k]
    if not n > 0.0:
        return
    best = second = threshold = 0.0
    feature = _LEAF
    for j in range(n_features):
        if not state.used[j]:
            continue
        gain, at = best_threshold(state, leaf, j, n)
        if gain > best:
            best, second = gain, best
            feature, threshold = j, at
        elif gain > second:
            second = gain
    # Effective sample size: the number of equally weighted examples with the same variance.
    epsilon = math.sqrt(log_delta * state.energy[leaf] / (2.0 * n * n))
    if feature != _LEAF and (best - second > epsilon or epsilon < tie):
        split(state, feature, threshold)


@lean_kernel
def best_threshold(state, leaf, j, n):
    """Return the best gain of a split by feature `j`, and its threshold."""
    deviation = math.sqrt(pooled_variance(state, leaf, j))
    best = at = 0.0
    if deviation == 0.0:
        return best, at
    mean = purity = 0.0
    for k in range(state.seen.shape[1]):
        mean += state.sums[leaf, k, j] / n
        purity += (state.seen[leaf, k] / n) ** 2
    for deviations in _THRESHOLDS:
        threshold = mean + deviations * deviation
        left = 0.0
        below = above = 0.0
        for k in range(state.seen.shape[1]):
            share = state.seen[leaf, k] / n
            part = share * share_below(state, leaf, k, j, threshold, deviation)
            left += part
            below += part * part
            above += (share - part) ** 2
        if _LEAST_SHARE < left < 1.0 - _LEAST_SHARE:
            gain = below / left + above / (1.0 - left) - purity
            if gain > best:
                best, at = gain, threshold
    return best, at


@lean_kernel
def share_below(state, leaf, k, j, threshold, deviation):
    """Return the share of class `k` that lies below a threshold, if its values are normal."""
    if state.seen[leaf, k] == 0.0:
        return 0.0
    mean, variance = moments(state, leaf, k, j, (_LEAST_DEVIATION * deviation) ** 2)
    return 0.5 * math.erfc((mean - threshold) / math.sqrt(2.0 * variance))


@lean_kernel
def split(state, feature, threshold):
    """Give the node of x two children: the left one takes over its leaf, the right one is new."""
    node, leaf, n = state.scratch.node[()], state.scratch.leaf[()], state.n_nodes[()]
    new = (n + 1) // 2
    deviation = math.sqrt(pooled_variance(state, leaf, feature))
    for k in range(state.seen.shape[1]):
        share = share_below(state, leaf, k, feature, threshold, deviation)
        state.counts[new, k] = (1.0 - share) * state.seen[leaf, k]
        state.counts[leaf, k] = share * state.seen[leaf, k]
        state.seen[leaf, k] = 0.0
        for j in range(state.sums.shape[2]):
            state.sums[leaf, k, j] = 0.0
            state.squares[leaf, k, j] = 0.0
    state.energy[leaf] = 0.0
    for i in range(2):
        state.right[leaf, i] = 0.0
        state.feature[n + i] = _LEAF
    state.link[n], state.link[n + 1] = leaf, new
    state.feature[node], state.threshold[node], state.link[node] = feature, threshold, n
    state.n_nodes[()] = n + 2


@lean_kernel
def learn(state, x, scores, label, probability, offer, truth):
    """Learn an example of weight one."""
    learn_weighted(state, x, truth, 1.0)
    return True


KERNELS = Kernels("hoeffding_tree", score, greedy, learn, weighted=learn_weighted)


class HoeffdingTree(ProbabilityLearner):
    """A decision tree that grows with the stream, told every label: VFDT, for small trees.

    A leaf that has seen enough examples splits at a threshold of the feature that separates the
    classes best, if by Hoeffding's bound that feature would remain the best. The tree stops growing
    at `n_leaves`. Two leaves are a decision stump; one leaf with ``leaves="naive_bayes"`` is
    Gaussian naive Bayes. It is the weak learner that onebit's boosters are designed for: it takes
    example weights, and its rounds take microseconds.

    Parameters
    ----------
    n_leaves : int >= 1, default=32
        The most leaves that the tree may have.
    leaves : {"counts", "naive_bayes"}, default="counts"
        How a leaf estimates the probability of a class: by its frequency there or, in leaves where
        that was right at least as often, by naive Bayes with a normal density for each feature and
        class.
    max_features : float in (0, 1], default=1.0
        Share of the features that the tree uses, drawn at the start. In a booster each tree draws
        its own, so that they differ.
    grace : int >= 1, default=20
        Number of examples between attempts to split a leaf.
    delta : float in (0, 1], default=0.1
        Probability that the feature of a split is not the best one, by Hoeffding's bound.
    tie : float in [0, 1], default=0.1
        Where the bound is below this, features count as equally good, and the best one so far is
        taken. The gain of a split is the decrease of the Gini impurity, from 0 to 1.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the features that are drawn. It does not explore.

    Notes
    -----
    For each leaf, class and feature, the weight and the weighted sums of x_j and x_j^2 are kept, to
    which zero features add nothing: a round costs O(nnz), and memory is 16 n_leaves K d bytes.
    Within each class, values are taken as normal with these moments. Seven thresholds are tried for
    each feature: its mean in the leaf, and up to 1.5 standard deviations from it. Naive Bayes uses
    all features, including those that are zero: O(d K).

    Hoeffding's bound is sqrt(ln(1 / delta) / (2 n)). For weighted examples, n is the effective
    sample size: the squared sum of the weights over the sum of their squares. As Gini gains are not
    means of independent draws, the bound is a heuristic here, as in all trees of this kind. The
    defaults split much earlier than VFDT's own.

    References
    ----------
    P. Domingos and G. Hulten. Mining high-speed data streams. KDD 2000.
    J. Gama, R. Rocha and P. Medas. Accurate decision trees for mining high-speed data streams.
    KDD 2003 (naive Bayes in leaves).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onebit import HoeffdingTree, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(HoeffdingTree(leaves="naive_bayes"), X, y).n_mistakes
    507
    """

    reference = "Domingos, Hulten 2000"
    cost = Cost("nnz; naive Bayes: d K")
    bound = bounds.HOEFFDING_TREE
    feedback = "full"
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"leaves": "naive_bayes", "max_features": 0.5}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_leaves": [Interval(Integral, 1, 10_000, closed="both")],
        "leaves": [StrOptions({"counts", "naive_bayes"})],
        "max_features": [PART],
        "grace": [Interval(Integral, 1, MOST_ROUNDS, closed="both")],
        "delta": [PART],
        "tie": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_leaves: int = 32,
        leaves: str = "counts",
        max_features: float = 1.0,
        grace: int = 20,
        delta: float = 0.1,
        tie: float = 0.1,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_leaves = n_leaves
        self.leaves = leaves
        self.max_features = max_features
        self.grace = grace
        self.delta = delta
        self.tie = tie
        self.classes = classes
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A leaf that sees some features only is for ensembles.
        tags.classifier_tags.poor_score = self.max_features < 1.0
        return tags

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        n = int(self.n_leaves)
        parameters = Parameters(
            bayes=self.leaves == "naive_bayes",
            grace=int(self.grace),
            log_delta=math.log(1.0 / self.delta),
            tie=float(self.tie),
        )
        return KERNELS, State(
            feature=np.full(2 * n - 1, _LEAF),
            threshold=np.zeros(2 * n - 1),
            link=np.zeros(2 * n - 1, dtype=np.int64),
            n_nodes=np.ones((), dtype=np.int64),
            counts=np.zeros((n, n_classes)),
            seen=np.zeros((n, n_classes)),
            sums=np.zeros((n, n_classes, n_features)),
            squares=np.zeros((n, n_classes, n_features)),
            energy=np.zeros(n),
            waited=np.zeros(n, dtype=np.int64),
            right=np.zeros((n, 2)),
            used=_random_subset(n_features, float(self.max_features), rng),
            parameters=parameters,
            scratch=Scratch(*(np.zeros((), dtype=np.int64) for _ in range(4))),
            rng=rng,
        )


def _random_subset(n: int, share: float, rng: np.ndarray) -> np.ndarray:
    """Return 1 for a share of `n` features, at least one, and 0 for the others."""
    used = np.zeros(n, dtype=np.int64)
    if share == 1.0:
        used[:] = 1
    else:
        order = np.argsort([uniform(rng) for _ in range(n)])
        used[order[: max(1, round(share * n))]] = 1
    return used
