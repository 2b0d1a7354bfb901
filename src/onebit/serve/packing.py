"""Learners in memory that take space for what was learned, not for whole tables.

Most of a table is as it was at the start: one row throughout, or numbers in their order. The
differences from one row to the next are then equal for long stretches, of which only the value and
the length are kept.
"""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np

LEAST_BYTES = 4096
"""Minimum bytes of an array that is packed."""


class Stretches(NamedTuple):
    """An array as the stretches over which differences of its rows, of a width, are equal."""

    values: np.ndarray
    lengths: np.ndarray
    width: int


class Packed(NamedTuple):
    """An object, and the contents of its arrays."""

    content: bytes
    buffers: list[bytes | Stretches]

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return len(self.content) + sum(
            len(one) if isinstance(one, bytes) else one.values.nbytes + one.lengths.nbytes
            for one in self.buffers
        )


def packed(found: Any) -> Packed:
    """Return an object packed: 22 MB of a new `OneBitClassifier` with ten labels take 30 ms."""
    buffers: list[pickle.PickleBuffer] = []
    # Only for this process: nothing that comes from elsewhere is ever unpickled.
    content = pickle.dumps(found, protocol=5, buffer_callback=buffers.append)
    return Packed(content, [_stretches(buffer) for buffer in buffers])


def unpacked(found: Packed) -> Any:
    """Return an object that was packed."""
    buffers = [bytearray(one) if isinstance(one, bytes) else _array(one) for one in found.buffers]
    return pickle.loads(found.content, buffers=buffers)


def _stretches(buffer: pickle.PickleBuffer) -> bytes | Stretches:
    found, raw = memoryview(buffer), buffer.raw()
    if raw.nbytes < LEAST_BYTES or found.itemsize not in _NUMBERS or not found.c_contiguous:
        return bytes(raw)
    width = found.shape[-1] if found.shape is not None and found.ndim > 1 else 1
    values = np.frombuffer(raw, _NUMBERS[found.itemsize]).reshape(-1, width)
    rows = values.copy()
    np.subtract(values[1:], values[:-1], out=rows[1:])  # modulo the largest number
    differences = rows.reshape(-1)
    starts = np.flatnonzero(differences[1:] != differences[:-1]) + 1
    if starts.size * 2 > differences.size:
        return bytes(raw)
    starts = np.concatenate([np.zeros(1, starts.dtype), starts])
    return Stretches(differences[starts], np.diff(starts, append=differences.size), width)


def _array(found: Stretches) -> np.ndarray:
    values = np.repeat(found.values, found.lengths).reshape(-1, found.width)
    return np.cumsum(values, axis=0, dtype=values.dtype, out=values).reshape(-1).view(np.uint8)


_NUMBERS = {4: np.uint32, 8: np.uint64}
"""As which numbers the contents of arrays are read, by the bytes of an item."""
