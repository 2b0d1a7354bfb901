"""Whether to use the hooks into Numba: only with tested versions, and only if they work.

Otherwise everything is compiled by plain `numba.njit`, with one warning: slower to compile and to
call, with the same results. If the environment variable `VARIABLE` is set, it decides, without a
warning: ``plain`` uses no hook, ``all`` uses all with any version, and a list such as
``numbers,cache`` uses those (`onebit.core.hooks.Hook`).
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

import numba

from onebit.core import code_cache, shipped
from onebit.core.fingerprint import canonical_code, digest
from onebit.core.hooks import Hook
from onebit.core.replacing import replace_file

try:
    from onebit.core import numba_private, packed_states

    _missing: Exception | None = None
except Exception as error:  # a new version of Numba may have renamed anything
    numba_private = packed_states = None  # type: ignore[assignment]
    _missing = error

VARIABLE = "ONEBIT_NUMBA"
"""The environment variable that chooses the hooks."""

TESTED = (0, 62), (0, 68)
"""The first and the last version of Numba that the hooks were tested with."""


class PlainNumbaWarning(RuntimeWarning):
    """The hooks into Numba are not used: compiling and single rounds take longer."""


def version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version; (0, 0) if it has none."""
    parts = text.split(".")[:2]
    return (int(parts[0]), int(parts[1])) if all(map(str.isdigit, parts)) and parts[1:] else (0, 0)


def choose_hooks() -> frozenset[Hook]:
    """Return the hooks to use in this process."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return frozenset()
    wanted = os.environ.get(VARIABLE)
    if wanted == "plain":
        return frozenset()
    try:
        if numba_private is None:
            raise RuntimeError(str(_missing))
        every = frozenset(Hook)
        if wanted is None:
            _check_version()
        elif wanted != "all":
            every = _listed(wanted)
        _check_hooks(every)
    except Exception as error:
        _warn(error)
        return frozenset()
    return every


def _listed(names: str) -> frozenset[Hook]:
    try:
        return frozenset(Hook(name) for name in names.split(","))
    except ValueError as error:
        known = ", ".join(Hook)
        raise RuntimeError(f"{VARIABLE}: {error}; it is plain, all, or some of {known}") from None


def _check_version() -> None:
    first, last = TESTED
    if not first <= version(numba.__version__) <= last:
        tested = " to ".join(".".join(map(str, one)) for one in TESTED)
        raise RuntimeError(f"it was tested with Numba {tested}")


def _check_hooks(hooks: frozenset[Hook]) -> None:
    """Raise if a hook does not work; a check that passed in another process is not repeated.

    It compiles a few small functions, in half a second, most of it to import Numba's compiler.
    """
    passed = _passed(code_cache.VERSIONS, hooks)
    found = [root / passed for root in code_cache.roots()]
    if any(file.exists() for file in [*found, shipped.FOLDER / shipped_check(hooks)]):
        return
    with tempfile.TemporaryDirectory() as folder:
        numba_private.check(hooks, Path(folder))
    root = code_cache.writable_root()
    if root is not None:
        replace_file(root / passed, b"")


def _passed(versions: str, hooks: frozenset[Hook]) -> str:
    return f"numba-hooks-{digest(versions, sys.platform, linker(hooks))}"


def shipped_check(hooks: frozenset[Hook]) -> str:
    """Return the name of the file in a wheel that says that these hooks passed the check."""
    return _passed(shipped.versions(), hooks)


@cache
def linker(hooks: frozenset[Hook]) -> str:
    """Return a text that identifies the hooks and their code."""
    if not hooks:
        return "plain"
    codes = []
    for module in (numba_private, packed_states):
        spec: Any = util.find_spec(module.__name__)
        codes.append(canonical_code(spec.loader.get_code(module.__name__)))
    return f"{sorted(hooks)} {digest(*codes)}"


def _warn(error: Exception) -> None:
    warnings.warn(
        f"onebit uses Numba {numba.__version__} without its faster private hooks: {error}. Results "
        "are the same; compiling takes longer, and single rounds take several times as long. "
        f"{VARIABLE}=plain hides this warning.",
        PlainNumbaWarning,
        stacklevel=2,
    )
