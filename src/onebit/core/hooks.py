"""The names of the hooks into Numba (`onebit.core.numba_private`), each with a switch."""

from __future__ import annotations

from enum import StrEnum


class Hook(StrEnum):
    """The hooks, by the names of their switches."""

    NUMBERS = "numbers"
    """Functions are numbered from a random start, so that names never clash between processes."""

    REFERENCES = "references"
    """Lean kernels do not count references to arrays."""

    PARTS = "parts"
    """Kernels are linked into the functions that call them, and optimised only there."""

    VALUES = "values"
    """Arguments of lean kernels are values, not copies in memory; it needs `PARTS`."""

    ENTRY_POINTS = "entry_points"
    """Single rounds are called without checking the types of their arguments."""

    STATES = "states"
    """Single rounds get the address of a state, not all its arrays; it needs `ENTRY_POINTS`."""

    CALLS = "calls"
    """Kernels that take long are compiled separately, and called; it needs all hooks above."""

    CACHE = "cache"
    """Compiled code is stored in files of onebit's own; otherwise by Numba's ``cache=True``."""

    RARE = "rare"
    """`rarely_called` tells LLVM to keep a kernel short."""

    ALIASES = "aliases"
    """`no_alias` declares to LLVM that arrays share no memory."""

    QUICK = "quick"
    """Numba looks up operators once, and leaves out what it does not need; it needs `PARTS`."""
