"""What onebit uses of Numba beyond its documented interface: faster to compile, faster to call.

Nothing here is needed for correct results. `onebit.core.fence` decides whether it is used: only
with tested versions of Numba, and only if `check` passes. Each hook has a switch of its own
(`onebit.core.hooks.Hook`); tests/core/test_numba_private.py says what is lost without it.

All kernels below are Numba dispatchers, as `numba.njit` returns them.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numba
import numpy as np
from llvmlite import binding as llvm
from numba._dispatcher import compute_fingerprint
from numba.core import cgutils, ir, sigutils, transforms
from numba.core.analysis import must_use_alloca
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.types.functions import BaseFunction
from numba.extending import intrinsic

from onebit.core import code_cache
from onebit.core.hooks import Hook
from onebit.core.packed_states import (
    PackedType,
    described,
    open_state,
    pack,
    passed_type,
    passed_value,
    received,
)

_njit: Any = numba.njit
config: Any = numba.config


# Numbers


_SMALL = 2**32
"""More than Numba ever counts to from one."""


def number_functions() -> None:
    """Count Numba's functions from a random start, so that no two processes use the same numbers.

    In the names of compiled code, only its number distinguishes a kernel from another that the same
    Python function made, for another form of a learner. Numba counts from one in each process, so
    two such kernels compiled in two processes could have the same name; a process that loaded both
    from disk then called the first for both.
    """
    FunctionIdentity._unique_ids = itertools.count(_SMALL + int.from_bytes(os.urandom(7)))


# Parts


class Part(JITCodeLibrary):
    """Code that others link and Python never calls: not optimised, without machine code.

    Numba does both for each kernel, and once more for each function that the kernel becomes a part
    of, which takes a third of the time of compiling.
    """

    def add_llvm_module(self, ll_module: Any) -> None:
        """Add a module as it is, with functions that several libraries may have."""
        self._final_module.link_in(ll_module)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"

    def finalize(self) -> None:
        """Leave linking to the library that this code becomes a part of."""
        for library in self._linking_libraries:
            _inherit(self, library)
        self._finalize_dynamic_globals()
        self._finalized = True

    def parts(self) -> Iterator[JITCodeLibrary]:
        """Yield all libraries that this code needs, itself first; some more than once."""
        yield self
        for library in self._linking_libraries:
            yield from library.parts() if isinstance(library, Part) else (library,)

    def _get_module_for_linking(self) -> Any:
        """Return a module with all that this code needs, for a library of Numba's own."""
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for library in dict.fromkeys(self.parts()):
                if library is not self:
                    self._shared_module.link_in(_module_of(library), preserve=True)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        """Return zero: Numba has no such function."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Stand in for what would set the environment of machine code; see `WholeCompiler`."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""


class Whole(JITCodeLibrary):
    """Code that Python calls, with all its parts."""

    def add_llvm_module(self, ll_module: Any) -> None:
        """Add a module as it is: it is optimised together with its parts."""
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        """Link each part once, and generate machine code for all of them."""
        libraries, self._linking_libraries = self._linking_libraries, []
        parts = (lib.parts() if isinstance(lib, Part) else (lib,) for lib in libraries)
        for library in dict.fromkeys(itertools.chain(*parts)):
            _inherit(self, library)
            self._final_module.link_in(_module_of(library), preserve=True)
        super().finalize()

    def serialize_using_object_code(self) -> Any:
        """Return the machine code, and in place of LLVM's code only the names that it defines.

        LLVM's code, three times as long, is for others to link, and nothing links a whole.
        """
        self._ensure_finalized()
        names = [
            function.name
            for function in self._final_module.functions
            if not function.is_declaration and function.linkage.name == "external"
        ]
        text = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)
        symbols = llvm.parse_assembly(text).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), symbols)

    def _optimize_final_module(self) -> None:
        """Optimise once, with the parts as functions that nothing else can call.

        Numba runs a few passes on all functions first, to find pairs of counts of references that
        cancel out, of which kernels have hardly any. Without it, most code is as fast, and some is
        a fifth faster, as later passes find it in a simpler form.

        LLVM inlines a long function into its only caller if nothing else can call it, and may
        change the arguments of one that stays. So each needs a name of its own: where two modules
        have functions of one name, the linker takes the first for both, even an internal one.

        The functions that count references keep their names, by which the last pass, which removes
        pairs that cancel, recognises them.
        """
        own = os.urandom(8).hex()
        for function in self._final_module.functions:
            counts = function.name in ("NRT_incref", "NRT_decref")
            if function.linkage.name == "linkonce_odr" and not counts:
                function.linkage = "internal"
                function.name += f".{own}"
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


def _inherit(library: JITCodeLibrary, part: JITCodeLibrary) -> None:
    """Take over what must run before the code of `part` is loaded; Numba has it since 0.63."""
    if hasattr(library, "_reload_init"):
        library._reload_init.update(part._reload_init)


def _module_of(library: JITCodeLibrary) -> Any:
    """Return the module to link; for a part, without its parts."""
    own = isinstance(library, Part)
    return library._final_module if own else library._get_module_for_linking()


class _QuickFlags(Flags):
    """Flags that are quick to compare, by what was set: Numba compares them for each operation."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(_QuickFlags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _QuickFlags) and self._values == other._values


class PartCompiler(Compiler):
    """Compiler of a kernel that compiled code calls."""

    def compile_extra(self, function: Any) -> Any:
        """Compile `function` into a library that is a part of others."""
        self.state.library = Part(self.state.targetctx.codegen(), function.__qualname__)
        self.state.flags = _QuickFlags(self.state.flags)
        return super().compile_extra(function)


class WholeCompiler(Compiler):
    """Compiler of a function that Python calls, with all its parts.

    Attributes
    ----------
    hooks
        Those that change how Numba compiles, and that are used.
    """

    hooks: ClassVar[frozenset[Hook]] = frozenset()

    def compile_extra(self, function: Any) -> Any:
        """Compile `function`, and give its parts the Python objects that they refer to."""
        self.state.library = Whole(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        self.state.flags = _QuickFlags(self.state.flags)
        with ExitStack() as changed:
            changed.enter_context(_numba_functions_as_parts())
            for hook, change in _CHANGES.items():
                if hook in self.hooks:
                    changed.enter_context(change())
            result = super().compile_extra(function)
        for env in result._find_referenced_environments():
            result.codegen.set_env(env.env_name, env)
        return result


@cache
def _whole_compiler(hooks: frozenset[Hook]) -> type[WholeCompiler]:
    """Return the compiler with these hooks."""
    return type("WholeCompiler", (WholeCompiler,), {"hooks": hooks})


@contextmanager
def _replaced(owner: type, name: str, method: Any) -> Iterator[None]:
    """Replace a method of Numba's while this thread compiles: no other thread does meanwhile."""
    usual = getattr(owner, name)
    setattr(owner, name, method)
    try:
        yield
    finally:
        setattr(owner, name, usual)


@contextmanager
def _arguments_as_values() -> Iterator[None]:
    """Keep variables that the first block assigns, and no other does, in LLVM's registers.

    Numba keeps variables there that one block assigns and uses. It copies others to memory, whole:
    the state of a learner has hundreds of fields, most kernels use a few of them, and LLVM spends a
    quarter of its time on finding that out. The first block dominates all others, so a value of it
    can be used anywhere. Only without counts of references, which Numba keeps in the copies.
    """
    usual = Lower._find_singly_assigned_variable

    def find(self: Any) -> None:
        usual(self)
        if getattr(self.flags, "nrt", True) or self.func_ir.func_id.is_generator:
            return
        blocks = self.blocks.values()
        n_assigned = Counter(one.target.name for b in blocks for one in b.find_insts(ir.Assign))
        first = {one.target.name for one in self.blocks[min(self.blocks)].find_insts(ir.Assign)}
        once = {name for name in first if n_assigned[name] == 1}
        self._singly_assigned_vars |= once - must_use_alloca(self.blocks)

    with _replaced(Lower, "_find_singly_assigned_variable", find):
        yield


@contextmanager
def _work_done_once() -> Iterator[None]:
    """Spare Numba work that it repeats for each operation, or whose results nothing uses.

    Together this is a tenth of the time of compiling.
    """
    usual_type, usual_variables = BaseFunction.get_call_type, ir.Inst._rec_list_vars
    usual_run = PostProcessor.run
    found: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        """Look up how an operator applies to numbers and arrays only once.

        Numba tries all signatures, and describes each one that does not fit.
        """
        of_operator = getattr(self.typing_key, "__module__", None) == "_operator"
        if keywords or not of_operator or not all(isinstance(a, _PLAIN) for a in arguments):
            return usual_type(self, context, arguments, keywords)
        key = self, context, tuple(arguments)
        if key not in found:
            found[key] = usual_type(self, context, arguments, keywords)
        return found[key]

    def list_variables(self: Any, value: Any) -> Any:
        """List the variables of an instruction, with the usual kinds of values tried first."""
        kind = type(value)
        if kind is ir.Var:
            return [value]
        if kind is ir.Loc or kind is str:
            return []
        if kind is dict:
            return [one for inner in value.values() for one in list_variables(self, inner)]
        return usual_variables(self, value)

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        """Leave out which variables live where, which only generators and objects need."""
        function = self.func_ir
        if emit_dels or function.is_generator:
            usual_run(self, emit_dels, extend_lifetimes)
            return
        function.blocks = transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime = VariableLifetime(function.blocks)  # found when it is used
        function.generator_info = None

    with (
        _replaced(BaseFunction, "get_call_type", get_call_type),
        _replaced(ir.Inst, "_rec_list_vars", list_variables),
        _replaced(PostProcessor, "run", run),
    ):
        yield


_PLAIN = numba.types.Number, numba.types.Boolean, numba.types.Array
"""Types whose operators are Numba's own."""

_CHANGES: dict[Hook, Any] = {Hook.VALUES: _arguments_as_values, Hook.QUICK: _work_done_once}
"""How the hooks change Numba while it compiles."""


@contextmanager
def _numba_functions_as_parts() -> Iterator[None]:
    """Make parts of Numba's implementations of NumPy's functions, too.

    Each is a function in a function, so that only compiled code can call it.
    """
    usual = Compiler.compile_extra

    def compile_extra(self: Any, function: Any) -> Any:
        of_numba = (function.__module__ or "").startswith("numba.")
        if of_numba and "<locals>" in function.__qualname__:
            self.state.library = Part(self.state.targetctx.codegen(), function.__qualname__)
            self.state.flags.no_cpython_wrapper = self.state.flags.no_cfunc_wrapper = True
        return usual(self, function)

    with _replaced(Compiler, "compile_extra", compile_extra):
        yield


PART = {"pipeline_class": PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions that only compiled code calls."""


def new_part(function: Any, **options: Any) -> Any:
    """Compile `function` for compiled code, and once more for Python if it is called from there.

    What lets Python call compiled code, unpacking all arrays of a state, is a fifth of the work of
    compiling, and most kernels are called by others only.
    """
    dispatcher = _njit(function, **PART, **options)
    for_python = _njit(function, pipeline_class=WholeCompiler, **options)
    # What calls from Python find is what was compiled for them, and nothing else.
    for_python._insert, dispatcher._insert = dispatcher._insert, lambda *_: None
    dispatcher._compile_for_args = for_python._compile_for_args
    return dispatcher


def new_whole(function: Any, hooks: frozenset[Hook], **options: Any) -> Any:
    """Compile `function`, with all its parts, for Python."""
    compiler = _whole_compiler(hooks.intersection(_CHANGES))
    return _njit(function, pipeline_class=compiler, no_cfunc_wrapper=True, **options)


def entry_point(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """Return what Python can call with arguments of these types, and that trusts them."""
    return dispatcher.overloads[signature].entry_point


# Calls


def new_separate(function: Any, hooks: frozenset[Hook], **options: Any) -> Any:
    """Compile `function`, with all its parts, for compiled code that calls it by a symbol."""
    dispatcher = new_whole(function, hooks, no_cpython_wrapper=True, **options)
    dispatcher._insert = lambda *_: None  # Python cannot call it
    return dispatcher


def new_call(
    function: Any, key: tuple[str, ...], types: tuple[Any, ...], result: Any
) -> tuple[Any, Callable[[Any], str]]:
    """Return what compiled code calls, in place of `function`, and the symbol by its first type.

    `types` are those of its arguments after the first, `result` is that of its result. Arguments
    are passed as `passed_type` says: `function` must call `received` for each. What calls it has
    only the symbol, which `link` must define before the caller is loaded. So code of the caller can
    be stored, and neither of them is compiled again for the other.
    """

    def symbol(first: Any) -> str:
        texts = (*key, *map(described, (first, *types, result)))
        return f"onebit.{hashlib.sha256(repr(texts).encode()).hexdigest()[:32]}"

    def typed(first: Any, *_: Any) -> Any:
        def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention, returned = context.call_conv, signature.return_type
            passed = [*map(passed_type, signature.args)]
            values = [*map(partial(passed_value, context, builder), signature.args, values)]
            kind = convention.get_function_type(returned, passed)
            called = cgutils.get_or_insert_function(builder.module, kind, symbol(first))
            status, found = convention.call_function(builder, called, returned, passed, values)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return found

        return result(first, *types), call

    names = ", ".join(inspect.signature(function).parameters)
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def call(context, {names}):\n    return typed({names})", scope)
    call: Any = intrinsic(scope["call"])
    call.py_func = function  # for fingerprints
    return call, symbol


def link(dispatcher: Any, signature: tuple[Any, ...], symbol: str) -> None:
    """Define the symbol as the code that `new_separate` compiled for arguments of these types."""
    signature = tuple(map(passed_type, signature))
    dispatcher.compile(signature)
    found = dispatcher.overloads[signature]
    address = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
    llvm.add_symbol(symbol, address)


def type_key(values: tuple[Any, ...]) -> Any:
    """Return what is equal for values of equal types, in a hundredth of the time of `typeof`."""
    return compute_fingerprint(values)


def link_nothing(dispatcher: Any, symbol: str) -> None:
    """Define the symbol, if nothing has, in a process that only compiles its callers.

    If they were called, they would raise RuntimeError.
    """
    if llvm.address_of_symbol(symbol) is None:
        rtsys.initialize(dispatcher.targetctx)
        llvm.add_symbol(symbol, rtsys.library.get_pointer_to_function("nrt_unresolved_abort"))


# Aliases


def _mark_arguments(_context: Any) -> Any:
    def mark(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        for argument in builder.function.args:
            if argument.type.is_pointer:
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return numba.types.none(), mark


no_alias: Any = intrinsic(_mark_arguments)


# Kernels that are rarely called


def _mark_rare(_context: Any) -> Any:
    def mark(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        for attribute in ("cold", "noinline", "optsize"):
            builder.function.attributes.add(attribute)
        return context.get_dummy_value()

    return numba.types.none(), mark


rarely_called: Any = intrinsic(_mark_rare)


# The cache


class DiskCache(NullCache):
    """Compiled code of one function in files, one for each signature.

    Code for this processor is in `folders`, and is written there. Code that onebit was installed
    with is in `shipped`, and is read only. A file that cannot be read is no error: the function is
    compiled again.
    """

    def __init__(self, folders: list[Path], shipped: list[Path]) -> None:
        self._folders, self._shipped = folders, shipped

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the code for a signature, if it is stored."""
        # Numba would import here all that it needs to compile, which takes longer than the rest.
        rtsys.initialize(target_context)
        arguments, _ = sigutils.normalize_signature(sig)
        name = _file_name(arguments, target_context.codegen().magic_tuple())
        for content in itertools.chain(
            code_cache.stored(self._folders, name),
            code_cache.stored(self._shipped, _file_name(arguments)),
        ):
            try:
                found = CompileResult._rebuild(target_context, *pickle.loads(content))
            except Exception:  # a damaged file can raise anything, and only costs time
                continue
            if found.signature.args == arguments:  # classes of a script are new in each process
                # Of its LLVM code only names are there: linking it is an error, not another result.
                found.library._shared_module = None
                return found
        return None

    def files(self, arguments: tuple[Any, ...], codegen: Any, native: bool) -> Iterator[Path]:
        """Yield the files that may have the code for a signature; if `native`, no shipped ones."""
        for folder in self._folders:
            yield folder / _file_name(arguments, codegen.magic_tuple())
        for folder in () if native else self._shipped:
            yield folder / _file_name(arguments)

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Store the code for a signature."""
        if cres.lifted or cres.library.has_dynamic_globals:
            return
        arguments, _ = sigutils.normalize_signature(sig)
        name = _file_name(arguments, cres.codegen.magic_tuple())
        code_cache.store(self._folders, name, dumps(cres._reduce()))


def is_stored(dispatcher: Any, signature: tuple[Any, ...], native: bool) -> bool:
    """Return whether the code for a signature is on disk; if `native`, for this processor."""
    cache: Any = dispatcher._cache
    if not isinstance(cache, DiskCache):
        return False
    codegen = dispatcher.targetctx.codegen()
    return any(file.exists() for file in cache.files(signature, codegen, native))


class BuildCache(DiskCache):
    """The cache of a process that compiles code to be shipped."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Load nothing."""

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Store the code for a signature, for any processor of the level that it is for."""
        if cres.lifted or cres.library.has_dynamic_globals:
            return
        arguments, _ = sigutils.normalize_signature(sig)
        code_cache.store(self._shipped, _file_name(arguments), dumps(cres._reduce()))


def _file_name(arguments: tuple[Any, ...], processor: Any = None) -> str:
    """Return the name of a file for everything that code depends on besides its function."""
    switches = config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT
    parts = (*map(described, arguments), processor, switches)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16] + ".compiled"


# The check


def check(enabled: frozenset[Hook], folder: Path) -> None:
    """Raise if a hook does not do what it should: compile, call, fail, store and load."""
    if Hook.NUMBERS in enabled:
        number_functions()
        if FunctionIdentity.from_function(_call).unique_id < _SMALL:
            raise RuntimeError("functions are not numbered from a random start")
    lean = {"error_model": "numpy"} | ({"_nrt": False} if Hook.REFERENCES in enabled else {})
    part: Callable[..., Any] = new_part if Hook.PARTS in enabled else _plain
    whole = partial(new_whole, hooks=enabled) if Hook.PARTS in enabled else _plain
    mark = no_alias if Hook.ALIASES in enabled else _plain(_nothing)
    inner = part(_bound(_add, mark=mark), **lean)
    mark = rarely_called if Hook.RARE in enabled else _plain(_nothing)
    outer = part(_bound(_add_or_raise, add=inner, mark=mark), **lean)
    signature = (numba.float64[::1], numba.float64)
    for expected_hits in (0, 1):
        dispatcher = whole(_bound(_call, called=outer), **lean)
        if Hook.CACHE in enabled:
            dispatcher._cache = DiskCache([folder], [])
        dispatcher.compile(signature)
        call = entry_point(dispatcher, signature) if Hook.ENTRY_POINTS in enabled else dispatcher
        array = np.array([1.0, 2.0])
        if call(array, 3.0) != 6.0 or array.tolist() != [4.0, 2.0]:
            raise RuntimeError("compiled code computes something else")
        try:
            call(array, -1.0)
        except ValueError as error:
            if error.args != ("negative",):
                raise
        else:
            raise RuntimeError("an error of compiled code does not reach Python")
        if Hook.CACHE in enabled and sum(dispatcher.stats.cache_hits.values()) != expected_hits:
            raise RuntimeError("compiled code is not found again")
    if {Hook.STATES, Hook.ENTRY_POINTS} <= enabled:
        _check_packed(whole(_read, **lean))
    if {Hook.PARTS, Hook.ENTRY_POINTS, Hook.CALLS} <= enabled:
        _check_calls(outer, signature, partial(new_separate, hooks=enabled, **lean), whole, lean)


def _check_packed(dispatcher: Any) -> None:
    state = _State(np.arange(6.0).reshape(2, 3), np.array(7), (0.5, None, True), 3)
    signature = (PackedType(numba.typeof(state)),)
    dispatcher.compile(signature)
    found = entry_point(dispatcher, signature)(pack(state))
    if found != (5.0, 3, 2, 0.5, True, 3) or state.count != 8:
        raise RuntimeError(f"compiled code reads something else from a packed state: {found}")


def _check_calls(
    part: Any, signature: tuple[Any, ...], separate: Any, whole: Any, lean: dict[str, Any]
) -> None:
    array = np.array([1.0, 2.0])
    separated = separate(_bound(_call_passed, called=part))
    call, symbol = new_call(separated.py_func, ("check",), signature[1:], numba.float64)
    link(separated, signature, symbol(signature[0]))
    caller = whole(_bound(_call, called=call), **lean)
    caller.compile(signature)
    if entry_point(caller, signature)(array, 3.0) != 6.0:
        raise RuntimeError("compiled code that is called computes something else")
    if len({type_key((one, 1.0)) for one in (array, array[:1], array[::-1], None)}) != 3:
        raise RuntimeError("arrays of different types have the same key")
    try:
        entry_point(caller, signature)(array, -1.0)
    except ValueError:
        return
    raise RuntimeError("an error of compiled code that is called does not reach Python")


def _plain(function: Any, **options: Any) -> Any:
    return _njit(function, **options)


def _bound(function: Any, **names: Any) -> FunctionType:
    bound = FunctionType(function.__code__, {**function.__globals__, **names})
    bound.__module__, bound.__qualname__ = function.__module__, function.__qualname__
    return bound


# In the functions below, `_bound` binds these names.
add: Any = None
called: Any = None
mark: Any = None


def _nothing():
    pass


def _add(a, x):
    mark()
    a[0] += x
    return a[0] + a[1]


def _add_or_raise(a, x):
    mark()
    if x < 0.0:
        raise ValueError("negative")
    return add(a, x)


def _call(a, x):
    return called(a, x)


def _call_passed(a, x):
    return called(received(a), received(x))


class _State(NamedTuple):
    matrix: Any
    count: Any
    inner: Any
    number: int


def _read(packed):
    state = open_state(packed)
    state.count[()] += 1
    half, _, flag = state.inner
    row = state.matrix[1]
    return row[2], row.size, state.matrix.shape[0], half, flag, state.number
