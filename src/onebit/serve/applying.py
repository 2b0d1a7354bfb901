"""What happens once rows are on disk: models apply them, and snapshots are made."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from onebit.serve.live import LiveModel
from onebit.serve.log import LogError, Snapshot
from onebit.serve.rows import AMENDING, Row
from onebit.serve.writer import PendingRow

if TYPE_CHECKING:
    from onebit.serve.service import Service

SNAPSHOT_ROWS = 10_000
"""Rows between two snapshots of a model."""

STOP_ROWS = 500
"""Rows since the last snapshot that make another one at a stop; fewer are soon replayed."""

SNAPSHOTS_KEPT = 3

_logger = logging.getLogger(__name__)


class Applier:
    """Applies written rows to the models of a service, and makes snapshots of these."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def apply_written(self, live: LiveModel, rows: list[PendingRow], numbers: list[int]) -> None:
        """Apply rows that are on disk to a model, at once or when nothing holds it any longer."""
        live.deferred.append((rows, numbers))
        is_change = live.changed is not None and rows[0].body is live.changed[0]
        if is_change or not live.held:
            self.apply_deferred(live)

    def apply_deferred(self, live: LiveModel) -> None:
        """Apply all rows that are on disk."""
        written, live.deferred = live.deferred, []
        if self._service.live.get(live.name) is not live:
            return
        try:
            for rows, numbers in written:
                for row, n in zip(rows, numbers, strict=True):
                    if row.entry.kind in AMENDING and n == live.model.n + 1:
                        live.head = max(live.head, n)
                        self._service.restorer.begin(live)
                    else:
                        _apply(live, row, n)
        except Exception:
            self._service.fail(live.name, live.key)
        else:
            self.maybe_snapshot(live)

    def maybe_snapshot(self, live: LiveModel) -> None:
        """Begin to make a snapshot of a model if it is time."""
        due = live.model.n - live.snapshot_at >= SNAPSHOT_ROWS
        if due and live.is_leader and live.snapshotting is None:
            live.snapshotting = asyncio.get_running_loop().create_task(self.snapshot(live))
            live.snapshotting.add_done_callback(lambda _: setattr(live, "snapshotting", None))

    async def stop(self) -> None:
        """Make snapshots of models with many rows since the last one."""
        for live in self._service.live.values():
            if live.snapshotting is not None:
                await asyncio.gather(live.snapshotting, return_exceptions=True)
            if live.is_leader and live.model.n - live.snapshot_at >= STOP_ROWS:
                await self.snapshot(live)

    async def snapshot(self, live: LiveModel) -> None:
        """Make a snapshot of a model."""
        service = self._service
        if live.snapshot_at == live.model.n > 1 or service.live.get(live.name) is not live:
            return
        if live.is_outdated:
            return
        model = await service.copy_of(live)
        live.snapshot_at = model.n
        try:
            meta, learners = await asyncio.to_thread(model.snapshot)
            found = Snapshot(model.n, meta, learners)
            await service.log.add_snapshot(live.key, found, SNAPSHOTS_KEPT)
        except LogError as error:
            _logger.error("no snapshot of %s: %s", live.name, error)


def _apply(live: LiveModel, row: PendingRow, n: int) -> None:
    if n:
        live.head = max(live.head, n)
    if n != live.model.n + 1:  # those of other processes are read from the log
        return
    if live.changed is not None and row.body is live.changed[0]:
        labels, changed = live.changed
        if changed.n == live.model.n:
            live.model.adopt_labels_of(changed, labels, row.entry.at)
            return
    model, kind, name, at, text = row.entry
    live.model.apply(Row(model, n, kind, name, at, text), row.body, row.decision)
