"""A background process of the service, for work that would delay requests.

It has only its pipes, opens no log and knows no keys, so it may be killed at any time. It ends when
the service does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from typing import BinaryIO

from onebit.core.progress import announce_with
from onebit.serve.imported_log import ImportedLog, InvalidLogError, lines_of
from onebit.serve.log import ImportedRow
from onebit.serve.messages import (
    LONGEST_PART,
    Announcement,
    Failure,
    ImportTask,
    Message,
    Refusal,
    ReplayedModel,
    ReplayedRows,
    ReplayTask,
    Task,
    decode_task,
    encode,
    framed,
    read_message,
)
from onebit.serve.model import Model

NICENESS = 10
"""How much this process gives way to others."""

ROWS_TOGETHER = 64
"""Maximum number of rows that are sent together, and written together: requests wait for that."""

BYTES_TOGETHER = 2**16
"""Bytes after which rows are sent, even if they are few."""


def main() -> None:
    """Do one task after the other, until the service ends."""
    if hasattr(os, "nice"):  # Windows sets a priority when it starts a process
        os.nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service decides when this process ends
    source = os.fdopen(os.dup(0), "rb")
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not come between the messages
    tasks = _Tasks(source, output)
    announce_with(lambda message: tasks.send(Announcement(message)))
    with contextlib.suppress(EOFError, BrokenPipeError):
        tasks.run()


def give_way() -> None:
    """Yield the processor to requests: a row takes less time than a scheduler's slice.

    A nice process, too, keeps a processor for the rest of its slice, about 3 ms, when a thread of
    the service wakes.
    """
    if hasattr(os, "sched_yield"):
        os.sched_yield()


class _Tasks:
    """The tasks that arrive on a pipe, and what is sent back."""

    def __init__(self, source: BinaryIO, output: BinaryIO) -> None:
        self._source, self._output = source, output

    def run(self) -> None:
        """Do one task after the other; raise EOFError once the service is gone."""
        while True:
            task = decode_task(read_message(self._source))
            parts = self._parts()
            try:
                self._do(task, parts)
            except InvalidLogError as error:
                self.send(Refusal(str(error)))
            except (EOFError, BrokenPipeError):
                raise
            except Exception:
                self.send(Failure(traceback.format_exc()))
            for _ in parts:  # of input that was refused
                pass

    def _parts(self) -> Iterator[bytes]:
        while part := read_message(self._source):
            yield part

    def _do(self, task: Task, parts: Iterator[bytes]) -> None:
        """Replay a log; send its rows if they are to be written, and the model."""
        if isinstance(task, ImportTask):
            log, longest = ImportedLog(task.labels), task.longest_line
        else:
            log, longest = ImportedLog(None), sys.maxsize
        rows, size = list[ImportedRow](), 0
        for line in lines_of(parts, longest):
            row = log.apply(line)
            give_way()
            if isinstance(task, ReplayTask):
                continue
            rows.append((row.kind, row.id, row.at, row.body, log.code))
            size += len(row.body)
            if len(rows) >= ROWS_TOGETHER or size >= BYTES_TOGETHER:
                self.send(ReplayedRows(rows))
                rows, size = [], 0
        if log.model is None:
            raise InvalidLogError("the log is empty")
        if rows:
            self.send(ReplayedRows(rows))
        self._send_model(log.model, log.is_revised)

    def _send_model(self, model: Model, is_revised: bool) -> None:
        meta, learners = model.snapshot()
        sizes = {name: len(content) for name, content in learners.items()}
        self.send(ReplayedModel(model.n, meta, sizes, is_revised))
        for content in learners.values():
            for i in range(0, len(content), LONGEST_PART):
                self._output.write(framed(content[i : i + LONGEST_PART]))
        self._output.flush()

    def send(self, message: Message) -> None:
        """Send a message."""
        self._output.write(framed(encode(message)))
        self._output.flush()
