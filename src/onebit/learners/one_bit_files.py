"""Files of earlier versions of OneBitClassifier."""

from __future__ import annotations

import numpy as np

from onebit.core.state import declared
from onebit.numerics import bins, pairs
from onebit.numerics.neighbours import new_neighbours
from onebit.numerics.pair_products import with_balance
from onebit.numerics.scales import robust_scales, with_power

MEMBERS = "mixture.members."

PREFIXES = {
    "line": MEMBERS + "line.posterior",
    "views.cells": MEMBERS + "cells.posterior",
    "views.bins": MEMBERS + "cells.view_of_x",
    "views.products": MEMBERS + "products.posterior",
    "views.trust": "mixture.trust",
}
"""Prefixes of the names of arrays: those of version 1, each with today's."""


def migrated(
    version: int, arrays: dict[str, np.ndarray], *, exclusive: bool
) -> dict[str, np.ndarray]:
    """Return the arrays of an earlier version in today's layout, if labels are `exclusive` or not.

    Version 0 has no members but the line, whose arrays have no prefix; its oldest files have
    neither scales nor changes. Version 1 has the evidence for the former weights in an array of its
    own. Version 2 has no descriptions, and scales that do not look for embeddings; version 3 has no
    level, which is zero where exactly one label is right. Version 4 has no neighbours, which begin
    without an example, and no lengths of examples, which count where labels are not exclusive.
    Version 5 has no pairs, which begin without a count, and scales without the power of features.
    Up to version 6, products are not balanced; up to version 7, there are no triples, which begin
    without a count.
    """
    named = with_power(arrays if version >= 2 else _with_mixture(arrays))
    cells = named.get(PREFIXES["views.cells"] + ".W")
    if cells is not None:
        named = bins.with_triples(named, MEMBERS + "cells.")
    if cells is not None and exclusive:
        sizes = len(named["scales.features"]), cells.shape[1]
        if "mixture.pairs.trust" in named:
            named = pairs.with_triples(named, "mixture.pairs.", sizes[0])
        new = {"pairs": pairs.new_pairs(*sizes), "neighbours": new_neighbours(*sizes)}
        for name, part in new.items():
            arrays_of = declared(part, f"mixture.{name}.")
            named = {found.name: found.array for found in arrays_of} | named
    if PREFIXES["views.products"] + ".W" in named:
        named = with_balance(named, MEMBERS + "products.view_of_x")
    return named


def _with_mixture(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of version 0 or 1 in the layout of version 2."""
    named = {_name(name): array for name, array in arrays.items()}
    evidence, _ = named.pop("former.evidence", np.zeros(())), named.pop("former.rounds", None)
    if "changes.totals" in named:
        named["changes.totals"] = np.append(named["changes.totals"], evidence)
    named.setdefault("mixture.trust", np.ones(1))
    if "scales.features" in named and "scales.columns" not in named:
        return named | robust_scales(named)
    return named


def _name(name: str) -> str:
    """Return today's name of an array of an earlier version."""
    first = name.partition(".")[0]
    if name == "former.W":
        return PREFIXES["line"] + ".former"
    if first in ("W", "S", "age"):
        return f"{PREFIXES['line']}.{name}"
    for before, now in PREFIXES.items():
        if name == before or name.startswith(before + "."):
            return now + name.removeprefix(before)
    return name
