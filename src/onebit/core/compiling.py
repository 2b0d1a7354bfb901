"""Compiling functions with Numba, with a cache on disk that is never stale.

Numba's own cache looks at the file of the compiled function only, and would miss an edit to a
kernel in another file. Here compiled code is stored under a fingerprint of all the source it can
reach, so an edit anywhere leads to a new name and old code cannot be found.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

# Numba's types do not tell of _nrt, its switch for counting references.
_njit: Any = numba.njit

kernel: Callable[[Callable[..., Any]], Any] = _njit(error_model="numpy", _nrt=True)
"""Decorator of a function that compiled code calls."""

lean_kernel: Callable[[Callable[..., Any]], Any] = _njit(error_model="numpy", _nrt=False)
"""Decorator of a kernel that makes no arrays and calls none that returns a new one.

Numba counts the references to each array of a state in every call of a kernel, which can take
longer than the kernel itself; in these it does not. Views are no new arrays.
"""


def _apart(_context: Any) -> Any:
    def mark(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        for argument in builder.function.args:
            if argument.type.is_pointer:
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return numba.types.none(), mark


apart: Any = intrinsic(_apart)
"""Promise, in a kernel, that no two of the arrays it was given share memory.

Without it, compiled code compares their addresses before each inner loop; if classes are few, that
takes longer than the loop. Where the promise does not hold, results are wrong.
"""


def compiled(name: str, template: Callable[..., Any], *, nogil: bool, **kernels: Any) -> Any:
    """Compile `template` with the names of `kernels` bound to them, cached on disk as `name`.

    As a `lean_kernel`, it makes no arrays.

    Where the sources or a place to store the result are missing, as for kernels typed into a
    notebook, the function is compiled anew in each process.
    """
    bound = FunctionType(template.__code__, {**template.__globals__, **kernels})
    home = _cache_home(name, bound)
    if home is not None:
        # Numba stores compiled code beside the file that a function says it comes from.
        bound = FunctionType(bound.__code__.replace(co_filename=str(home)), bound.__globals__)
    return _njit(bound, error_model="numpy", nogil=nogil, cache=home is not None, _nrt=False)


def _cache_home(name: str, function: FunctionType) -> Path | None:
    """Return a file in a folder of this version of `function`, and drop the folders of others."""
    try:
        version = _fingerprint(function)
    except OSError:
        return None
    for root in _cache_roots():
        folder = root / f"{name}-{version}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            home = folder / "compiled.py"
            if not home.exists():
                home.write_text(f"# Compiled code of onebit's {name} is kept beside this file.\n")
        except OSError:
            continue
        for other in root.glob(f"{name}-*"):
            if other.name != folder.name:
                shutil.rmtree(other, ignore_errors=True)
        return home
    return None


def _cache_roots() -> Iterator[Path]:
    if "NUMBA_CACHE_DIR" in os.environ:
        yield Path(os.environ["NUMBA_CACHE_DIR"]) / "onebit"
    yield Path(__file__).parent / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "onebit"


def _fingerprint(function: FunctionType) -> str:
    """Digest the source files and constants that compiled `function` depends on."""
    files = {__file__}
    constants: set[str] = set()
    for reached in _reachable(function):
        files.add(reached.__code__.co_filename)
        constants.update(
            f"{name}={value!r}"
            for name, value in _globals_of(reached)
            if isinstance(value, int | float | str | tuple)
        )
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(Path(file).read_bytes())
    for constant in sorted(constants):
        digest.update(constant.encode())
    return digest.hexdigest()[:16]


def _reachable(function: FunctionType) -> Iterator[FunctionType]:
    seen: set[FunctionType] = set()
    found = [function]
    while found:
        current = found.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        for _, value in _globals_of(current):
            if isinstance(value, Dispatcher):
                found.append(value.py_func)


def _globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names that `function` takes from outside, with their values."""
    names = set(_names(function.__code__))
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, ModuleType):
            for attribute in names & vars(value).keys():
                yield attribute, vars(value)[attribute]
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        yield name, cell.cell_contents


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
