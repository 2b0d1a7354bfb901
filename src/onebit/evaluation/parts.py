"""Logs in many files, read by many workers.

An estimate needs only sums over the rows. Only a model learns in the order of the log, from its
first rows: one process reads these, and workers with the model as it then is read the rest. So the
result is that of one process, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from onebit.evaluation.estimators import Estimate, Sums, check_interval
from onebit.evaluation.files import classes_in, joined_classes, parts_of
from onebit.evaluation.log import Log

Map = Callable[[Callable[[Path], Any], list[Path]], Iterable[Any]]
"""Applies a function to files and returns the results in their order, as `map` does."""


def estimate_parts(
    path: str | PathLike[str],
    policy: Any = None,
    method: str = "auto",
    level: float = 0.95,
    interval: str = "fixed",
    *,
    greedy: bool = False,
    clip: float = 100.0,
    least: float | None = None,
    map_parts: Map = map,
) -> Estimate:
    """Estimate the accuracy of a policy as `estimate` does, from a log in a folder of files.

    Parameters
    ----------
    path : path of a folder, or of a file
        The files of a folder are the parts of one log, in the order of their names.
    policy, method, level, interval, greedy, clip
        As of `estimate`.
    least : float, optional
        The least probability of labels on offer, where the log does not say it.
    map_parts : callable, optional
        Applies a function to each of a list of files and returns the results in their order. That
        of a pool of processes or of a cluster lets many workers read.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from onebit import OneBitClassifier, play, streams
    >>> from onebit.evaluation import Log, estimate_parts
    >>> log = Log()
    >>> learner = OneBitClassifier(min_probability=0.01, random_state=0)
    >>> history = play(learner, *streams.synnonsep(4000, seed=0), log=log)
    >>> with TemporaryDirectory() as folder:
    ...     for i in range(4):
    ...         log[1000 * i : 1000 * (i + 1)].write(Path(folder, f"{i}.jsonl"))
    ...     print(estimate_parts(folder))
    what was chosen: 0.8688, 0.8508 to 0.8855 at 95%
    """
    check_interval(level, interval)
    sums = Sums(policy, method, greedy=greedy, clip=clip)
    files = parts_of(path)
    columns = {"classes": joined_classes(map_parts(classes_in, files), path), "least": least}
    while files and not sums.is_settled:
        _take(files.pop(0), sums, columns)
    if files:
        for more in map_parts(partial(_of_part, settled=sums, columns=columns), files):
            sums = sums + more
    return sums.estimate(level, anytime=interval == "anytime")


def _take(file: Path, sums: Sums, columns: dict[str, Any]) -> None:
    for log in Log.batches(file, **columns):
        sums.take(log)


def _of_part(file: Path, settled: Sums, columns: dict[str, Any]) -> Sums:
    """Return the sums of a file alone."""
    sums = settled.emptied()
    _take(file, sums, columns)
    return sums
