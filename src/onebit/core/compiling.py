"""Compiling functions with Numba, with a cache on disk that is never stale.

Numba's own cache checks only the file of the compiled function, and would miss an edit to a kernel
in another file. Here compiled code is stored under a fingerprint of everything it is made from
(`onebit.core.fingerprint`), so any change leads to a new name.

This module uses only Numba's documented interface. Faster ways that are private to Numba are in
`onebit.core.numba_private`; `HOOKS` lists those that `onebit.core.fence` found to work. Where a
hook is off, the documented way has the same results.

With ``NUMBA_DISABLE_JIT=1`` all functions stay Python, for debuggers.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import RLock
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import event
from numba.extending import overload

from onebit.core import code_cache, fence, progress, registry, shipped
from onebit.core.fingerprint import (
    MARKS,
    OPTIONS,
    REPLACEMENTS,
    FingerprintError,
    fingerprint,
)
from onebit.core.hooks import Hook

try:
    from numba.core.compiler_lock import global_compiler_lock
except ImportError:  # it is not documented
    global_compiler_lock = RLock()  # type: ignore[assignment]

# Numba's type stubs lack options that it has.
_njit: Any = numba.njit
_config: Any = numba.config

COMPILES = not _config.DISABLE_JIT
"""Whether functions are compiled at all."""

HOOKS = fence.choose_hooks()
"""The hooks into Numba that are used."""

_private: Any = fence.numba_private
_packed: Any = fence.packed_states

compiler_lock: Any = global_compiler_lock
"""Held by a thread that compiles; in a process forked meanwhile it would stay locked."""

if Hook.NUMBERS in HOOKS:
    _private.number_functions()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_private.number_functions)


# Kernels


def _kernel(function: Any, *, lean: bool) -> Any:
    options = _options(lean)
    if Hook.PARTS in HOOKS:
        dispatcher = _private.new_part(_named(function), **options)
    else:
        dispatcher = _njit(**options)(_named(function))
    OPTIONS[dispatcher] = options
    return dispatcher


def _options(lean: bool) -> dict[str, Any]:
    # Set for every function, as Numba passes the option on to functions that are called.
    counts = {"_nrt": not lean} if Hook.REFERENCES in HOOKS else {}
    return {"error_model": "numpy", **counts}


def _named(function: Any) -> Any:
    """Return `function` under a name that no other process uses for another function.

    See `onebit.core.numba_private.number_functions`, which does the same with Numba's numbers.
    """
    if Hook.NUMBERS in HOOKS:
        return function
    named = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    named.__kwdefaults__, named.__doc__ = function.__kwdefaults__, function.__doc__
    named.__module__ = function.__module__
    named.__dict__.update(function.__dict__, written_as=function.__qualname__)
    named.__qualname__ = f"{function.__qualname__}_{os.urandom(8).hex()}"
    return named


def _as_python(function: Any) -> Any:
    """Return a Python function with the arithmetic and the attributes of a compiled one."""
    quiet = np.errstate(all="ignore")(function)
    quiet.py_func = quiet
    return quiet


kernel: Callable[[Any], Any] = partial(_kernel, lean=False) if COMPILES else _as_python
"""Decorator of functions that compiled code calls."""

lean_kernel: Callable[[Any], Any] = partial(_kernel, lean=True) if COMPILES else _as_python
"""Decorator of kernels that make no arrays and call no kernel that returns a new one.

Numba counts the references to each array of a state in every call of a kernel, which can take
longer than the kernel itself; in lean kernels it does not. Views are not new arrays.
"""


def _check_arguments() -> None:
    frame = sys._getframe(1)
    arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    found = [pair for name in arguments for pair in _arrays_in(frame.f_locals[name], name)]
    for i, (name, array) in enumerate(found):
        for other, other_array in found[:i]:
            if np.shares_memory(array, other_array):
                raise AssertionError(
                    f"{frame.f_code.co_qualname} promises that its arrays share no memory; "
                    f"{other} and {name} do"
                )


def _arrays_in(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, np.ndarray):
        yield name, value
    elif hasattr(value, "_asdict"):
        for field, inner in value._asdict().items():
            yield from _arrays_in(inner, f"{name}.{field}")


def _promise_nothing():
    pass


def _no_alias() -> Any:
    if not COMPILES:
        return _check_arguments
    return _private.no_alias if Hook.ALIASES in HOOKS else kernel(_promise_nothing)


no_alias: Any = _no_alias()
"""Promise, in the first line of a kernel, that no two of the arrays it was given share memory.

Without it, compiled code compares their addresses before each inner loop, which can take longer
than a loop over a few classes. If the promise does not hold, results are wrong; with
``NUMBA_DISABLE_JIT=1`` it is checked in every call.
"""
MARKS[no_alias] = "no_alias"


def _rarely_called() -> Any:
    if not COMPILES:
        return _promise_nothing
    return _private.rarely_called if Hook.RARE in HOOKS else kernel(_promise_nothing)


rarely_called: Any = _rarely_called()
"""Say, in the first line of a kernel, that few rounds call it.

It is then compiled to short code, in half the time, and not inlined.
"""
MARKS[rarely_called] = "rarely_called"


def _unchanged(state):
    return state


def _packing() -> tuple[Any, ...]:
    if {Hook.STATES, Hook.ENTRY_POINTS} <= HOOKS:
        return _packed.pack, _packed.unpacked, _packed.packed_type, _packed.open_state
    return _unchanged, _unchanged, _unchanged, lean_kernel(_unchanged)


pack, unpacked, packed_type, open_state = _packing()
"""States as single rounds take them, see `onebit.core.packed_states`; unchanged without the hook.

`packed_type` returns the type of a packed state; `open_state` is called by compiled code.
"""
MARKS[open_state] = "open_state"


SEPARATES = frozenset(Hook) - {Hook.ALIASES, Hook.RARE, Hook.QUICK} <= HOOKS
"""Whether functions can be compiled separately."""


def received(argument):
    """Return an argument of a kernel that is compiled separately; it may be passed in fewer words.

    See `onebit.core.packed_states`; `passed_type` is the type of what is passed.
    """
    return argument


passed_type: Any = _unchanged
if SEPARATES:
    passed_type, received = _packed.passed_type, _packed.received
MARKS[received] = "received"


def chosen_by_type(function: Callable[..., Any], *, inline: bool = True) -> Callable[[Any], Any]:
    """Decorate a function that chooses how kernels implement a call of `function`.

    It takes the types of the arguments, and returns a function that is inlined in place of the
    call. The inlined function may return one of its arguments, also in lean kernels. If it returns
    a number, it need not be inlined, and is then compiled once. In Python, `function` itself is
    called, and must do the same.

    In a kernel, assign the result in a statement of its own: in ``a, b = c, function(d)`` Numba
    0.68 was seen to lose the code after it.
    """

    def decorate(choose: Any) -> Any:
        if COMPILES:
            # Numba compiles also what it inlines.
            options: Any = _options(lean=True) | (_private.PART if Hook.PARTS in HOOKS else {})
            how: Any = "always" if inline else "never"
            overload(function, jit_options=options, inline=how)(choose)
        REPLACEMENTS[function] = choose
        return choose

    return decorate


# Functions that Python calls


def compiled(name: str, template: Callable[..., Any], *, nogil: bool, **kernels: Any) -> Any:
    """Compile `template` with the names of `kernels` bound to them, cached on disk as `name`.

    Like a `lean_kernel`, it makes no arrays.

    If the result cannot be stored, or if a kernel uses a value without a canonical text, the
    function is compiled again in each process.
    """
    return _compiled(name, template, kernels, nogil=nogil, lean=True)


class Separate(NamedTuple):
    """A function that is compiled separately, for compiled code that calls it.

    Attributes
    ----------
    function
        What is compiled; its code is in the cache.
    call
        What compiled code calls in its place.
    symbol
        The symbol that `link` defines, by the type of the first argument.
    """

    function: Any
    call: Any
    symbol: Callable[[Any], str]


def compiled_separately(
    name: str, template: Callable[..., Any], types: tuple[Any, ...], result: Any, **kernels: Any
) -> Separate:
    """Compile `template`, as `compiled` does, for compiled code; only if `SEPARATES`.

    `types` are those of its arguments after the first, `result` is that of its result.
    """
    function = _compiled(name, template, kernels, nogil=False, lean=True, separate=True)
    key = _key(name, function.py_func, OPTIONS[function]) or (os.urandom(8).hex(),)
    return Separate(function, *_private.new_call(function.py_func, key, types, result))


def link(separate: Separate, signature: tuple[Any, ...]) -> None:
    """Load or compile a function for these types, before any code is loaded that calls it."""
    _private.link(separate.function, signature, separate.symbol(signature[0]))


def link_nothing(separate: Separate, signature: tuple[Any, ...]) -> None:
    """Allow compiling code that calls a function, and is not run in this process."""
    _private.link_nothing(separate.function, separate.symbol(signature[0]))


def type_key(values: tuple[Any, ...]) -> Any:
    """Return a key that is equal for values of equal types; only if `SEPARATES`."""
    return _private.type_key(values)


def called_from_python(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and that may make arrays (a decorator)."""
    name = f"{function.__module__}.{function.__name__}"
    return _compiled(name, function, {}, nogil=False, lean=False)


def _compiled(
    name: str,
    template: Any,
    kernels: dict[str, Any],
    *,
    nogil: bool,
    lean: bool,
    separate: bool = False,
) -> Any:
    bound = FunctionType(template.__code__, {**template.__globals__, **kernels})
    bound.__module__, bound.__doc__ = template.__module__, template.__doc__
    bound.__dict__["compiled_as"] = name
    if not COMPILES:
        return _as_python(bound)
    options = {"nogil": nogil, **_options(lean)}
    key = _key(name, bound, options)
    if key is not None and Hook.CACHE not in HOOKS:
        dispatcher = _cached_by_numba(bound, code_cache.folders(*key), options)
    else:
        new = partial(_new_whole, separate) if Hook.PARTS in HOOKS else _njit
        dispatcher = new(_named(bound), **options)
        if key is not None:
            dispatcher._cache = _private_cache(*key)
    OPTIONS[dispatcher] = options
    _listener.functions.append(dispatcher)
    return dispatcher


def _key(name: str, function: Any, options: dict[str, Any]) -> tuple[str, str, str] | None:
    """Return what the code of a function is stored under; None if it cannot be stored."""
    try:
        return name, fingerprint(function, options), fence.linker(HOOKS)
    except FingerprintError:
        return None


def _new_whole(separate: bool, function: Any, **options: Any) -> Any:
    new = _private.new_separate if separate else _private.new_whole
    return new(function, HOOKS, **options)


def _private_cache(*key: str) -> Any:
    built = shipped.build_folders(*key)
    if built:
        return _private.BuildCache([], built)
    return _private.DiskCache(code_cache.folders(*key), shipped.folders(*key))


def _cached_by_numba(bound: FunctionType, folders: Any, options: dict[str, Any]) -> Any:
    """Return `bound` with Numba's own cache, which checks the file that a function is from.

    So the function gets a file of its own, in a folder named by its fingerprint.
    """
    (found,) = {folder.name for folder in folders}
    file = code_cache.store(folders, "function.py", f"# {found}\n".encode())
    if file is not None:
        bound.__code__ = bound.__code__.replace(co_filename=str(file))
        bound.__qualname__ = "".join(c if c.isalnum() else "_" for c in found)
        with suppress(RuntimeError):  # Numba cannot write there
            return _njit(cache=True, **options)(bound)
    return _njit(**options)(_named(bound))


def entry_point(function: Any, signature: tuple[Any, ...]) -> Any:
    """Return a function of `compiled` for arguments of these types, which are not checked."""
    if not COMPILES:
        return function
    function.compile(signature)
    if Hook.ENTRY_POINTS in HOOKS:
        return _private.entry_point(function, signature)
    # Read-only arrays are another type, for which Numba would compile the function again.
    return lambda *arguments: function(*map(_writeable, arguments))


def is_stored(function: Any, signature: tuple[Any, ...], *, native: bool) -> bool:
    """Return whether the code of a function of `compiled` is on disk; True if unknown.

    If `native`, only code that was compiled for this processor counts.
    """
    return Hook.CACHE not in HOOKS or _private.is_stored(function, signature, native)


def _writeable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return as_writeable(value)
    if not hasattr(value, "_fields"):
        return value
    new = [_writeable(inner) for inner in value]
    same = all(a is b for a, b in zip(new, value, strict=True))
    return value if same else value._make(new)


def as_writeable(array: np.ndarray) -> np.ndarray:
    """Return a view that is not read-only: for those, Numba would compile all kernels again.

    Only for arrays that no kernel writes to.
    """
    if array.flags.writeable:
        return array
    interface = array.__array_interface__
    address, _ = interface["data"]
    return np.asarray(
        SimpleNamespace(__array_interface__=interface | {"data": (address, False)}, array=array)
    )


# Counts of compiled and loaded functions, and progress


class Counts(NamedTuple):
    """Numbers of functions for Python that this process compiled, and loaded from disk."""

    compiled: int
    loaded: int


class _CompileListener(event.Listener):
    """Counts compiled functions, shows progress, and pauses garbage collection."""

    def __init__(self) -> None:
        self.functions: list[Any] = []
        self.compiled = 0
        # One for each function being compiled, nested. Only one thread compiles at a time.
        self._open: list[ExitStack] = []

    def on_start(self, event: Any) -> None:
        """Begin compiling a function."""
        stack = ExitStack()
        self._open.append(stack)
        # Other libraries compile, too, and their dispatchers may be of other kinds.
        function = getattr((event.data or {}).get("dispatcher"), "py_func", None)
        name = getattr(function, "compiled_as", None)
        if name is not None:
            self.compiled += 1
            stack.enter_context(progress.compiling(title(name), code_cache.writable_root))
            stack.enter_context(_no_garbage_collection())

    def on_end(self, event: Any) -> None:
        """End compiling, with or without an error."""
        if self._open:  # otherwise it began before onebit was imported
            self._open.pop().close()


_listener = _CompileListener()
event.register("numba:compile", _listener)


def counts() -> Counts:
    """Return what this process has compiled and loaded so far."""
    loaded = sum(sum(function.stats.cache_hits.values()) for function in _listener.functions)
    return Counts(_listener.compiled, loaded)


def title(name: str) -> str:
    """Return the name to show for a compiled function: its learner, or its package."""
    known = {cls.__name__ for cls in registry.classes() if name.startswith(f"{cls.__module__}.")}
    return known.pop() if len(known) == 1 else name.partition(".")[0]


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Pause garbage collection, which takes a tenth of the time of compiling."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
