"""What each input of a model adds to the difference of two labels' scores.

The kernels leave what a model sees of x, normalised, in its scratch, and its weights are the state:
contributions are products of the two. Nothing is scaled, cut or normalised a second time here.

Every x has a bin in each column, and all weights of a column could be raised, and those of another
lowered, without any change of scores. So where a view has a sample of examples, what each column,
and each pair of columns, adds on average over the sample is subtracted there and added to the
constant: reasons say how x differs from other examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp

from onebit.core.example import INDEX, Example
from onebit.core.explanation import (
    AVERAGE,
    BIN,
    CONSTANT,
    DESCRIPTION,
    LINEAR,
    NEIGHBOURS,
    PAIR,
    PRODUCT,
    TRIPLE,
    Contribution,
    Input,
)
from onebit.numerics.bins import Bins, cells_of_bins, columns_of_bins, sampled_rows
from onebit.numerics.descriptions import MEAN
from onebit.numerics.members import Member, Mixture
from onebit.numerics.neighbours import effective_weight, parts_of
from onebit.numerics.pair_products import Products, columns_of_products
from onebit.numerics.pairs import FACTOR, weighted_corrections
from onebit.numerics.scales import Scales, last_inputs
from onebit.numerics.views import last_encoded

Score = Callable[[Example], object]
"""A function that computes the scores of an example, which thereby becomes the last x."""


class Weighed(NamedTuple):
    """A model, and the factors of its scores.

    Attributes
    ----------
    name
        Name of the model.
    member
        The model.
    factors
        A factor for each of two labels, by their positions.
    """

    name: str
    member: Member
    factors: Mapping[int, float]


class InputAmounts(NamedTuple):
    """What the inputs of a model add, for the last x.

    Attributes
    ----------
    amounts
        What each input adds.
    kinds
        Kinds of the inputs.
    columns
        The columns of each input, three places; -1 where it has fewer.
    """

    amounts: np.ndarray
    kinds: list[str]
    columns: np.ndarray


def contributions_of(
    models: list[Weighed],
    scales: Scales | None,
    example: Example,
    sample: np.ndarray | None,
    score: Score,
) -> list[Contribution]:
    """Return what each input adds to the sum of the models' scores, times their factors.

    `example` is the last x; afterwards, if there is a sample, one of the sample is.
    """
    found = []
    for model in models:
        view = model.member.view_of_x
        cells = cells_by_kind(view) if isinstance(view, Bins) else {}
        added = amounts_added_by(model, scales, example)
        for kind, all_columns, amount in zip(
            added.kinds, added.columns.tolist(), added.amounts.tolist(), strict=True
        ):
            if amount:
                columns = tuple(column for column in all_columns if column >= 0)
                cell = tuple(cells[kind][c] for c in columns) if kind in cells else ()
                found.append(Contribution(Input(kind, columns, cell), amount, model.name))
    if sample is not None:
        found += average_contributions(models, scales, sample, score)
    return found


def cells_by_kind(bins: Bins) -> dict[str, dict[int, str]]:
    """Return what holds of the values of each column, for each kind of cells."""
    cells = cells_of_bins(bins)
    return {BIN: cells, PAIR: cells, TRIPLE: cells_of_bins(bins, in_triples=True)}


def amounts_added_by(model: Weighed, scales: Scales | None, example: Example) -> InputAmounts:
    """Return what the inputs of a model add, for the last x."""
    member, d = model.member, example.n_features
    seen = last_encoded.py_func(member.view_of_x, last_inputs.py_func(scales, example))
    unit = member.posterior.scratch.x[: seen.indices.size]
    W = member.posterior.W[seen.indices]
    added = InputAmounts(
        unit * sum(factor * W[:, k] for k, factor in model.factors.items()),
        *inputs_of(member.view_of_x, seen, d),
    )
    descriptions = member.descriptions
    if descriptions is None or not len(descriptions.D):
        return added
    at = np.flatnonzero(seen.indices < d)
    rows = descriptions.place[seen.indices[at]] - 1
    at, D = at[rows >= 0], descriptions.D[rows[rows >= 0]]
    theta = descriptions.numbers[MEAN] / math.sqrt(max(member.posterior.scratch.stretch[0], 1e-300))
    more = theta * unit[at] * sum(factor * D[:, k] for k, factor in model.factors.items())
    return InputAmounts(
        np.concatenate([added.amounts, more]),
        added.kinds + [DESCRIPTION] * at.size,
        np.concatenate([added.columns, single_columns(seen.indices[at])]),
    )


def inputs_of(view: Bins | Products | None, seen: Example, d: int) -> tuple[list[str], np.ndarray]:
    """Return the kinds and the columns of what a view makes of the last x, of d features."""
    indices = seen.indices.astype(np.int64)
    if isinstance(view, Bins):
        columns = columns_of_bins(view)
        one, two = np.where(indices > d, BIN, LINEAR), PAIR
    elif isinstance(view, Products):
        columns = columns_of_products(view, d)
        one, two = np.where(indices >= d, PRODUCT, LINEAR), PRODUCT
    else:
        columns = single_columns(np.where(indices < d, indices, -1))
        one, two = np.full(indices.size, LINEAR), PAIR
    n = np.count_nonzero(columns >= 0, axis=1)
    return np.select([n == 0, n == 1, n == 2], [CONSTANT, one, two], TRIPLE).tolist(), columns


def single_columns(columns: np.ndarray) -> np.ndarray:
    """Return one column for each input, or -1, in three places."""
    return np.pad(columns.astype(np.int64)[:, None], ((0, 0), (0, 2)), constant_values=-1)


def average_contributions(
    models: list[Weighed], scales: Scales | None, sample: np.ndarray, score: Score
) -> list[Contribution]:
    """Return contributions that move averages over a sample of examples to the constant."""
    d = sample.shape[1]
    amounts: dict[str, list[InputAmounts]] = {model.name: [] for model in models}
    for values in sample:
        example = Example(np.arange(d, dtype=INDEX), np.ascontiguousarray(values), d)
        score(example)
        for model in models:
            amounts[model.name].append(amounts_added_by(model, scales, example))
    found = []
    for name, added in amounts.items():
        if not added:
            continue
        rows = np.concatenate([one.columns for one in added])
        keys = (rows + 1) @ (d + 1) ** np.arange(3)
        _, place, group = np.unique(keys, return_index=True, return_inverse=True)
        totals = np.bincount(group, np.concatenate([one.amounts for one in added])) / len(sample)
        for all_columns, amount in zip(rows[place].tolist(), totals.tolist(), strict=True):
            columns = tuple(column for column in all_columns if column >= 0)
            if columns and amount:
                found.append(Contribution(Input(AVERAGE, columns), -amount, name))
                found.append(Contribution(Input(AVERAGE, ()), amount, name))
    return found


def sample_of(members: Iterable[Member]) -> np.ndarray | None:
    """Return the sample of examples that a view has, of shape (n, n_features), if one has it."""
    views = [member.view_of_x for member in members]
    return next((sampled_rows(view) for view in views if isinstance(view, Bins)), None)


# Mixtures


def weighed_members(mixture: Mixture, k: int, other: int) -> list[Weighed]:
    """Return the members, with factors of their scores.

    The products add up to the difference of the mixture's scores of two labels, minus what pairs
    and neighbours add.
    """
    members = mixture.named.items()
    if len(members) == 1:
        return [Weighed(name, member, {k: 1.0, other: -1.0}) for name, member in members]
    found = []
    for (name, member), share in zip(members, shares_of_members(mixture, k, other), strict=True):
        f = member.posterior.scratch.f
        if share:
            found.append(Weighed(name, member, {k: share * f[k], other: -share * f[other]}))
    return found


def shares_of_members(mixture: Mixture, k: int, other: int) -> list[float]:
    """Return what the difference of each member's shrunk scores is multiplied with."""
    parts, rest = parts_of_members(mixture, k, other), share_beside_neighbours(mixture, k, other)
    return [rest * share for share in logarithmic_shares(parts)]


def parts_of_members(mixture: Mixture, k: int, other: int) -> list[tuple[float, float]]:
    """Return the logarithms of what each member adds to the probabilities of two labels."""
    least = mixture.settings.least_weight
    weights = [effective_weight.py_func(weight, least) for weight in mixture.trust.tolist()]
    found = []
    for member, weight in zip(mixture.named.values(), weights, strict=True):
        scratch = member.posterior.scratch
        found.append(log_parts(weight / sum(weights), scratch.f * scratch.scores, k, other))
    return found


def share_beside_neighbours(mixture: Mixture, k: int, other: int) -> float:
    """Return what the difference of the scores that neighbours correct is multiplied with."""
    if mixture.neighbours is None:
        return 1.0
    part, added = parts_of(mixture.neighbours, mixture.settings.least_weight)
    others = logsumexp(parts_of_members(mixture, k, other), axis=0)
    others += np.log(part * factors_of(mixture)[[k, other]])
    with np.errstate(divide="ignore"):
        of_neighbours = np.log(added[[k, other]])
    return logarithmic_shares([tuple(others.tolist()), tuple(of_neighbours.tolist())])[0]


def factors_of(mixture: Mixture) -> np.ndarray:
    """Return what pairs multiply the probability of each label with."""
    pairs = mixture.weighed_pairs
    return np.ones(mixture.scratch.p.size) if pairs is None else pairs.scratch.labels[FACTOR]


def added_by_pairs(mixture: Mixture, k: int, other: int) -> list[Contribution]:
    """Return what each pair and triple of columns that corrects members adds to the difference."""
    pairs, cells = mixture.weighed_pairs, mixture.members.cells
    if pairs is None or cells is None:
        return []
    view = cells.view_of_x
    assert isinstance(view, Bins)  # what cells see
    rest = share_beside_neighbours(mixture, k, other)
    of_k, of_other = pairs.scratch.labels[FACTOR, [k, other]].tolist()
    rest *= math.exp(-log_logarithmic_mean(math.log(of_k), math.log(of_other)))
    corrections = weighted_corrections(pairs, view, mixture.settings.least_weight)
    texts, found = cells_by_kind(view), []
    amounts = rest * (corrections[:, k] - corrections[:, other])
    for all_columns, amount in zip(
        columns_of_bins(view)[-pairs.trust.size :].tolist(), amounts.tolist(), strict=True
    ):
        if amount:
            columns = tuple(column for column in all_columns if column >= 0)
            kind = TRIPLE if len(columns) == 3 else PAIR
            cell = tuple(texts[kind][column] for column in columns)
            found.append(Contribution(Input(kind, columns, cell), amount, "pairs"))
    return found


def added_by_neighbours(mixture: Mixture, k: int, other: int) -> list[Contribution]:
    """Return what neighbours add to the difference of two scores: nothing, or one contribution.

    The logarithm of a quotient P / Q is (P - Q) / L(P, Q), so that a part of P and Q adds its own
    difference over L, also where it is zero. Where P or Q itself is, scores are bounds, and members
    alone explain them.
    """
    p = mixture.scratch.p
    if mixture.neighbours is None or min(p[k], p[other]) < 1e-300:
        return []
    _, added = parts_of(mixture.neighbours, mixture.settings.least_weight)
    log_mean = log_logarithmic_mean(math.log(p[k]), math.log(p[other]))
    amount = float(added[k] - added[other]) * math.exp(-log_mean)
    return [Contribution(Input(NEIGHBOURS, ()), amount, "neighbours")] if amount else []


def log_parts(weight: float, z: np.ndarray, k: int, other: int) -> tuple[float, float]:
    """Return ln(weight p(k)) and ln(weight p(other)), where p is softmax(z)."""
    log_weight, log_p = math.log(weight) if weight > 0.0 else -math.inf, log_softmax(z)
    return log_weight + float(log_p[k]), log_weight + float(log_p[other])


def logarithmic_shares(parts: list[tuple[float, float]]) -> list[float]:
    """Return L(a_m, b_m) / L(sum of a, sum of b) for each pair of logarithms, ln a_m and ln b_m.

    L is the logarithmic mean. These are the c_m with which the sum of c_m ln(a_m / b_m) is the
    logarithm of the quotient of the sums.
    """
    total = log_logarithmic_mean(*logsumexp(parts, axis=0).tolist())
    return [math.exp(log_logarithmic_mean(*one) - total) for one in parts]


def log_logarithmic_mean(log_a: float, log_b: float) -> float:
    """Return ln L(a, b) from ln a and ln b, where L(a, b) = (a - b) / (ln a - ln b)."""
    if math.isinf(log_a) and math.isinf(log_b):
        return -math.inf
    # L(a, b) = sqrt(a b) sinh(h) / h, with h half the difference of the logarithms.
    h = 0.5 * abs(log_a - log_b)
    if h < 1e-3:
        return 0.5 * (log_a + log_b) + h * h / 6.0
    log_sinh = h + math.log1p(-math.exp(-2.0 * h)) - math.log(2.0)
    return 0.5 * (log_a + log_b) + log_sinh - math.log(h)
