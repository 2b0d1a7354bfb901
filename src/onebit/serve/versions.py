"""When other versions of the code took over, by the rows of a log."""

from __future__ import annotations

from onebit.serve.log import ServiceLog
from onebit.serve.rows import Row
from onebit.serve.statistics import Mark


async def version_marks(log: ServiceLog, key: int, rows: int) -> list[Mark]:
    """Return when the version of the code changed, by bisection of the log.

    While two versions write at the same time, it changes with each row; then one of these places
    is found.

    Parameters
    ----------
    log : ServiceLog
    key : int
        Of the model.
    rows : int
        Number of rows of its log.
    """
    if not rows:
        return []
    names = await log.codes()
    found: list[Mark] = []
    first, last = await _row(log, key, 1), await _row(log, key, rows)
    spans = [] if first is None or last is None else [(first, last)]
    while spans:
        low, high = spans.pop()
        if low.code == high.code:
            continue
        if high.n - low.n == 1:
            version = names.get(high.code or 0, "an earlier version").partition(",")[0]
            found.append(Mark(high.at, "version", [version]))
            continue
        middle = await _row(log, key, (low.n + high.n) // 2)
        if middle is not None:
            spans += [(low, middle), (middle, high)]
    return sorted(found, key=lambda mark: mark.at)


async def _row(log: ServiceLog, key: int, n: int) -> Row | None:
    rows = await log.rows(key, n - 1, 1)
    return rows[0] if rows else None
