"""All combinations of learners, parameters, streams and seeds, on one machine or many."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import BaseEstimator, clone

import onebit
from onebit.core import Learner
from onebit.lab.code import fingerprint_of
from onebit.lab.measures import ONLINE, Measure, Online, candidates
from onebit.lab.processes import in_copies, may_copy
from onebit.lab.results import Folder, as_table, write_table
from onebit.lab.shared import Made, Source, data_name, fingerprint, shared, store
from onebit.lab.tools import Tool
from onebit.lab.trials import Trial
from onebit.streams import StreamSpec

if TYPE_CHECKING:
    import pandas as pd

Streams = Mapping[str, Any] | Sequence[str | StreamSpec]

Player = Learner | Tool | Trial


@dataclass(frozen=True)
class Run:
    """A learner to be played over a stream, with a seed.

    Parameters
    ----------
    name : str
        What the learner is called in tables.
    learner : Learner, Tool or Trial
        With its parameters; `classes` and `random_state` of a learner are set by the run.
    stream : str
        What the stream is called in tables.
    source : StreamSpec, Made, Shared or None
        The stream, or arrays that have been stored; None of a trial, which makes its own data.
    seed : int
        Seed of the stream and of the learner.
    grid : tuple of pairs (name, value)
        The parameters that come from a grid, which are columns of the table.
    measure : Measure
        What is measured; by default online mistakes.
    """

    name: str
    learner: Player
    stream: str
    source: Source | None
    seed: int
    grid: tuple[tuple[str, Any], ...] = ()
    measure: Measure = ONLINE

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters except classes and random_state, as JSON types."""
        found = self.learner.get_params(deep=False)
        return {
            name: value if isinstance(value, str | int | float | None) else repr(value)
            for name, value in found.items()
            if name not in ("classes", "random_state")
        }

    @property
    def what(self) -> dict[str, Any]:
        """What is played: learner, parameters, data and seed."""
        return {
            "learner": type(self.learner).__name__,
            "parameters": self.parameters,
            "source": {} if self.source is None else fingerprint(self.source),
            "seed": self.seed,
            "measure": repr(self.measure),
        }

    @property
    def key(self) -> str:
        """A hash of what the result depends on: what is played, code and the tool's version."""
        version = self.learner.version if isinstance(self.learner, Tool) else None
        return digest(self.what | {"version": version, "code": fingerprint_of(self._code)})

    @property
    def _code(self) -> list[Any]:
        """The functions and classes that determine the result, with all that they reach."""
        inner = self.learner.get_params().values()
        estimators = (type(value) for value in inner if isinstance(value, BaseEstimator))
        made = [self.source.make] if isinstance(self.source, Made) else []
        if isinstance(self.learner, Trial):
            return [type(self.learner), *estimators]
        return [type(self.learner), *estimators, type(self.measure), shared, *made]

    @property
    def can_play(self) -> bool:
        """Whether the package that plays is installed."""
        return not isinstance(self.learner, Tool) or self.learner.version is not None

    def __str__(self) -> str:
        return f"{self.learner} on {self.stream}, seed {self.seed}"

    def play(self, data: Path) -> dict[str, Any]:
        """Play, with the stream shared in the folder `data`, and return the result."""
        try:
            return self._play(data)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(f"{self}: {error}") from error

    def _play(self, data: Path) -> dict[str, Any]:
        if isinstance(self.learner, Trial) or self.source is None:
            return cast(Trial, self.learner).result(self.seed)
        X, y, n_classes = shared(self.source, self.seed, data)
        if isinstance(self.learner, Tool):
            if not isinstance(self.measure, Online):
                raise ValueError(f"tools count mistakes online; got {self.measure}")
            return self.learner.play(X, y, n_classes, self.seed, self.measure)
        learner = clone(self.learner).set_params(
            classes=np.arange(n_classes), random_state=self.seed
        )
        epochs = self.source.epochs if isinstance(self.source, StreamSpec) else 1
        return self.measure(learner, X, y, epochs)


def digest(what: dict[str, Any]) -> str:
    """Return a hash of JSON types."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


def sweep(
    learners: Any,
    grid: Mapping[str, Sequence[Any]] | None = None,
    streams: Streams = ("synsep",),
    seeds: int | Iterable[int] = 10,
    measure: Measure = ONLINE,
    *,
    jobs: int = -1,
    dask: str | None = None,
    folder: str | PathLike[str] | None = None,
    progress: Callable[[int, int], Any] | None = None,
    known: Callable[[Run], dict[str, Any] | None] | None = None,
) -> pd.DataFrame:
    """Play all combinations of learners, parameters, streams and seeds.

    Parameters
    ----------
    learners : list of Learner, class or name; or dict {name: Learner, or list of them}
        Also tools of `onebit.lab.tools`, of which those that are not installed are left out; and
        trials, which make their own data.
    grid : dict {parameter: values}, optional
        Each learner that has such a parameter is played with each of its values; one that has none
        of them is played as it is.
    streams : list of name, path or StreamSpec; or dict {name: any of these, Made, or a pair (X, y)}
        Empty for trials.
    seeds : int or iterable of int, default=10
        Their number, from 0 on, or the seeds themselves. A seed determines the stream, or its order
        if it is a named or shuffled one, and all random draws of the learner.
    measure : Measure, optional
        What is measured in a run, one of `onebit.lab.measures`; by default online mistakes.
    jobs : int, default=-1
        Parallel processes; -1 for one per core. They share the memory of streams.
    dask : str, optional
        Address of a Dask scheduler, whose workers then play. Files must have the same path on each
        worker's machine, and so must `folder` if a stream is a pair of arrays.
    folder : path, optional
        Where results are kept: existing ones are not played again, and none is lost if the process
        is killed. The table is written there too, as results.parquet.
    progress : callable, optional
        Called with the number of results so far and of all.
    known : callable, optional
        Returns the result of a run that need not be played, or None.

    Returns
    -------
    DataFrame
        A row for each run: learner, parameters (JSON), stream, seed, a column for each parameter
        of the grid, and what is measured: online, rounds, mistakes, explored, updated, error,
        seconds, and the error so far (curve_errors) after some of the rounds (curve_rounds).

    Examples
    --------
    >>> from onebit import lab
    >>> from onebit.streams import StreamSpec
    >>> streams = {"SynSep": StreamSpec("synsep", rounds=2000)}
    >>> table = lab.sweep(["Perceptron", "Banditron"], {"gamma": [0.1, 0.3]}, streams, 2, jobs=1)
    >>> lab.summary(table)[["learner", "gamma", "seeds", "error"]].round(3)
          learner  gamma  seeds  error
    0  Perceptron    NaN      2  0.010
    1   Banditron    0.3      2  0.346
    2   Banditron    0.1      2  0.364
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="onebit-"))
        kept = Folder(folder)
        stack.enter_context(kept.locked())
        # Streams that a killed sweep left behind are useless.
        data = kept.path / "streams"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        stack.callback(shutil.rmtree, data, ignore_errors=True)
        runs = runs_of(learners, grid, streams, seeds, measure, data)
        results = _results(runs, kept, data, jobs, dask, progress, known or _nothing)
        table = as_table([_row(run, results[run.key]) for run in runs if run.key in results])
        write_table(table, kept.path / "results.parquet")
        return table


def runs_of(
    learners: Any,
    grid: Mapping[str, Sequence[Any]] | None,
    streams: Streams,
    seeds: int | Iterable[int],
    measure: Measure,
    data: Path,
) -> list[Run]:
    """Return all combinations, those of one stream and seed together; arrays go to `data`."""
    grid = grid or {}
    settings: list[tuple[str, Player, tuple[tuple[str, Any], ...]]] = []
    used: set[str] = set()
    for name, learner in _named_learners(learners):
        for chosen in candidates(learner, grid):
            used.update(chosen)
            candidate = clone(learner).set_params(**chosen)
            candidate._validate_params()
            settings.append((name, candidate, tuple(chosen.items())))
    unknown = set(grid) - used
    if unknown:
        raise ValueError(f"none of the learners has a parameter {', '.join(sorted(unknown))}")
    if not settings:
        raise ValueError("there is no learner to play")
    numbers = range(seeds) if isinstance(seeds, int) else list(seeds)
    if not len(numbers):
        raise ValueError("there is no seed to play with")
    if any(isinstance(learner, Trial) != (not streams) for _, learner, _ in settings):
        raise ValueError("trials are played without streams, and all others with streams")
    named: Iterable[tuple[str, Source | None]]
    named = list(_named_streams(streams, data)) if streams else [("", None)]
    return [
        Run(name, learner, stream, source, int(seed), chosen, measure)
        for stream, source in named
        for seed in numbers
        for name, learner, chosen in settings
    ]


def _named_learners(learners: Any) -> Iterator[tuple[str, Player]]:
    if isinstance(learners, Mapping):
        for name, some in learners.items():
            for learner in some if isinstance(some, list | tuple) else [some]:
                yield name, _as_learner(learner)
        return
    for learner in learners:
        made = _as_learner(learner)
        yield type(made).__name__, made


def _as_learner(learner: Any) -> Player:
    if isinstance(learner, str):
        learner = onebit.learners.named(learner)
    made = learner() if isinstance(learner, type) else learner
    if not isinstance(made, Player):
        raise ValueError(f"a learner, its class or its name is needed; got {made!r}")
    return made


def _named_streams(streams: Streams, data: Path) -> Iterator[tuple[str, Source]]:
    pairs = (
        streams.items()
        if isinstance(streams, Mapping)
        else [(some.name if isinstance(some, StreamSpec) else some, some) for some in streams]
    )
    for name, some in pairs:
        if isinstance(some, tuple):
            X, y = some
            yield name, store(X, y, data)
        elif isinstance(some, Made):
            yield name, some
        else:
            spec = some if isinstance(some, StreamSpec) else StreamSpec(some)
            spec.check()
            yield name, spec


def _results(
    runs: Sequence[Run],
    kept: Folder,
    data: Path,
    jobs: int,
    dask: str | None,
    progress: Callable[[int, int], Any] | None,
    known: Callable[[Run], dict[str, Any] | None],
) -> dict[str, dict[str, Any]]:
    """Return the result of each run by its key: known, read from the folder, or played."""
    wanted = {run.key: run for run in runs}
    results: dict[str, dict[str, Any]] = {}
    for key, run in wanted.items():
        found = known(run) or kept.read(key)
        if found is not None:
            results[key] = found
    missing = {key: run for key, run in wanted.items() if key not in results and run.can_play}
    left = Counter((run.source, run.seed) for run in missing.values())
    for key, result in _played(missing, data, jobs, dask):
        kept.write(key, result)
        results[key] = result
        source, seed = missing[key].source, missing[key].seed
        left[source, seed] -= 1
        if not left[source, seed] and isinstance(source, StreamSpec | Made):
            shutil.rmtree(data / data_name(source, seed), ignore_errors=True)
        if progress is not None:
            progress(len(results), len(results) + left.total())
    return results


def _nothing(run: Run) -> None:
    return None


def _played(
    missing: Mapping[str, Run], data: Path, jobs: int, dask: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield results as they come, in any order."""
    import joblib

    if not missing:
        return
    with ExitStack() as stack:
        if dask is not None:
            from distributed import Client

            stack.enter_context(Client(dask, set_as_default=True))
            stack.enter_context(joblib.parallel_config(backend="dask"))
        n_jobs = -1 if dask is not None else jobs
        n_processes = joblib.effective_n_jobs(n_jobs)
        calls = ((key, missing[key], data) for key in _interleaved(missing, n_processes))
        try:
            if dask is None and n_processes > 1 and may_copy():
                yield from in_copies(n_processes, _play, calls)
            else:
                parallel = joblib.Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
                yield from parallel(joblib.delayed(_play)(*call) for call in calls)
        except BrokenProcessPool:
            raise ChildProcessError(
                "a process that played was killed, perhaps for want of memory; results so far are "
                "kept, and the same call plays the rest"
            ) from None


def _interleaved(missing: Mapping[str, Run], n_jobs: int) -> Iterator[str]:
    """Yield runs such that `n_jobs` processes make different streams, without waiting.

    Only that many streams exist at a time: the runs of one follow those of another.
    """
    of_streams: dict[Any, list[str]] = {}
    for key, run in missing.items():
        of_streams.setdefault((run.source, run.seed), []).append(key)
    groups = iter(of_streams.values())
    while block := list(islice(groups, n_jobs)):
        for keys in zip_longest(*block):
            yield from (key for key in keys if key is not None)


def _play(key: str, run: Run, data: Path) -> tuple[str, dict[str, Any]]:
    return key, run.play(data)


def _row(run: Run, result: dict[str, Any]) -> dict[str, Any]:
    return {
        "learner": run.name,
        "parameters": json.dumps(run.parameters),
        "stream": run.stream,
        "seed": run.seed,
        **dict(run.grid),
        **result,
    }
