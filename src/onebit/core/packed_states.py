"""States as compiled single rounds take them: by the address of a table of 64-bit words.

A state is a tuple of arrays, numbers and further tuples, of which `OneBitClassifier` has hundreds.
If Python passes it, each of them is looked at in every call, which takes longer than the round, and
the code that does so is a fifth of the work of compiling. Arrays of a state are written in place
and stay where they are. So a table has, once for each state, the address and the shape of each
array, and the numbers; compiled code reads from it what it uses.

The table is onebit's own. That of an array in compiled code, which `open_state` fills, is private
to Numba: `onebit.core.fence` decides whether states are packed.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

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
    """Append the words of a value, each with its code in `struct`; return whether it has any."""
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


class PackedType(types.Type):
    """The type of packed states of one type."""

    def __init__(self, state: Any) -> None:
        self.state = state
        super().__init__(name=f"PackedState({state})")

    @property
    def key(self) -> Any:
        """The type of the state: its name alone lacks the types of the fields."""
        return self.state


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
        return self._builder.load(self._builder.gep(self._address, [place], inbounds=True))

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
        context, builder = self._context, self._builder
        data = self._word()
        shape = [self._word() for _ in range(type_.ndim)]
        strides = [self._word() for _ in range(type_.ndim)]
        n_items = ir.Constant(_WORD, 1)
        for length in shape:
            n_items = builder.mul(n_items, length)
        item = context.get_data_type(type_.dtype)
        nobody = ir.Constant(cgutils.voidptr_t, None)  # counts references: `PackedState` has them
        fields = {
            "meminfo": nobody,
            "parent": nobody,
            "nitems": n_items,
            "itemsize": ir.Constant(_WORD, context.get_abi_sizeof(item)),
            "data": builder.inttoptr(data, item.as_pointer()),
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


def _open_state(_context: Any, packed: Any) -> Any:
    def open_packed(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _Table(context, builder, arguments[0]).read(signature.return_type)

    def same(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if context.enable_nrt:
            context.nrt.incref(builder, signature.return_type, arguments[0])
        return arguments[0]

    if isinstance(packed, PackedType):
        return packed.state(packed), open_packed
    return packed(packed), same


open_state: Any = intrinsic(_open_state)
"""``open_state(packed)``: the state, in compiled code; what is not packed is returned as it is."""
