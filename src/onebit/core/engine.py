"""The compiled loops of a learner, made from its three kernels.

A learner is a state (a NamedTuple of arrays and numbers, with a field `rng`) and three kernels:

``score(state, x, scores)``
    fill the class scores;
``policy(state, x, scores, offer, p) -> greedy``
    fill the probability of choosing each label, zero for those not on offer, and return the
    greedy label;
``learn(state, x, scores, label, probability, offer, feedback) -> updated``
    update the state in place. `feedback` is 1 or 0, right or wrong, for a bandit learner, and the
    true label for a full-information learner. If the learner `takes_rewards`, it is also compiled,
    when the first one comes, for a float in (0, 1): a fraction of right.

`offer` says which labels are on offer, see `onebit.core.offer`. `play`, whose rounds are fastest,
is compiled for None if all labels are on offer; all other functions, and kernels that are compiled
separately, are compiled once, for arrays. The learner's own choice (the greedy label, the policy,
the labels to explore) ranges over the labels on offer. A model of the truth ranges over all labels:
a label may be right without being on offer.

The engine draws the label, from the `p` that `policy` filled, for every learner: so the policy that
a learner reports is the distribution that it samples from. Only `learn` changes the state, except
for `rng`.

Each function has the kernels inside, so that LLVM optimises them together. Of kernels that take
seconds to compile, `Kernels` makes functions that call them instead (`separate`).

A state may have a field `scratch`, a NamedTuple of arrays for results of `score` that `learn` uses:
`score` always runs before `learn`, with the same x. Scratch arrays are neither saved nor compared.
`learn` must not rely on what `policy` writes there.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from time import perf_counter
from types import FunctionType
from typing import Any

import numpy as np
from numba import boolean, float64, int64, typeof, uint8
from numba.core.types import none

from onebit.core import code_cache, compiling, progress, workers
from onebit.core.compiling import (
    Separate,
    compiled,
    compiled_separately,
    entry_point,
    is_stored,
    link,
    link_nothing,
    pack,
    packed_type,
    passed_type,
    type_key,
    unpacked,
)
from onebit.core.example import EXAMPLE, ROWS, row
from onebit.core.fingerprint import FingerprintError, digest, fingerprint
from onebit.core.templates import CALLED, CHOOSE, OF_LEARN, SCORE, SEPARATE, TEMPLATES, unopened
from onebit.core.workers import Task, Worker, WorkerError

FEW_ROWS = 2_000
"""Up to this number of rows, `evaluate` calls single rounds; the loop is compiled for more.

Single rounds are compiled for the first decision, and take a few microseconds a row. Compiling the
loop takes seconds, and a service that evaluates one row at a time never needs it.
"""


ENTRY_POINTS = ("decide", "learn", "play", "evaluate")
"""The functions of `TEMPLATES` that are compiled ahead of time."""


class Kernels:
    """The kernels of one form of a learner, and the functions compiled from them on first use.

    All states of one form have the same types.

    Parameters
    ----------
    name : str
        Unique in its module: the cache on disk, and copies of a learner, find kernels by it.
    score, policy, learn
        The three kernels.
    feedback : Numba type
        The type of the feedback of single rounds.
    made_by : (function, arguments), optional
        A function that `makes_kernels`, with its arguments, for kernels that no module makes when
        it is imported.
    weighted : kernel, optional
        ``weighted(state, x, truth, weight)`` of a full-information learner that takes weights of
        examples: with weight one it does what `learn` does.
    separate : bool, default=False
        Whether each kernel is compiled separately, once, and all functions call it, where Numba's
        hooks allow it. For kernels that take seconds to compile: a call takes some nanoseconds.

    Attributes
    ----------
    is_separate : bool
        Whether each kernel is compiled separately.
    """

    def __init__(
        self,
        name: str,
        score: Any,
        policy: Any,
        learn: Any,
        *,
        feedback: Any = int64,
        made_by: tuple[Any, tuple[Any, ...]] | None = None,
        weighted: Any = None,
        separate: bool = False,
    ) -> None:
        self.is_separate = separate and compiling.SEPARATES
        self._feedback = feedback
        self.weighted = weighted
        self.made_by = made_by
        self._module, self._name = getattr(learn, "py_func", learn).__module__, name
        self._kernels = {"score": score, "policy": policy, "learn": learn}
        self._form: Any = None
        self._entries: dict[Any, Any] = {}
        self._linked: set[str] = set()
        self._worker: Worker | None = None
        self._n_awaited = 0
        _ALL[self._module, name] = self

    @property
    def reference(self) -> tuple[Any, ...]:
        """The arguments of `kernels_named` that find these kernels in another process."""
        if self.made_by is None:
            return self._module, self._name
        make, arguments = self.made_by
        plain = (a.reference if isinstance(a, Kernels) else a for a in arguments)
        return make.__module__, make.__name__, *plain

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the code of single rounds, and of all functions that it calls."""
        try:
            functions = [self.function(name).py_func for name in ("decide", "learn")]
            return digest(*(fingerprint(function, {}) for function in functions))
        except (AttributeError, FingerprintError):  # Python code may depend on anything
            return "unknown"

    @property
    def is_own(self) -> bool:
        """Whether other processes find these kernels by importing onebit."""
        return self.reference[0].startswith("onebit.")

    @cached_property
    def play(self) -> Any:
        """``play(packed, rows, truth, full, scores, offer, p, flags, recorded)``: play all rows.

        `truth` is as `is_right` takes it; `recorded` is a `RoundRecord` to fill, or None.
        """
        play = self._loop("play")
        if not self.is_separate:
            return play

        def play_arrays(
            packed: Any, rows: Any, truth: Any, full: bool, scores: Any, offer: Any, *others: Any
        ) -> None:
            offer = np.arange(scores.size) if offer is None else offer
            play(packed, rows, truth, full, scores, offer, *others)

        return play_arrays

    @cached_property
    def replay(self) -> Any:
        """``replay(packed, rows, logged, bound, scores, offer, p, chosen, taken)``: learn a log.

        `logged` is a `LoggedRounds`. `chosen` is filled with the probability of each label under
        the current policy, `taken` with whether it was learned from.
        """
        return self._loop("replay")

    def evaluate(self, n: int) -> Any:
        """Return ``evaluate(packed, rows, scores, offer, p)``, for `n` rows in all.

        It fills the scores and the policy of each row; only the scores, if `p` has no rows: a
        policy may take much longer.
        """
        is_compiled = "evaluate_loop" in self.__dict__
        return self.evaluate_loop if is_compiled or n > FEW_ROWS else self._evaluate_each

    @cached_property
    def evaluate_loop(self) -> Any:
        """``evaluate(packed, rows, scores, offer, p)``: the compiled loop over many rows."""
        return self._loop("evaluate")

    def _evaluate_each(self, packed: Any, rows: Any, scores: Any, offer: Any, p: Any) -> None:
        decide, unused = self.decide(unpacked(packed)), np.empty(scores.shape[1])
        for i, of_row in enumerate(scores):
            x = row.py_func(rows, i)
            if i < len(p):
                decide(packed, x, of_row, offer, p[i], CHOOSE)
            else:
                decide(packed, x, of_row, offer, unused, SCORE)

    def _loop(self, name: str) -> Any:
        """Return a function of many rounds, which takes a state as single rounds do."""
        if not self.is_separate:
            function = self.function(name)
            return lambda packed, *arguments: function(unpacked(packed), *arguments)

        def call(packed: Any, *arguments: Any) -> Any:
            key = name, type_key(arguments)
            if key not in self._entries:
                state, types = unpacked(packed), tuple(map(typeof, arguments))
                self._start_compiling_learn(state)
                self._entries[key] = self._linked_entry(name, state, types)
            return self._entries[key](packed, *arguments)

        return call

    def pack(self, state: Any) -> Any:
        """Return the state as compiled code takes it; see `onebit.core.packed_states`.

        Compiled code trusts the types of a state, and would misread one of another form: that is
        refused.
        """
        form = form_of(state)
        if self._form is None:
            self._form = form
        elif form != self._form:
            raise TypeError(f"{self._name} has a state of another form; give each form its Kernels")
        return pack(state)

    def decide(self, state: Any) -> Any:
        """Return ``decide(packed, x, scores, offer, p, until) -> label, probability, greedy``.

        It plays one round, as does `learn`, and trusts the types of its arguments: checking the
        types of a state's fields takes several times as long as a round. The offer is always an
        array, as compiling a second version for None would double the time of compiling. If `until`
        is less than DRAW, it fills the scores or the policy, and does not advance the generator.
        """
        return self._entry("decide", state)

    def learn(self, state: Any) -> Any:
        """Return ``learn(packed, x, scores, label, probability, offer, feedback) -> updated``."""
        return self._entry("learn", state)

    def grade(self, state: Any) -> Any:
        """Return `learn` for a fraction of right as feedback, a float in (0, 1)."""
        return self._entry("grade", state)

    @property
    def takes_grades_now(self) -> bool:
        """Whether `grade` needs no compiling."""
        return "grade" in self._entries

    def _entry(self, name: str, state: Any) -> Any:
        if name not in self._entries:
            self._entries[name] = self._new_entry(name, state)
        return self._entries[name]

    def _new_entry(self, name: str, state: Any) -> Any:
        if name == "decide":
            self._start_compiling_learn(state)
        elif name == "learn":
            self._await_compiled_learn()
        return self._linked_entry(name, state, self.signature(name, state)[1:])

    def _linked_entry(self, name: str, state: Any, types: tuple[Any, ...]) -> Any:
        """Return the function for arguments of these types, which calls kernels that are linked."""
        for kernel in CALLED[name] if self.is_separate else ():
            if kernel not in self._linked:
                if kernel == "learn":
                    self._await_compiled_learn()
                link(self._separate[kernel], self.signature(f"{kernel}_kernel", state))
                self._linked.add(kernel)
        return entry_point(self.function(name), (self._state_type(state, name), *types))

    def _start_compiling_learn(self, state: Any) -> None:
        """Compile `learn` in another process, if this one is about to compile what decides.

        A learner that decides will soon learn, and each takes seconds to compile.
        """
        if self._worker is not None:
            return
        missing = self.missing(state, ("decide", "learn"))
        both = {"score_kernel", "learn_kernel"} if self.is_separate else {"decide", "learn"}
        if both <= missing.keys() and self.is_own and workers.can_start():
            with suppress(OSError, WorkerError):
                self._worker = Worker()
                tasks = [missing[name] for name in OF_LEARN if name in missing]
                for task in tasks:
                    self._worker.start(task)
                self._n_awaited = len(tasks)

    def _await_compiled_learn(self) -> None:
        """Wait for the process that compiles `learn`; if it fails, this one compiles it."""
        worker, self._worker = self._worker, None
        if worker is not None:
            title = compiling.title(f"{self._module}.{self._name}")
            with progress.compiling(title, code_cache.writable_root), suppress(WorkerError):
                for _ in range(self._n_awaited):
                    worker.result()
            worker.close()

    @cached_property
    def _separate(self) -> dict[str, Separate]:
        """The kernels that are compiled separately."""
        return {
            name: compiled_separately(
                f"{self._module}.{self._name}.{name}_kernel",
                template,
                self._arguments(f"{name}_kernel"),
                result,
                **self._kernels,
            )
            for name, (template, result) in SEPARATE.items()
        }

    def function(self, name: str) -> Any:
        """Return the function made from a template, one of `TEMPLATES`, or a separate kernel."""
        if name.endswith("_kernel"):
            return self._separate[name.removesuffix("_kernel")].function
        template, nogil = TEMPLATES[name]
        full_name = f"{self._module}.{self._name}.{name}"
        kernels = self._kernels
        if self.is_separate:
            kernels = {kernel: one.call for kernel, one in self._separate.items()}
            kernels |= {"learn": kernels.pop("grade")} if name == "grade" else {}
            kernels["opened"] = unopened
        return compiled(full_name, template, nogil=nogil, **kernels)

    def signature(self, name: str, state: Any) -> tuple[Any, ...]:
        """Return the types of the arguments of a function, one of `ENTRY_POINTS`, or a kernel."""
        arguments = self._arguments(name)
        if name.endswith("_kernel"):
            arguments = tuple(map(passed_type, arguments))
        return self._state_type(state, name), *arguments

    def _state_type(self, state: Any, name: str) -> Any:
        is_single = name in ("decide", "learn", "grade")
        is_packed = self.is_separate or (is_single and pack(state) is not state)
        return packed_type(typeof(state)) if is_packed else typeof(state)

    def _arguments(self, name: str) -> tuple[Any, ...]:
        x, rows, scores, labels = typeof(EXAMPLE), typeof(ROWS), float64[::1], int64[::1]
        matrix, offer = float64[:, ::1], labels if self.is_separate else none
        lesson = (x, scores, int64, float64, labels, self._feedback)
        grade = (*lesson[:-1], float64)
        arguments: dict[str, tuple[Any, ...]] = {
            "decide": (x, scores, labels, scores, int64),
            "learn": lesson,
            "grade": grade,
            "play": (rows, labels, boolean, scores, offer, scores, uint8[::1], none),
            "evaluate": (rows, matrix, labels, matrix),
            "score_kernel": (x, scores),
            "policy_kernel": (x, scores, labels, scores),
            "learn_kernel": lesson,
            "grade_kernel": grade,
        }
        return arguments[name]

    def missing(
        self, state: Any, entries: tuple[str, ...] = ENTRY_POINTS, *, native: bool = False
    ) -> dict[str, Task]:
        """Return tasks that compile those of `entries` that are not on disk."""
        return {
            name: task
            for name, task in self.tasks(state, entries).items()
            if not is_stored(self.function(name), self.signature(name, state), native=native)
        }

    def tasks(self, state: Any, entries: tuple[str, ...] = ENTRY_POINTS) -> dict[str, Task]:
        """Return tasks that compile `entries` in another process, and the kernels they call."""
        called = {kernel for entry in entries for kernel in CALLED[entry]}
        kernels = [f"{name}_kernel" for name in SEPARATE if self.is_separate and name in called]
        return {
            name: Task(compile_entry, (self.reference, name, self.signature(name, state)))
            for name in (*kernels, *entries)
        }

    def compile(self, name: str, signature: tuple[Any, ...]) -> None:
        """Compile a function, or a separate kernel, that this process does not call."""
        if self.is_separate and name in CALLED:
            for kernel in CALLED[name]:
                link_nothing(self._separate[kernel], signature)
        self.function(name).compile(signature)


class PythonKernels(Kernels):
    """Kernels in plain Python, for what Numba cannot compile: callables, and states that grow.

    The state has a field `rng`, and the methods `_asdict` and `_replace` of a NamedTuple.
    """

    def _new_entry(self, name: str, state: Any) -> Any:
        return self.function(name)

    def pack(self, state: Any) -> Any:
        """Return the state itself."""
        return state

    def function(self, name: str) -> Any:
        """Return the function made from the template of that name."""
        template, _ = TEMPLATES[name]
        # Called from Python, a compiled lean kernel would return whole arrays in place of views.
        python = {"row": row.py_func, "open_state": self.pack, "opened": self.pack}
        names = {**template.__globals__, **self._kernels, **python}
        return FunctionType(template.__code__, names)

    def missing(
        self, state: Any, entries: tuple[str, ...] = ENTRY_POINTS, *, native: bool = False
    ) -> dict[str, Task]:
        """Return no tasks."""
        return {}


_ALL: dict[tuple[str, str], Any] = {}
"""Kernels, and functions that make them, by their modules and names."""


def makes_kernels(function: Any) -> Any:
    """Decorate a function that makes kernels: with the same arguments it returns the same ones."""
    function = cache(function)
    _ALL[function.__module__, function.__name__] = function
    return function


def kernels_named(module: str, name: str, *arguments: Any) -> Kernels:
    """Return the kernels with this `reference`, without importing anything."""
    if (module, name) not in _ALL:
        raise ValueError(f"no kernels are named {module}.{name}: import the module first")
    found = _ALL[module, name]
    if isinstance(found, Kernels):
        return found
    return found(*(kernels_named(*a) if isinstance(a, tuple) else a for a in arguments))


def form_of(state: Any) -> Any:
    """Return the types of a state's fields, as far as they differ between forms of a learner."""
    if isinstance(state, tuple):
        return type(state), *map(form_of, state)
    if isinstance(state, np.ndarray):
        return state.dtype.char, state.ndim
    return None if state is None else np.result_type(state).char


def compile_entry(reference: tuple[Any, ...], name: str, signature: tuple[Any, ...]) -> float:
    """Compile a function of the kernels with this `reference`; return the seconds it took."""
    start = perf_counter()
    _import_modules(reference)
    kernels_named(*reference).compile(name, signature)
    return perf_counter() - start


def _import_modules(reference: tuple[Any, ...]) -> None:
    """Import the modules that define the kernels with this `reference`, and those inside them."""
    import_module(reference[0])
    for argument in reference[2:]:
        if isinstance(argument, tuple):
            _import_modules(argument)
