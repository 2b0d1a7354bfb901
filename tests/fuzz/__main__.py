"""Run the fuzz suite: ``python -m fuzz --minutes 60``, or one case again, as a finding says.

Each part runs on each form of each learner in processes of their own. A process that crashes,
hangs or raises what it should not is a finding, and the next one goes on after it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import queue
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HANG = 300
"""Seconds after which a case counts as hung; some compile a form that was not compiled before."""

MEMORY = 16 * 2**30
"""Bytes of addresses that a process may take: what asks for more is a finding."""

SHARES = {"states": 0.3, "ranges": 0.2, "arrays": 0.1, "files": 0.25, "threads": 0.15}
"""The parts, with their shares of the time."""

ENOUGH = 20
"""Findings after which a process leaves a form."""

EXAMPLES = 20
"""Examples of Hypothesis that one seed stands for."""


CHECKED = Path(__file__).parents[2] / ".fuzz-cache"
"""Where compiled code that checks each index is kept."""


class Task(NamedTuple):
    """Some forms of one part, one after the other."""

    part: str
    forms: list[str]


class Finding(NamedTuple):
    """What went wrong, and how to see it again."""

    part: str
    form: str
    kind: str
    command: str
    text: str


def main() -> None:
    """Read the arguments, and run all, or one case."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--seed", type=int, help="of all cases; drawn and printed if not given")
    parser.add_argument("--part", choices=SHARES, action="append", help="only this part")
    parser.add_argument("--form", action="append", help="only this form, such as SOBA-1")
    parser.add_argument("--case", type=int, help="only this case of a part, form and seed")
    parser.add_argument("--batch", action="store_true", help="only this seed of a part and form")
    parser.add_argument(
        "--checked", action="store_true", help="compiled code checks each index; compiles anew"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.checked:
        os.environ |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(CHECKED)}
    seed = random.randrange(2**32) if given.seed is None else given.seed
    if given.worker:
        work(given.part[0], given.form, seed, given.minutes * 60.0, given.worker)
    elif given.case is not None or given.batch:
        again(given.part[0], given.form[0], seed, given.case)
    else:
        from fuzz.forms import FORMS

        print(f"seed {seed}, {given.minutes:g} minutes, {given.jobs} at a time", flush=True)
        names = given.form or list(FORMS)
        sys.exit(Campaign(given.part or list(SHARES), names, seed, given.minutes, given.jobs).run())


# One process


def work(part: str, names: list[str], seed: int, seconds: float, status: str) -> None:
    """Run cases of one part on each form for an equal share of the time, telling of each finding.

    What it is at is in the file `status`, where it survives a crash; results are lines of JSON.
    """
    _prepare()
    from fuzz.forms import trained
    from fuzz.soundness import live

    file = os.open(status, os.O_WRONLY | os.O_CREAT)
    end = time.monotonic() + seconds
    for i, form in enumerate(names):
        if i > 0 and time.monotonic() > end:  # compiling took all the time
            break

        def at(seed: int, case: int | None, done: int, form: str = form) -> None:
            os.pwrite(file, json.dumps([form, seed, case, done]).encode().ljust(100), 0)
            faulthandler.dump_traceback_later(HANG, exit=True)

        at(seed, None, 0)
        faulthandler.dump_traceback_later(5 * HANG, exit=True)
        live(trained(form, rng := np.random.default_rng(0), 3, 2), rng, 3)  # compiles
        until = time.monotonic() + max(1.0, (end - time.monotonic()) / (len(names) - i))
        cases = by_hypothesis if part in ("states", "ranges") else by_number
        found = 0
        for done, finding in cases(part, form, seed, at):
            if finding is not None:
                _say(finding=finding._asdict())
                found += 1
            if time.monotonic() > until or found == ENOUGH:
                _say(form=form, done=done)
                break
        faulthandler.cancel_dump_traceback_later()


def by_number(part: str, form: str, seed: int, at: Any) -> Iterator[tuple[int, Finding | None]]:
    """Run case after case; each has a generator of its own, so that it can be run alone."""
    run = _case(part)
    number = 0
    while True:
        at(seed, number, number)
        finding = None
        try:
            run(form, np.random.default_rng([seed, number]))
        except Exception as error:
            finding = _finding(part, form, seed, number, error)
        number += 1
        yield number, finding


def by_hypothesis(part: str, form: str, seed: int, at: Any) -> Iterator[tuple[int, Finding | None]]:
    """Run batch after batch of examples, each from a seed of its own."""
    done = 0
    for own in _seeds(f"{seed} {form}"):
        at(own, None, done)
        count, error = _batch(part, form, own, partial(_step, at, own, done))
        done += count
        yield done, None if error is None else _finding(part, form, own, None, error)


def _seeds(seed: str) -> Iterator[int]:
    """Yield seeds without end, that depend on `seed` alone."""
    generator = random.Random(seed)
    while True:
        yield generator.randrange(2**32)


def _step(at: Any, seed: int, before: int, n: int) -> None:
    at(seed, None, before + n)


def again(part: str, form: str, seed: int, case: int | None) -> None:
    """Run one case, or one batch, again; Hypothesis then looks for a smaller example."""
    _prepare()
    if case is not None:
        _case(part)(form, np.random.default_rng([seed, case]))
    else:
        _, error = _batch(part, form, seed, lambda n: None, smaller=True)
        if error is not None:
            raise error
    print("no finding")


def _prepare() -> None:
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import fuzz.arrays
    import fuzz.files
    import fuzz.ranges
    import fuzz.states  # noqa: F401

    warnings.simplefilter("ignore")  # what counts is what comes of it


def _case(part: str) -> Any:
    from fuzz import arrays, files, threads

    return {"arrays": arrays, "files": files, "threads": threads}[part].case


def _batch(
    part: str, form: str, seed: int, at: Any, *, smaller: bool = False
) -> tuple[int, BaseException | None]:
    """Run some examples; return how many steps there were, and what was raised."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis.stateful import run_state_machine_as_test

    from fuzz.ranges import lives
    from fuzz.states import machine

    phases = [Phase.generate, Phase.shrink] if smaller else [Phase.generate]
    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=25,
        deadline=None,
        database=None,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    count = Counter[str]()

    def step() -> None:
        count["steps"] += 1
        at(count["steps"])

    try:
        if part == "states":
            life = hypothesis.seed(seed)(machine(form))
            life.each_step = staticmethod(step)
            run_state_machine_as_test(life, settings=profile)
        else:
            hypothesis.seed(seed)(profile(lives(form, each=step)))()
    except Exception as error:
        return count["steps"], error
    return count["steps"], None


def _finding(part: str, form: str, seed: int, case: int | None, error: BaseException) -> Finding:
    text = "".join(traceback.format_exception(error)[-12:])
    last = traceback.extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}: {error}"[:200]
    return Finding(part, form, kind.split("\n")[0], _command(part, form, seed, case), text)


def _command(part: str, form: str, seed: int, case: int | None) -> str:
    words = ["python", "-m", "fuzz", "--part", part, "--form", form, "--seed", str(seed)]
    words += ["--batch"] if case is None else ["--case", str(case)]
    words += ["--checked"] if "NUMBA_BOUNDSCHECK" in os.environ else []
    return "PYTHONPATH=tests " + shlex.join(words)


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


# All of them


class Campaign:
    """All parts on all forms within a time, some processes at a time."""

    def __init__(
        self, parts: list[str], names: list[str], seed: int, minutes: float, jobs: int
    ) -> None:
        self.seed, self.jobs = seed, jobs
        self.end = time.monotonic() + 60.0 * minutes
        # Loading the library takes seconds: a process has as many forms as make that worth while.
        seconds = 60.0 * minutes * jobs
        self.tasks: list[Task] = []
        for part in parts:
            share = seconds * SHARES[part] / sum(SHARES[other] for other in parts)
            n_tasks = max(1, min(len(names), int(share / 20.0)))
            self.tasks += [Task(part, names[i::n_tasks]) for i in range(n_tasks)]
        random.Random(seed).shuffle(self.tasks)
        self.cases, self.findings, self.missed = Counter[str](), Counter[str](), Counter[str]()
        self.kinds: dict[tuple[str, str, str], int] = {}
        self.parts, self.lock, self.started = parts, threading.Lock(), 0
        # The time that each form has in each part, in proportion.
        self.weights = {part: SHARES[part] / len(names) for part in parts}
        self.left = Counter(dict.fromkeys(parts, len(names)))

    def run(self) -> int:
        """Run all tasks; return the status to exit with."""
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in self.tasks:
            waiting.put(task)
        runners = [threading.Thread(target=self._run, args=(waiting,)) for _ in range(self.jobs)]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()
        print(f"\n{'part':<10}{'cases':>12}{'findings':>10}")
        for part in self.parts:
            missed = f"   no time for {self.missed[part]} forms" if self.missed[part] else ""
            print(f"{part:<10}{self.cases[part]:>12,}{self.findings[part]:>10,}{missed}")
        total = self.findings.total()
        print(f"{'all':<10}{self.cases.total():>12,}{total:>10,}   (seed {self.seed})")
        return 1 if total else 0

    def _run(self, waiting: queue.SimpleQueue[Task]) -> None:
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            while task.forms and time.monotonic() < self.end:
                task = Task(task.part, self._one_process(task))
            self.missed[task.part] += len(task.forms)

    def _one_process(self, task: Task) -> list[str]:
        """Run a task in a process; return the forms that a crash has left over."""
        with self.lock:
            total = sum(self.weights[part] * n for part, n in self.left.items())
            left = max(0.0, self.end - time.monotonic())
            share = self.weights[task.part] * len(task.forms) / total
            seconds = left * min(1.0, share * self.jobs)
            self.left[task.part] -= len(task.forms)
            self.started += 1
            seed = (self.seed + 1_000_003 * self.started) % 2**32
        with tempfile.TemporaryDirectory(prefix="onebit-fuzz-") as folder:
            status = Path(folder) / "status"
            words = [sys.executable, "-m", "fuzz", "--part", task.part, "--seed", str(seed)]
            words += ["--minutes", str(seconds / 60.0), "--worker", str(status)]
            words += [word for form in task.forms for word in ("--form", form)]
            done: list[str] = []
            own = {**os.environ, "TMPDIR": folder, "MALLOC_PERTURB_": "165"}
            with (
                open(Path(folder) / "errors", "w+") as errors,
                subprocess.Popen(
                    words, stdout=subprocess.PIPE, stderr=errors, text=True, env=own
                ) as process,
            ):
                assert process.stdout is not None
                for line in process.stdout:
                    self._take(task, json.loads(line), done)
                code = process.wait()
                errors.seek(0)
                said = errors.read()
            if code == 0:
                self.missed[task.part] += len(task.forms) - len(done)
                return []
            form, own_seed, case, count = task.forms[0], seed, None, 0
            if status.exists():
                form, own_seed, case, count = json.loads(status.read_text())
            name = signal.Signals(-code).name if code < 0 else f"status {code}"
            if "Timeout (" in said:
                name = f"hung for more than {HANG} s"
            with self.lock:
                self.cases[task.part] += count
            command = _command(task.part, form, own_seed, case)
            self._found(Finding(task.part, form, name, command, said[-3000:]))
            rest = task.forms[task.forms.index(form) + 1 :]
            with self.lock:
                self.left[task.part] += len(rest)
            return rest

    def _take(self, task: Task, line: dict[str, Any], done: list[str]) -> None:
        if "finding" in line:
            self._found(Finding(**line["finding"]))
            return
        with self.lock:
            self.cases[task.part] += line["done"]
            done.append(line["form"])
        left = max(0.0, self.end - time.monotonic()) / 60.0
        print(
            f"{left:6.1f} min left  {task.part:<8} {line['form']:<26} {line['done']:>8,} cases   "
            f"all: {self.cases.total():,} cases, {self.findings.total()} findings",
            flush=True,
        )

    def _found(self, finding: Finding) -> None:
        """Count a finding, and show it, unless one of its kind and form was shown already."""
        with self.lock:
            self.findings[finding.part] += 1
            key = (finding.part, finding.form, re.sub(r"\d+", "", finding.kind)[:70])
            self.kinds[key] = self.kinds.get(key, 0) + 1
            if self.kinds[key] == 1:
                print(f"\nFINDING  {finding.part}, {finding.form}: {finding.kind}", flush=True)
                print(f"    {finding.command}", flush=True)
                print("    " + finding.text.strip().replace("\n", "\n    ") + "\n", flush=True)


if __name__ == "__main__":
    main()
