"""Messages between the service and its background processes, over their pipes.

To a process: a task, then its input in parts, then an empty message. From a process: structs of
MessagePack, and the contents of learners, as `onebit.load` reads them, in parts. Nothing is
pickled.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Protocol

import msgspec
from msgspec import Struct

from onebit.serve.log import ImportedRow

LENGTH = Layout("<I")
"""What each message begins with: the number of its bytes."""

LONGEST_PART = 2**17
"""Maximum bytes of a part of some input, or of a learner."""


class ImportTask(Struct, tag="import", frozen=True):
    """Validate and replay the log whose lines follow, and send its rows back."""

    labels: int
    """Maximum number of labels of a model."""
    longest_line: int
    """Maximum bytes of a line."""


class ReplayTask(Struct, tag="replay", frozen=True):
    """Replay the log whose lines follow; it is one of the service, and its rows are sound."""


class ReplayedRows(Struct, tag="rows", frozen=True):
    """The next rows of a log, which were applied."""

    rows: list[ImportedRow]


class ReplayedModel(Struct, tag="model", frozen=True):
    """A model after the last row, without its learners, whose contents follow in this order."""

    n: int
    meta: bytes
    sizes: dict[str, int]
    """Bytes of each learner."""
    is_revised: bool
    """Whether there were revisions, which this model ignores."""


class Refusal(Struct, tag="refusal", frozen=True):
    """Why a task cannot be done: a fault of its input."""

    message: str


class Failure(Struct, tag="failure", frozen=True):
    """A traceback: a defect of the code."""

    traceback: str


class Announcement(Struct, tag="announcement", frozen=True):
    """What to log while a task goes on."""

    message: str


Task = ImportTask | ReplayTask
Message = ReplayedRows | ReplayedModel | Refusal | Failure | Announcement

encode = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode
decode_message = msgspec.msgpack.Decoder(Message).decode


class _File(Protocol):
    def read(self, size: int, /) -> bytes: ...


def framed(content: bytes) -> bytes:
    """Return a message as it is sent."""
    return LENGTH.pack(len(content)) + content


def read_message(file: _File) -> bytes:
    """Return the next message; raise EOFError if the sender is gone."""
    (length,) = LENGTH.unpack(_read(file, LENGTH.size))
    return _read(file, length)


def _read(file: _File, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise EOFError
    return content
