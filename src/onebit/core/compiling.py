"""Compiling functions with Numba, with a cache on disk that is never stale.

Numba's own cache looks at the file of the compiled function only, and would miss an edit to a
kernel in another file. Here compiled code is stored under a fingerprint of everything it is made
from: the code of all functions it can reach, and the values of all constants they use. So any
change leads to a new name, and old code cannot be found.

With ``NUMBA_DISABLE_JIT=1`` all functions stay Python, for debuggers.

What onebit takes from Numba beyond its documented interface is all in this file, and
tests/core/test_compiling.py says what breaks if a new version of Numba changes it.
"""

from __future__ import annotations

import dis
import gc
import hashlib
import itertools
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import sigutils, types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import intrinsic, overload

from onebit.core import progress, registry

config: Any = numba.config

COMPILES = not config.DISABLE_JIT
"""Whether functions are compiled at all."""

_UNUSED_DAYS = 30
"""Compiled code that no process loaded for so many days is deleted."""


compiler_lock: Any = global_compiler_lock
"""Held by a thread that compiles: a process forked meanwhile could never compile anything."""


class Counted:
    """How many functions that Python calls this process compiled, and loaded from disk."""

    compiled = 0
    loaded = 0


# Numba's types do not tell of _nrt, its switch for counting references.
_njit: Any = numba.njit


def _number_functions() -> None:
    """Let Numba number functions from anywhere, so that no two processes use the same numbers.

    In the names of compiled code, its number alone tells a kernel from another that the same Python
    function made, for another form of a learner. Numba counts from one in each process, so two
    such kernels compiled in two processes could have the same name; a process that loaded both from
    disk then called the first for both.
    """
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7)))


_number_functions()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_functions)


class _Part(JITCodeLibrary):
    """Code that others link, and nobody calls: neither optimised nor made machine code of.

    Numba does both for each kernel, and once more for each of those that it becomes a part of,
    which takes a third of the time of compiling.
    """

    def add_llvm_module(self, ll_module: Any) -> None:
        """Take in a module as it is, with functions that several libraries may have."""
        self._final_module.link_in(ll_module)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"

    def finalize(self) -> None:
        """Leave what this code calls to the library that it becomes a part of."""
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def parts(self) -> Iterator[JITCodeLibrary]:
        """Yield all libraries that this code needs, itself first; some more than once."""
        yield self
        for library in self._linking_libraries:
            yield from library.parts() if isinstance(library, _Part) else (library,)

    def _get_module_for_linking(self) -> Any:
        """Return a module with all that this code needs, for a library of Numba's own."""
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for library in dict.fromkeys(self.parts()):
                if library is not self:
                    self._shared_module.link_in(_module_of(library), preserve=True)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        """Return zero: there is no such function."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Stand in for what would set the environment of machine code; see `_WholeCompiler`."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class _Whole(JITCodeLibrary):
    """Code that Python calls, with all its parts."""

    def add_llvm_module(self, ll_module: Any) -> None:
        """Take in a module as it is: it is optimised with its parts."""
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        """Link the parts, each once, and make machine code of them all."""
        libraries, self._linking_libraries = self._linking_libraries, []
        parts = (lib.parts() if isinstance(lib, _Part) else (lib,) for lib in libraries)
        for library in dict.fromkeys(itertools.chain(*parts)):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(_module_of(library), preserve=True)
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise once, with the parts as functions that nothing else can call.

        Numba runs a few passes on all functions first, to find pairs of counts of references that
        cancel out, of which kernels have hardly any. Without it, most code is as fast, and some is
        a fifth faster, as later passes find it in a simpler form.

        LLVM makes a long function a part of its only caller if nothing else can call it, and one
        that stays may get other arguments. So it must have a name of its own: where two modules
        have functions of one name, the linker takes the first for both, be it an internal one.

        Those that count references keep theirs, by which the last pass knows them: it takes out
        pairs that cancel.
        """
        own = os.urandom(8).hex()
        for function in self._final_module.functions:
            counts = function.name in ("NRT_incref", "NRT_decref")
            if function.linkage.name == "linkonce_odr" and not counts:
                function.linkage = "internal"
                function.name += f".{own}"
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


def _module_of(library: JITCodeLibrary) -> Any:
    """Return the module to link; of a part, without its parts."""
    own = isinstance(library, _Part)
    return library._final_module if own else library._get_module_for_linking()


class _Flags(Flags):
    """Flags that are quick to compare, by what was set: Numba compares them for each operation."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(_Flags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._values == other._values


class _PartCompiler(Compiler):
    """Compiler of a kernel for compiled code."""

    def compile_extra(self, function: Any) -> Any:
        """Compile `function` into a library that is a part of others."""
        self.state.library = _Part(self.state.targetctx.codegen(), function.__qualname__)
        self.state.flags = _Flags(self.state.flags)
        return super().compile_extra(function)


class _WholeCompiler(Compiler):
    """Compiler of a function that Python calls, with all its parts."""

    def compile_extra(self, function: Any) -> Any:
        """Compile `function`, and give its parts what Python objects they refer to."""
        self.state.library = _Whole(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        self.state.flags = _Flags(self.state.flags)
        with (
            progress.compiling(_title(function), cache_folder),
            _no_garbage_collection(),
            _numbas_own_as_parts(),
        ):
            result = super().compile_extra(function)
        Counted.compiled += 1
        for env in result._find_referenced_environments():
            result.codegen.set_env(env.env_name, env)
        return result


def _title(function: Any) -> str:
    """Return what people know a function by: its learner, or else its package."""
    name = getattr(function, "compiled_as", function.__module__ or "")
    known = {cls.__name__ for cls in registry.classes() if name.startswith(f"{cls.__module__}.")}
    return known.pop() if len(known) == 1 else name.partition(".")[0]


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Let Python not look for garbage among the many objects of a compiler: a tenth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _numbas_own_as_parts() -> Iterator[None]:
    """Let what Numba has in place of NumPy's functions be parts, too.

    Each is a function in a function, so that nothing but compiled code can call it. Only one thread
    compiles at a time.
    """
    usual = Compiler.compile_extra

    def compile_extra(self: Any, function: Any) -> Any:
        of_numba = (function.__module__ or "").startswith("numba.")
        if of_numba and "<locals>" in function.__qualname__:
            self.state.library = _Part(self.state.targetctx.codegen(), function.__qualname__)
            self.state.flags.no_cpython_wrapper = self.state.flags.no_cfunc_wrapper = True
        return usual(self, function)

    Compiler.compile_extra = compile_extra  # type: ignore[method-assign]
    try:
        yield
    finally:
        Compiler.compile_extra = usual  # type: ignore[method-assign]


def _decorator(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    return partial(_kernel, **options) if COMPILES else _as_python


def _kernel(function: Any, **options: Any) -> Any:
    """Compile `function` for compiled code, and once more for Python if it is called from there.

    What lets Python call compiled code, unpacking all arrays of a state, is a fifth of the work of
    compiling, and most kernels are called by others only.
    """
    options |= {"error_model": "numpy"}
    dispatcher = _njit(
        function,
        pipeline_class=_PartCompiler,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )
    for_python = _njit(function, pipeline_class=_WholeCompiler, **options)
    # What calls from Python find is what was compiled for them, and nothing else.
    for_python._insert, dispatcher._insert = dispatcher._insert, lambda *_: None
    dispatcher._compile_for_args = for_python._compile_for_args
    return dispatcher


def _as_python(function: Any) -> Any:
    """Return `function` with the arithmetic and the attributes of a compiled one."""
    quiet = np.errstate(all="ignore")(function)
    quiet.py_func = quiet
    return quiet


kernel = _decorator(_nrt=True)
"""Decorator of a function that compiled code calls."""

lean_kernel = _decorator(_nrt=False)
"""Decorator of a kernel that makes no arrays and calls none that returns a new one.

Numba counts the references to each array of a state in every call of a kernel, which can take
longer than the kernel itself; in these it does not. Views are no new arrays.
"""


def _mark_arguments(_context: Any) -> Any:
    def mark(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        for argument in builder.function.args:
            if argument.type.is_pointer:
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return numba.types.none(), mark


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


no_alias: Any = intrinsic(_mark_arguments) if COMPILES else _check_arguments
"""Promise, in the first line of a kernel, that no two of the arrays it was given share memory.

Without it, compiled code compares their addresses before each inner loop; if classes are few, that
can take longer than the loop. Where the promise does not hold, results are wrong: with
``NUMBA_DISABLE_JIT=1`` it is checked, in every call.
"""


_CHOICES: dict[Any, FunctionType] = {}
"""Functions of `chosen_by_type`, with those that choose what compiled code has in their place."""


def chosen_by_type(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Let the decorated function say which code kernels have for a call of `function`.

    It takes the types of the arguments, and returns a function whose code takes the place of the
    call: it may return an array that it was given, in lean kernels too. In Python the call is one
    of `function` itself, which must do the same.

    In a kernel, give what it returns a name in a statement of its own: in ``a, b = c, function(d)``
    Numba 0.68 was seen to lose the code after it.
    """

    def decorate(choose: Any) -> Any:
        if COMPILES:
            overload(function, inline="always")(choose)
        _CHOICES[function] = choose
        return choose

    return decorate


def compiled(name: str, template: Callable[..., Any], *, nogil: bool, **kernels: Any) -> Any:
    """Compile `template` with the names of `kernels` bound to them, cached on disk as `name`.

    As a `lean_kernel`, it makes no arrays.

    Where there is no place to store the result, or where a kernel uses something whose value cannot
    be told in bytes, the function is compiled anew in each process.
    """
    return _compiled(name, template, kernels, nogil=nogil, _nrt=False)


def called_from_python(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and that may make arrays; a decorator."""
    name = f"{function.__module__}.{function.__name__}"
    return _compiled(name, function, {}, nogil=False, _nrt=True)


def entry_point(function: Any, signature: tuple[Any, ...]) -> Any:
    """Return `function` from `compiled` for arguments of these types, which it then trusts."""
    if not COMPILES:
        return function
    function.compile(signature)
    return function.overloads[signature].entry_point


def _compiled(name: str, template: Any, kernels: dict[str, Any], **options: Any) -> Any:
    bound = FunctionType(template.__code__, {**template.__globals__, **kernels})
    bound.__module__, bound.__doc__ = template.__module__, template.__doc__
    bound.__dict__["compiled_as"] = name
    if not COMPILES:
        return _as_python(bound)
    options |= {"error_model": "numpy", "no_cfunc_wrapper": True}
    dispatcher = _njit(bound, pipeline_class=_WholeCompiler, **options)
    with suppress(_DigestError):
        folder = f"{name}-{_fingerprint(bound, dispatcher.targetoptions)}"
        dispatcher._cache = _DiskCache([root / folder for root in _cache_roots()])
    return dispatcher


# The cache


class _DiskCache(NullCache):
    """Compiled code of one function in files, one for each signature and processor.

    It is read from the first of `folders` that has it, and written to the first that can be
    written. A file that cannot be read is no error: the function is compiled anew.
    """

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the code for a signature, if it is stored."""
        # Numba would load here all that it needs to compile, which takes longer than the rest.
        rtsys.initialize(target_context)
        arguments, _ = sigutils.normalize_signature(sig)
        name = _file_name(arguments, target_context.codegen())
        for folder in self._folders:
            try:
                payload = pickle.loads((folder / name).read_bytes())
                found = CompileResult._rebuild(target_context, *payload)
            except Exception:  # a damaged file can raise anything, and only costs time
                continue
            if found.signature.args != arguments:  # classes of a script are new in each process
                continue
            with suppress(OSError):
                os.utime(folder)
            Counted.loaded += 1
            return found
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Store the code for a signature."""
        if cres.lifted or cres.library.has_dynamic_globals:
            return
        arguments, _ = sigutils.normalize_signature(sig)
        name, payload = _file_name(arguments, cres.codegen), dumps(cres._reduce())
        for folder in self._folders:
            try:
                _drop_unused(folder.parent)
                folder.mkdir(parents=True, exist_ok=True)
                _replace(folder / name, payload)
            except OSError:
                continue
            return


def _file_name(arguments: tuple[Any, ...], codegen: Any) -> str:
    """Return the name of a file for everything that code depends on besides its function."""
    switches = config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT
    parts = (*map(_described, arguments), codegen.magic_tuple(), switches)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16] + ".compiled"


def _described(type_: Any) -> str:
    """Return all that code knows of a type: of named tuples, Numba's own names lack the fields."""
    cls = getattr(type_, "instance_class", None)
    if cls is None:
        return str(type_)
    fields = [
        f"{name}: {_described(field)}" for name, field in zip(type_.fields, type_, strict=True)
    ]
    return f"{cls.__module__}.{cls.__qualname__}({', '.join(fields)})"


def _replace(path: Path, content: bytes) -> None:
    """Write a file that other processes see whole or not at all."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@cache
def _drop_unused(root: Path) -> None:
    """Delete, once in a process, what no process used for long, of any version of onebit."""
    oldest = time.time() - _UNUSED_DAYS * 24 * 3600
    for folder in root.glob("*-" + 16 * "[0-9a-f]"):
        with suppress(OSError):
            if folder.is_dir() and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder)


def cache_folder() -> Path | None:
    """Return the folder that compiled code is written to; None, if none can be written."""
    for root in _cache_roots():
        with suppress(OSError):
            root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=root).close()
            return root
    return None


def _cache_roots() -> Iterator[Path]:
    if "NUMBA_CACHE_DIR" in os.environ:
        yield Path(os.environ["NUMBA_CACHE_DIR"]) / "onebit"
    yield Path(__file__).parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(home) / "onebit"


# The fingerprint


class _DigestError(Exception):
    """A function depends on something whose value cannot be told in bytes."""


_VERSIONED = {"builtins", "math", "cmath", "numpy", "numba"}
"""Packages whose contents are told by a version."""

_VERSIONS = f"Python {sys.version}, NumPy {np.__version__}, Numba {numba.__version__}"


def _fingerprint(function: FunctionType, options: dict[str, Any]) -> str:
    """Digest everything that compiled `function` is made from."""
    hooks = (_mark_arguments, _number_functions, _Whole._optimize_final_module)
    parts = {_VERSIONS, *(_code_told(hook.__code__) for hook in hooks)}
    seen: set[FunctionType] = set()
    found = [(function, options)]
    while found:
        current, options = found.pop()
        if current in seen:
            continue
        seen.add(current)
        where = f"{current.__module__}.{current.__qualname__}"
        defaults = _told(current.__defaults__), _told(current.__kwdefaults__)
        parts.add(f"{where} {sorted(options.items())} {defaults} {_code_told(current.__code__)}")
        for name, value in _outer_names(current):
            if isinstance(value, FunctionType) and value in _CHOICES:
                found.append((_CHOICES[value], {}))
                parts.add(f"{where} {name}={value.__module__}.{value.__qualname__}")
            elif isinstance(value, Dispatcher):
                found.append((value.py_func, value.targetoptions))
                parts.add(f"{where} {name}={value.py_func.__module__}.{value.py_func.__qualname__}")
            else:
                parts.add(f"{where} {name}={_told(value)}")
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


@cache
def _code_told(code: CodeType) -> str:
    """Return all of a function's code but where it was written."""
    constants = [
        _code_told(constant) if isinstance(constant, CodeType) else _told(constant)
        for constant in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return repr((code.co_code, code.co_exceptiontable, constants, names, counts))


def _outer_names(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names that `function` takes from outside, with their values."""
    names, attributes = _names(function.__code__)
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if isinstance(value, ModuleType) and not _is_versioned(value.__name__):
            for attribute in attributes & vars(value).keys():
                yield f"{name}.{attribute}", vars(value)[attribute]
        else:
            yield name, value
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        yield name, cell.cell_contents


@cache
def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the global names that code uses, and the attributes of anything."""
    names, attributes = set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner_names, inner_attributes = _names(constant)
            names |= inner_names
            attributes |= inner_attributes
    return names, attributes


def _told(value: Any) -> str:
    """Return a text that is the same for the same value, and for no other."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return f"{kind} {value!r}"
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        layout = np.asarray(value).strides, np.asarray(value).flags.writeable
        return f"{kind} {value.dtype.descr} {value.shape} {layout} {content}"
    if isinstance(value, tuple | frozenset):
        return f"{kind}({', '.join(map(_told, value))})"
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        fields: Any = value
        defaults = {name: _told(default) for name, default in fields._field_defaults.items()}
        return f"{value.__module__}.{value.__qualname__} {fields._fields} {defaults}"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if value is no_alias:
        return "no_alias"
    if isinstance(value, types.Type):
        return f"type {value}"
    if isinstance(value, type | BuiltinFunctionType | FunctionType):
        if _is_versioned(value.__module__ or ""):
            return f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, np.ufunc) and value in vars(np).values():
        return repr(value)
    raise _DigestError(value)


def _is_versioned(module: str) -> bool:
    return module.partition(".")[0] in _VERSIONED
