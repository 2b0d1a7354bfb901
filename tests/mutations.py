"""Model files changed in every way: their bytes, their arrays, their headers.

`mutate(content, rng)` returns a changed file. Changed arrays and headers get a checksum that is
right again, as from someone who means it.
"""

import copy
import json
import struct
from collections.abc import Iterator

import numpy as np
import safetensors.numpy

from onebit.core.storage import _digest

NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -1e-12, 1e-300, 1e149, -1e149]
NUMBERS += [1e200, -1e200, 1e308, 5e-324]
INTEGERS = [0, 1, -1, 2, 5, 63, 64, 65, -65, 10**6, 10**7, 2**40, 2**62, -(2**63), 2**63 - 1]
TYPES = ["f2", "f4", "f8", "i1", "i4", "i8", "u4", "u8", "?"]
JUNK = [None, True, False, 0, 1, 2, 3, -1, 65, 10**7, 10**12, 2**63, 10**30, 10**400, 0.5, -0.5]
JUNK += [1e-5, 1e-30, 1e-320, 1e30, 1e308, "", "1", "1.5", "nan", "full", "diagonal", "theory"]
JUNK += ["linear", "rbf", "SOBA", "Aioli", "os.system", "__main__.X", "<U1", "|O", "<f8", "|V8"]
JUNK += ["O,O", "<U999999999", "f8" * 1000, "(9,9)f8", "é\x00", [], {}, [1], ["a", "b"], [[1], [2]]]
JUNK += [[0, 1], [1, 0], [1, 1], [None, None], [0.5, 1e400], {"zz": 7}]
JUNK += [{"onebit.learner": "Folklore", "parameters": {}}, {"onebit.learner": 5, "parameters": {}}]
JUNK += [{"onebit.learner": "SOBA", "parameters": {"gamma": "x"}}]
TEXTS = ["", "[", "null", "[" * 100_000, '{"a":' * 100_000, '{"format": NaN}', '{"format": 1e999}']
TEXTS += ['{"format": ' + "9" * 5_000 + "}", "\x00", '{"format": 2, "format": 1}', "{}", "[]"]


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with something changed."""
    return [mutate_bytes, mutate_arrays, mutate_header][rng.integers(3)](content, rng)


def mutate_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Change, add or remove some bytes, in the header as often as in the arrays."""
    changed = bytearray(content)
    header = 8 + struct.unpack("<Q", content[:8])[0]
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        if not changed:
            break
        i = int(rng.integers(min([8, header, len(changed)][rng.integers(3)], len(changed))))
        match rng.integers(8):
            case 0:
                del changed[i : i + int(rng.integers(1, 64))]
            case 1:
                changed[i:i] = rng.bytes(int(rng.integers(1, 64)))
            case 2:
                del changed[i:]
            case _:
                changed[i] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def mutate_arrays(content: bytes, rng: np.random.Generator) -> bytes:
    """Change the values, the shape or the type of an array or two."""
    header, arrays = unpacked(content)
    for _ in range(rng.choice([1, 1, 2])):
        name = list(arrays)[rng.integers(len(arrays))]
        array = arrays.pop(name)
        match rng.integers(12):
            case 0:
                arrays[name] = reshaped(array, rng)
            case 1:
                kinds = [np.float32, np.int64, np.uint64, np.float64, np.int8, np.bool_]
                with np.errstate(all="ignore"):
                    arrays[name] = array.astype(kinds[rng.integers(len(kinds))])
            case 2:
                arrays[f"{name}x"] = array
            case 3:
                with np.errstate(all="ignore"):
                    factor = np.array(rng.choice([-1, 2, 1e-200, 1e100])).astype(array.dtype)
                    arrays[name] = array * factor
            case 4:
                arrays[name] = rng.permuted(array)
            case _:
                arrays[name] = with_other_values(array, rng)
        if not arrays:
            break
    return packed(header, arrays)


def with_other_values(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a copy with some values changed; of a square matrix often both of a pair."""
    array = array.copy()
    if array.size == 0:
        return array
    for _ in range(rng.choice([1, 1, 3])):
        at = tuple(int(rng.integers(n)) for n in array.shape)
        if array.dtype.kind == "f":
            value = rng.choice([rng.choice(NUMBERS), rng.normal(), -array[at], 0.5 * array[at]])
        else:
            value = np.array(INTEGERS[rng.integers(len(INTEGERS))]).astype(array.dtype)
        array[at] = value
        if array.ndim >= 2 and array.shape[-1] == array.shape[-2] and rng.integers(4):
            array[(*at[:-2], at[-1], at[-2])] = value
    return array


def reshaped(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return it with a row more or less, transposed, flat, empty, or with an axis more."""
    match rng.integers(6):
        case 0:
            return array[:-1] if array.ndim else array.reshape(1)
        case 1:
            return np.concatenate([array, array[-1:]]) if array.ndim else np.stack([array] * 2)
        case 2:
            return np.ascontiguousarray(array.T)
        case 3:
            return array.reshape(-1)
        case 4:
            return np.zeros((0, *array.shape[1:]), dtype=array.dtype)
        case _:
            return array[np.newaxis]


def mutate_header(content: bytes, rng: np.random.Generator) -> bytes:
    """Change, remove or add something in the header, or make it no header at all."""
    text, arrays = unpacked(content)
    if rng.integers(10) == 0:
        return packed(TEXTS[rng.integers(len(TEXTS))], arrays)
    header = json.loads(text)
    for _ in range(rng.choice([1, 1, 2])):
        place = header
        # Half of the time the parameters, which are most of what can be wrong.
        if isinstance(header.get("parameters"), dict) and rng.integers(2):
            place = header["parameters"]
        while True:
            key = list(place)[rng.integers(len(place))] if place else "new"
            if not isinstance(place.get(key), dict) or rng.integers(3) == 0:
                break
            place = place[key]
        change = rng.integers(10)
        if change == 0:
            place.pop(key, None)
        elif change == 1:
            place["new"] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])
        elif change == 2 and isinstance(place.get(key), list):
            place[key] = place[key] * 2 if rng.integers(2) else place[key][:1]
        elif change == 3 and isinstance(place.get(key), int | float):
            place[key] = place[key] * 2 if rng.integers(2) else -place[key]
        else:
            place[key] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])
    return packed(json.dumps(header), arrays)


def unpacked(content: bytes) -> tuple[str, dict[str, np.ndarray]]:
    """Return the header of a model file, as text, and its arrays."""
    size = struct.unpack("<Q", content[:8])[0]
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    return metadata["onebit"], safetensors.numpy.load(content)


def packed(header: str, arrays: dict[str, np.ndarray], **more: str) -> bytes:
    """Return a model file with a checksum that is right."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {"onebit": header, "sha256": _digest(header, arrays)} | more
    return safetensors.numpy.save(arrays, metadata)


def misshapen(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield an array in each other shape and of each other type, with what was changed."""
    with np.errstate(all="ignore"):
        for kind in TYPES:
            yield kind, array.astype(kind)
    if array.ndim:
        yield "a row less", array[:-1]
        yield "a row more", np.concatenate([array, array[:1] if array.size else array])
        yield "without rows", array[:0]
        yield "a column less", array[..., :-1]
    yield "transposed", np.ascontiguousarray(array.T)
    yield "flat", array.reshape(-1)
    yield "an axis more", array[np.newaxis]
    yield "twice", np.stack([array, array])


def with_each_value(
    array: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield an array with each unusual value in one place, in a column, and everywhere."""
    if array.size == 0:
        return
    if array.dtype.kind == "f":
        values = [*NUMBERS, 7.999, 15.0, 64.0, 1e15, 1e20, 1e30]
    else:
        values = INTEGERS
    for value in values:
        with np.errstate(all="ignore"):
            item = np.array(value).astype(array.dtype)
        one = array.copy().reshape(-1)
        one[rng.integers(array.size)] = item
        yield f"one {value}", one.reshape(array.shape)
        if array.ndim:
            column = array.copy()
            column[..., rng.integers(array.shape[-1])] = item
            yield f"a column of {value}", column
        yield f"all {value}", np.full_like(array, item)
