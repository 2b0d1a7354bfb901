"""States as compiled single rounds take them: by the address of a table of 64-bit words.

A state is a tuple of arrays, numbers and further tuples, of which `OneBitClassifier` has hundreds.
If Python passes it, each of them is unpacked in every call, which takes longer than the round, and
the code that does so is a fifth of the work of compiling. Arrays of a state are written in place
and stay where they are. So a table has, once for each state, the address and the shape of each
array, and the numbers; compiled code reads from it what it uses.

`open_state` reads all of it, for kernels that take a state as Numba has it. Kernels that are
compiled separately take the address itself, and read a field where they use it: to pass hundreds of
values from kernel to kernel is another fifth of the work of compiling.

The table is onebit's own. That of an array in compiled code, which `open_state` fills, is private
to Numba: `onebit.core.fence` decides whether states are packed.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)

_WORD = ir.IntType(64)


class PackedState(int):
    """The address of a table; it keeps the table, and the arrays of the state, alive."""

    state: Any
    table: np.ndarray

    def __reduce__(self) -> Any:
        return pack, (self.state,)  # a copy has a table of its own


def pack(state: Any) -> Any:
    """Return the packed state; the state itself if it has anything that cannot be packed."""
    codes: list[str] = []
    words: list[Any] = []
    if not _append(state, codes, words):
        return state
    table = np.frombuffer(bytearray(struct.pack("=" + "".join(codes), *words)), dtype=np.int64)
    packed = PackedState(table.__array_interface__["data"][0])
    packed.state, packed.table = state, table
    return packed


def unpacked(state: Any) -> Any:
    """Return the state that was packed, or that could not be."""
    return state.state if isinstance(state, PackedState) else state


def _append(value: Any, codes: list[str], words: list[Any]) -> bool:
    """Append the words of a value, each with its code in `struct`; return False if it cannot be."""
    if isinstance(value, tuple):
        return all(_append(inner, codes, words) for inner in value)
    if isinstance(value, np.ndarray):
        codes.append("q" * (1 + 2 * value.ndim))
        words.append(value.__array_interface__["data"][0])
        words.extend(value.shape)
        words.extend(value.strides)
    elif isinstance(value, float):
        codes.append("d")
        words.append(value)
    elif isinstance(value, bool | int | np.bool_ | np.int64):
        codes.append("q")
        words.append(int(value))
    else:
        return value is None
    return True


def described(type_: Any) -> str:
    """Return a complete name of a type: Numba's names of named tuples lack the fields."""
    if isinstance(type_, PackedType):
        return type_.name
    cls = getattr(type_, "instance_class", None)
    if cls is None:
        return str(type_)
    fields = [
        f"{name}: {described(field)}" for name, field in zip(type_.fields, type_, strict=True)
    ]
    return f"{cls.__module__}.{cls.__qualname__}({', '.join(fields)})"


class PackedType(types.Type):
    """The type of packed states of one type; its short name stands for that whole type.

    Compiled code has the fields of the state as attributes: those that are named tuples are packed
    too, at their place in the same table, and others are read when they are used.
    """

    def __init__(self, state: Any) -> None:
        self.state = state
        digest = hashlib.sha256(described(state).encode()).hexdigest()[:16]
        super().__init__(name=f"Packed{digest}")

    @property
    def instance_class(self) -> Any:
        """The class of the state."""
        return self.state.instance_class

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields."""
        return self.state.fields

    @property
    def types(self) -> tuple[Any, ...]:
        """The types of the fields."""
        return tuple(type_ for type_, _ in self._layout().values())

    def field(self, name: str) -> tuple[Any, int] | None:
        """Return the type of a field, and its place in the table; None if there is none."""
        return self._layout().get(name)

    def _layout(self) -> dict[str, tuple[Any, int]]:
        if self.name not in _LAYOUTS:
            place, layout = 0, {}
            for field, type_ in zip(self.state.fields, self.state, strict=True):
                is_named = isinstance(type_, types.BaseNamedTuple)
                layout[field] = PackedType(type_) if is_named else type_, place
                place += _n_words(type_)
            _LAYOUTS[self.name] = layout
        return _LAYOUTS[self.name]


_LAYOUTS: dict[str, dict[str, tuple[Any, int]]] = {}
"""Types and places of the fields of packed types, by the names of the packed types."""


def _n_words(type_: Any) -> int:
    """Return how many words of a table a value of this type has."""
    if isinstance(type_, types.BaseTuple):
        inside: Any = type_
        return sum(map(_n_words, inside))
    if isinstance(type_, types.Array):
        return 1 + 2 * type_.ndim
    return 0 if type_ == types.none else 1


def packed_type(state: Any) -> Any:
    """Return the type of a state once it is packed, from that of the state."""
    return PackedType(state)


@register_model(PackedType)
class _PackedModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _WORD.as_pointer())


@unbox(PackedType)
def _unbox(type_: Any, address: Any, context: Any) -> NativeValue:
    pointer = context.pyapi.long_as_voidptr(address)
    failed = cgutils.is_not_null(context.builder, context.pyapi.err_occurred())
    table = context.builder.bitcast(pointer, _WORD.as_pointer())
    return NativeValue(table, is_error=failed)


class _Table:
    """Reads values from a table, one word after the other."""

    def __init__(self, context: Any, builder: Any, address: Any) -> None:
        self._context, self._builder, self._address = context, builder, address
        self._n_read = 0

    def _word(self) -> Any:
        place = ir.Constant(_WORD, self._n_read)
        self._n_read += 1
        word = self._builder.load(self._builder.gep(self._address, [place], inbounds=True))
        # Nothing writes to a table while code runs that reads from it.
        word.set_metadata("invariant.load", self._builder.module.add_metadata([]))
        return word

    def read(self, type_: Any) -> Any:
        """Return the next value of this type."""
        if isinstance(type_, types.BaseTuple):
            inside: Any = type_
            values = [self.read(inner) for inner in inside]
            return self._context.make_tuple(self._builder, type_, values)
        if isinstance(type_, types.Array):
            return self._array(type_)
        if type_ == types.none:
            return self._context.get_dummy_value()
        if type_ == types.boolean:
            return cgutils.is_not_null(self._builder, self._word())
        if type_ == types.float64:
            return self._builder.bitcast(self._word(), ir.DoubleType())
        if type_ == types.int64:
            return self._word()
        raise TypeError(f"{type_} cannot be read from a packed state")

    def _array(self, type_: Any) -> Any:
        data = self._word()
        shape = [self._word() for _ in range(type_.ndim)]
        strides = [self._word() for _ in range(type_.ndim)]
        item = self._context.get_data_type(type_.dtype)
        data = self._builder.inttoptr(data, item.as_pointer())
        return _array_value(self._context, self._builder, type_, data, shape, strides)


def _array_value(
    context: Any, builder: Any, type_: Any, data: Any, shape: list[Any], strides: list[Any]
) -> Any:
    """Return an array, as compiled code has it, that does not count references to its memory."""
    n_items = ir.Constant(_WORD, 1)
    for length in shape:
        n_items = builder.mul(n_items, length)
    nobody = ir.Constant(cgutils.voidptr_t, None)
    fields = {
        "meminfo": nobody,
        "parent": nobody,
        "nitems": n_items,
        "itemsize": ir.Constant(_WORD, _item_size(context, type_)),
        "data": data,
        "shape": cgutils.pack_array(builder, shape, _WORD),
        "strides": cgutils.pack_array(builder, strides, _WORD),
    }
    model = context.data_model_manager[type_]
    if model.field_count != len(fields):
        raise TypeError(f"arrays of this version of Numba have other fields than {[*fields]}")
    array = ir.Constant(context.get_value_type(type_), ir.Undefined)
    for name, value in fields.items():
        array = builder.insert_value(array, value, model.get_field_position(name))
    return array


def _item_size(context: Any, type_: Any) -> int:
    return context.get_abi_sizeof(context.get_data_type(type_.dtype))


@infer_getattr
class _PackedAttributes(AttributeTemplate):
    key = PackedType

    def generic_resolve(self, typ: Any, attr: str) -> Any:  # type: ignore[override]
        found = typ.field(attr)
        return None if found is None else found[0]


@lower_getattr_generic(PackedType)
def _lower_getattr(context: Any, builder: Any, packed: Any, address: Any, name: str) -> Any:
    type_, place = packed.field(name)
    address = builder.gep(address, [ir.Constant(_WORD, place)], inbounds=True)
    if isinstance(type_, PackedType):
        return address
    return _Table(context, builder, address).read(type_)


def _open_state(_context: Any, packed: Any) -> Any:
    def open_packed(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _Table(context, builder, arguments[0]).read(signature.return_type)

    if isinstance(packed, PackedType):
        return packed.state(packed), open_packed
    return packed(packed), _same


def _same(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    if context.enable_nrt:
        context.nrt.incref(builder, signature.return_type, arguments[0])
    return arguments[0]


open_state: Any = intrinsic(_open_state)
"""``open_state(packed)``: the state, in compiled code; what is not packed is returned as it is."""


# Arguments of kernels that are compiled separately


class PassedType(types.Type):
    """The type of an argument of which arrays are passed as an address and a length.

    Numba passes seven words for an array, all of which follow from these two if it has one axis and
    C order. Of a tuple, each value is passed so.
    """

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(name=f"Passed({described(of)})")


def passed_type(type_: Any) -> Any:
    """Return the type that an argument of this type has when it is passed."""
    is_array = isinstance(type_, types.Array) and type_.ndim == 1 and type_.layout == "C"
    return PassedType(type_) if is_array or isinstance(type_, types.BaseTuple) else type_


@register_model(PassedType)
class _PassedModel(models.StructModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        of = type_.of
        if isinstance(of, types.Array):
            members = [("data", types.CPointer(of.dtype)), ("size", types.int64)]
        else:
            members = [(f"field{i}", passed_type(inner)) for i, inner in enumerate(of)]
        super().__init__(manager, type_, members)


def passed_value(context: Any, builder: Any, type_: Any, value: Any) -> Any:
    """Return a value of the type as it is passed."""
    passed_as = passed_type(type_)
    if passed_as == type_:
        return value
    if isinstance(type_, types.Array):
        array = context.make_array(type_)(context, builder, value)
        parts = [array.data, builder.extract_value(array.shape, 0)]
    else:
        inside: Any = type_
        parts = [
            passed_value(context, builder, inner, builder.extract_value(value, i))
            for i, inner in enumerate(inside)
        ]
    passed = ir.Constant(context.get_value_type(passed_as), ir.Undefined)
    for i, part in enumerate(parts):
        passed = builder.insert_value(passed, part, i)
    return passed


def _received_value(context: Any, builder: Any, type_: Any, value: Any) -> Any:
    """Return a value of the type from what was passed."""
    if passed_type(type_) == type_:
        return value
    if isinstance(type_, types.Array):
        data, size = (builder.extract_value(value, i) for i in range(2))
        stride = ir.Constant(_WORD, _item_size(context, type_))
        return _array_value(context, builder, type_, data, [size], [stride])
    inside: Any = type_
    parts = [
        _received_value(context, builder, inner, builder.extract_value(value, i))
        for i, inner in enumerate(inside)
    ]
    return context.make_tuple(builder, type_, parts)


def _received(_context: Any, passed: Any) -> Any:
    def receive(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _received_value(context, builder, passed.of, arguments[0])

    if isinstance(passed, PassedType):
        return passed.of(passed), receive
    return passed(passed), _same


received: Any = intrinsic(_received)
"""``received(passed)``: an argument as the caller has it, from what was passed for it."""
