"""Columns cut into bins, and pairs and triples of columns into cells: what a line cannot see.

A column with at most `LEVELS` different values has a bin for each value and one for all that come
later, as long as these are rare. Any other column is numeric: its bins are eighths, cut at the
quantiles of a sample of its values. The sample is spread over the rounds so far, the newer ones
denser. Quantiles are taken again when the number of rounds has doubled: always in the first
`LAST_CERTAIN_RENEWAL` rounds; later only if an edge has moved past its neighbour, which chance
hardly explains. Weights keep their meaning by rank.

An example becomes an indicator for the bin of each column and for the cell of each pair of columns,
beside the scaled features and a constant. Of more than `MOST_LISTED` columns, those that are no
measurements (`onebit.numerics.scales`) and are zero in the example have none: zero is what others
are compared with, and a row of indicators has as many bins as values. Pairs are left out of an
example that has too many. Of few columns and labels, each triple of columns has a cell, too; there,
two neighbouring bins of a numeric column are one. All kinds have fixed shares of the squared
length, and so of the prior variance of a score. Cells are rows of a table; where pairs have more
cells than `MOST_CELLS`, or triples more than `MOST_TRIPLE_CELLS`, they are hashed into that many
rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, rarely_called
from onebit.core.example import INDEX, LARGEST
from onebit.core.state import MOST_ROUNDS, Count, Field
from onebit.numerics.columns import sort

LEVELS = 15
"""A column with more values that are not rare is numeric."""

RARE = 16
"""Values beyond the first `LEVELS` are rare while fewer than one round in this many has one."""

N_BINS = 8
"""Bins of a numeric column."""

CODES = 16
"""Room for the codes of a column: its levels and one for others, or its bins."""

SAMPLE = 128
"""Values of a column whose quantiles are the edges of its bins."""

FIRST_RENEWAL, LAST_CERTAIN_RENEWAL = 32, 2 * SAMPLE
"""Rounds after which edges are first renewed, and last without a reason."""

MOST_CELLS = 2**16
"""Rows of the table for pairs; a power of two."""

MOST_TRIPLE_CELLS = 2**15
"""Rows of the table for triples; a power of two."""

MOST_LISTED = 64
"""Up to this many columns, all have a bin in each example, also those that are zero."""

MOST_PAIRS = 16_384
"""An example with more pairs, times the number of classes, has none: they would take too long."""

MOST_TRIPLES = 2_400
"""An example with more triples, times the number of classes, has none: twenty columns and two
classes have 2,280."""

SHARE_OF_CONSTANT, SHARE_OF_FEATURES, SHARE_OF_BINS, SHARE_OF_PAIRS = 0.05, 0.4, 0.3, 0.25
"""Shares of the squared length of an example. Without pairs, the others keep their proportions."""

SHARE_OF_TRIPLES = 0.25
"""The squared length of triples, where that of the four others together is one."""

N_LEVELS, N_OTHERS, IS_NUMERIC = 0, 1, 2
"""Columns of `Bins.kinds`."""

_HASH = 2654435761
"""Knuth's multiplier for 32 bits, 2^32 times the golden ratio, made odd."""


class Scratch(NamedTuple):
    """The last x, and memory to sort in.

    Attributes
    ----------
    x
        Its values, zeros included.
    columns, codes
        The columns that have a bin, and their bins.
    indices, values
        The example that x becomes.
    size
        Number of its values.
    sorted
        Memory in which a sample is sorted.
    edges
        Memory for new edges.
    """

    x: np.ndarray
    columns: np.ndarray
    codes: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    size: np.ndarray
    sorted: np.ndarray
    edges: np.ndarray


class Bins(NamedTuple):
    """How columns are cut.

    Attributes
    ----------
    levels
        The first different values of each column.
    kinds
        N_LEVELS, the number of these values; N_OTHERS, that of rounds with any other value;
        IS_NUMERIC, whether the column is numeric.
    edges
        Where a numeric column is cut, increasing.
    sample
        Values of each column; those of one round have one place.
    stored
        How many rounds were stored in the sample.
    n_inputs
        What `n_inputs` returns.
    """

    levels: Annotated[np.ndarray, Field("features", LEVELS, least=-LARGEST, most=LARGEST)]
    kinds: Annotated[np.ndarray, Field("features", 3, dtype=np.int64, least=0, most=MOST_ROUNDS)]
    edges: Annotated[np.ndarray, Field("features", N_BINS - 1, least=-LARGEST, most=LARGEST)]
    sample: Annotated[np.ndarray, Field("features", SAMPLE, least=-LARGEST, most=LARGEST)]
    stored: Count
    n_inputs: int
    scratch: Scratch

    def check(self) -> None:
        """Check what indices are made from."""
        if self.kinds[:, N_LEVELS].max(initial=0) > LEVELS:
            raise ValueError(f"kinds has a column with more than {LEVELS} levels")
        if self.kinds[:, IS_NUMERIC].max(initial=0) > 1:
            raise ValueError("kinds has an IS_NUMERIC that is neither 0 nor 1")
        if self.stored == 0 and self.kinds.any():
            raise ValueError("stored is 0, and values have been seen")


def n_pairs(n_features: int) -> int:
    """Return how many pairs of columns there are."""
    return n_features * (n_features - 1) // 2


def n_cells(n_features: int) -> int:
    """Return how many rows the table for pairs has."""
    return min(n_pairs(n_features) * CODES * CODES, MOST_CELLS)


def n_triples(n_features: int, n_classes: int) -> int:
    """Return how many triples of columns have cells: all, or none if they are too many."""
    n = n_features * (n_features - 1) * (n_features - 2) // 6
    return n if n * n_classes <= MOST_TRIPLES else 0


def n_triple_cells(n_features: int) -> int:
    """Return how many rows the table for triples has, for two classes and for more."""
    return min(n_triples(n_features, 2) * CODES**3, MOST_TRIPLE_CELLS)


def n_inputs(n_features: int) -> int:
    """Return how many features an example becomes; the cells of pairs and triples are the last."""
    return 1 + n_features + CODES * n_features + n_cells(n_features) + n_triple_cells(n_features)


def new_bins(n: int, n_classes: int) -> Bins:
    """Return the bins of n columns before the first round."""
    most = 1 + 2 * n + min(n_pairs(n), MOST_PAIRS // n_classes) + n_triples(n, n_classes)
    return Bins(
        levels=np.zeros((n, LEVELS)),
        kinds=np.zeros((n, 3), dtype=np.int64),
        edges=np.zeros((n, N_BINS - 1)),
        sample=np.zeros((n, SAMPLE)),
        stored=np.zeros((), dtype=np.int64),
        n_inputs=n_inputs(n),
        scratch=Scratch(
            x=np.zeros(n),
            columns=np.arange(n, dtype=INDEX),
            codes=np.zeros(n, dtype=np.int64),
            indices=np.zeros(most, dtype=INDEX),
            values=np.zeros(most),
            size=np.zeros((), dtype=np.int64),
            sorted=np.zeros(SAMPLE),
            edges=np.zeros(N_BINS - 1),
        ),
    )


def with_triples(arrays: Mapping[str, np.ndarray], place: str) -> dict[str, np.ndarray]:
    """Return the arrays of a learner whose member at `place` began before triples had cells.

    Triples take a share of the length of an example. The weights of the others grow by as much, so
    that what they say of a label stays the same.
    """
    model, named = f"{place}posterior.", dict(arrays)
    d, (n, n_classes) = len(named[f"{place}view_of_x.kinds"]), named[f"{model}W"].shape
    more = n_inputs(d) - n
    if not more:
        return named
    length = 1.0 + SHARE_OF_TRIPLES * (n_triples(d, n_classes) > 0)
    for name in ("W", "former"):
        named[model + name] = np.pad(math.sqrt(length) * named[model + name], ((0, more), (0, 0)))
    S = named[f"{model}S"]
    unseen = np.broadcast_to(S.max(axis=0), (more, n_classes))  # most cells of pairs are unseen
    named[f"{model}S"] = np.concatenate([length * S, unseen])
    if f"{model}lengths" in named:
        named[f"{model}lengths"] = named[f"{model}lengths"] * [length, 1.0]
    return named


@lean_kernel
def fill_binned(bins, x, scaled, n_classes):
    """Fill x in bins and cells; `scaled` are its scaled features, with a constant last."""
    scratch, d = bins.scratch, x.n_features
    for j in range(d):
        scratch.x[j] = 0.0
    for i in range(x.indices.size):
        scratch.x[x.indices[i]] = x.values[i]
    columns, codes, m = scratch.columns, scratch.codes, d
    if d > MOST_LISTED:
        m = scaled.indices.size - 1
        for i in range(m):
            columns[i] = scaled.indices[i]
    for i in range(m):
        codes[i] = code_of(bins, columns[i], scratch.x[columns[i]])
    indices, values = scratch.indices, scratch.values
    indices[0], values[0] = 0, math.sqrt(SHARE_OF_CONSTANT)
    n = fill_features(scaled, indices, values)
    n = fill_bins(columns, codes, m, d, indices, values, n)
    if 0 < m * (m - 1) // 2 <= MOST_PAIRS // n_classes:
        n = fill_pairs(columns, codes, m, d, indices, values, n)
    if d * (d - 1) * (d - 2) // 6 * n_classes <= MOST_TRIPLES:
        n = fill_triples(bins.kinds, codes, d, indices, values, n)
    scratch.size[()] = n


@lean_kernel
def fill_features(scaled, indices, values):
    """Fill the scaled features, without their constant, after the first input; return the end."""
    m, total = scaled.indices.size - 1, 0.0
    for i in range(m):
        total += scaled.values[i] * scaled.values[i]
    factor = math.sqrt(SHARE_OF_FEATURES / total) if total > 1e-300 else 0.0
    for i in range(m):
        indices[1 + i] = 1 + scaled.indices[i]
        values[1 + i] = factor * scaled.values[i]
    return 1 + m


@lean_kernel
def fill_bins(columns, codes, m, d, indices, values, n):
    """Fill an indicator for the bin of each of the first m columns, from n on; return the end."""
    value = math.sqrt(SHARE_OF_BINS / m) if m > 0 else 0.0
    for i in range(m):
        indices[n + i] = 1 + d + CODES * columns[i] + codes[i]
        values[n + i] = value
    return n + m


@lean_kernel
def fill_pairs(columns, codes, m, d, indices, values, n):
    """Fill an indicator for each pair of the first m columns, from n on; return the end."""
    first = 1 + d + CODES * d
    is_hashed = d * (d - 1) // 2 * CODES * CODES > MOST_CELLS
    value = math.sqrt(SHARE_OF_PAIRS / (m * (m - 1) // 2))
    for a in range(m):
        for b in range(a + 1, m):
            i, j, of_i, of_j = columns[a], columns[b], codes[a], codes[b]
            if i > j:
                i, j, of_i, of_j = j, i, of_j, of_i
            pair = i * d - i * (i + 1) // 2 + j - i - 1
            cell = CODES * CODES * pair + CODES * of_i + of_j
            if is_hashed:
                cell = ((cell * _HASH) & 0xFFFFFFFF) >> 16
            indices[n], values[n] = first + cell, value
            n += 1
    return n


@lean_kernel
def fill_triples(kinds, codes, d, indices, values, n):
    """Fill an indicator for each triple of the d columns, from n on; return the end."""
    n_triples = d * (d - 1) * (d - 2) // 6
    first = 1 + d + CODES * d + min(d * (d - 1) // 2 * CODES * CODES, MOST_CELLS)
    is_hashed = n_triples * CODES**3 > MOST_TRIPLE_CELLS
    value, triple = math.sqrt(SHARE_OF_TRIPLES / max(1, n_triples)), 0
    for a in range(d):
        for b in range(a + 1, d):
            of_both = CODES * coarse(kinds, codes, a) + coarse(kinds, codes, b)
            for c in range(b + 1, d):
                cell = CODES * (CODES * CODES * triple + of_both) + coarse(kinds, codes, c)
                if is_hashed:
                    cell = ((cell * _HASH) & 0xFFFFFFFF) >> 17
                indices[n], values[n] = first + cell, value
                n += 1
                triple += 1
    return n


@lean_kernel
def coarse(kinds, codes, j):
    """Return the code of column j in triples, where two bins of a numeric column are one."""
    return codes[j] // 2 if kinds[j, IS_NUMERIC] else codes[j]


@lean_kernel
def code_of(bins, j, x_j):
    """Return the bin of a value of column j."""
    code = 0
    if bins.kinds[j, IS_NUMERIC]:
        for i in range(N_BINS - 1):
            code += bins.edges[j, i] < x_j
        return code
    return level_of(bins, j, x_j)


@lean_kernel
def level_of(bins, j, x_j):
    """Return the place of a value among the levels of column j, `LEVELS` if it is none of them."""
    for i in range(bins.kinds[j, N_LEVELS]):
        if bins.levels[j, i] == x_j:
            return i
    return LEVELS


@lean_kernel
def observe_bins(bins, rounds):
    """Count the values of the last x, after `rounds` earlier rounds."""
    x, kinds, n = bins.scratch.x, bins.kinds, bins.stored[()]
    if is_stored(rounds):
        for j in range(x.size):
            bins.sample[j, n % SAMPLE] = x[j]
        bins.stored[()] = n + 1
    is_renewed = rounds + 1 >= FIRST_RENEWAL and (rounds + 1) & rounds == 0
    for j in range(x.size):
        if kinds[j, IS_NUMERIC]:
            if is_renewed:
                renew_edges(bins, j, rounds + 1 <= LAST_CERTAIN_RENEWAL)
        elif level_of(bins, j, x[j]) == LEVELS:
            count_level(bins, j, x[j], rounds)


@lean_kernel
def is_stored(rounds):
    """Return whether the values of a round, after `rounds` others, are stored in the sample.

    All are at first; then about half a sample each time that the number of rounds doubles. Steps
    are odd, so that a stream of two alternating kinds is met in both.
    """
    end, step = SAMPLE, 1
    while rounds >= end:
        end, step = 2 * end, 3 if step == 1 else 2 * step - 1
    return rounds % step == 0


@lean_kernel
def count_level(bins, j, x_j, rounds):
    """Count a value that is no level of column j, which may become numeric."""
    kinds = bins.kinds
    if kinds[j, N_LEVELS] < LEVELS:
        bins.levels[j, kinds[j, N_LEVELS]] = x_j
        kinds[j, N_LEVELS] += 1
        return
    kinds[j, N_OTHERS] += 1
    if RARE * kinds[j, N_OTHERS] > rounds + 1:
        kinds[j, IS_NUMERIC] = 1
        renew_edges(bins, j, True)


@lean_kernel
def renew_edges(bins, j, certainly):
    """Cut column j at the quantiles of its sample, `certainly` or only if an edge has moved."""
    rarely_called()
    edges, new, ordered = bins.edges[j], bins.scratch.edges, bins.scratch.sorted
    n = min(bins.stored[()], SAMPLE)
    for i in range(n):
        ordered[i] = bins.sample[j, i]
    sort(ordered, n)
    has_moved = certainly
    for i in range(N_BINS - 1):
        place = (i + 1) * n // N_BINS
        new[i] = 0.5 * ordered[max(place - 1, 0)] + 0.5 * ordered[place]
        has_moved |= i > 0 and new[i] < edges[i - 1]
        has_moved |= i < N_BINS - 2 and new[i] > edges[i + 1]
    if has_moved:
        for i in range(N_BINS - 1):
            edges[i] = new[i]


# What the inputs stand for


def columns_of_bins(bins: Bins) -> np.ndarray:
    """Return the columns of each input of the last x, of shape (n, 3); -1 where it has fewer."""
    d, indices = len(bins.kinds), bins.scratch.indices[: bins.scratch.size].astype(np.int64)
    n_features = np.count_nonzero((indices > 0) & (indices <= d))
    is_bin = (indices > d) & (indices < 1 + d + CODES * d)
    listed = (indices[is_bin] - 1 - d) // CODES
    columns = np.full((indices.size, 3), -1)
    columns[1 : 1 + n_features, 0] = indices[1 : 1 + n_features] - 1
    columns[is_bin, 0] = listed
    n = 1 + n_features + listed.size
    if n < indices.size:
        # The rows of cells may be hashed, but their order is that of the columns.
        pairs = listed[np.transpose(np.triu_indices(listed.size, 1))]
        columns[n : n + len(pairs), :2] = np.sort(pairs, axis=1)
        n += len(pairs)
    if n < indices.size:
        columns[n:] = list(combinations(range(d), 3))
    return columns


def cells_of_bins(bins: Bins, *, in_triples: bool = False) -> dict[int, str]:
    """Return what holds of the values of each column that has a bin for the last x.

    In triples, two neighbouring bins of a numeric column are one.
    """
    d, indices = len(bins.kinds), bins.scratch.indices[: bins.scratch.size].tolist()
    found = (divmod(index - 1 - d, CODES) for index in indices if d < index < 1 + d + CODES * d)
    width = 2 if in_triples else 1
    return {j: cell_text(bins, j, code, width) for j, code in found}


def sampled_rows(bins: Bins) -> np.ndarray:
    """Return the examples in the sample, of shape (n, n_features)."""
    return bins.sample[:, : min(int(bins.stored), SAMPLE)].T


def cell_text(bins: Bins, j: int, code: int, width: int) -> str:
    """Return what holds of the values of column j in `width` bins of numbers, or in one level."""
    if not bins.kinds[j, IS_NUMERIC]:
        return f"= {bins.levels[j, code]:.4g}" if code < LEVELS else "a rare value"
    code -= code % width
    edges, end = bins.edges[j].tolist(), code + width
    if code == 0:
        return f"at most {edges[end - 1]:.4g}"
    return (
        f"above {edges[code - 1]:.4g}"
        if end == N_BINS
        else f"{edges[code - 1]:.4g} to {edges[end - 1]:.4g}"
    )
