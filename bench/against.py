"""How fast the learners are beside those of another checkout, such as of an older commit.

``python bench/against.py PATH`` takes every form of the learners that both have, ``play`` and
``decide`` with ``learn``, and prints the time of a round in both and the ratio. One process for
each checkout stays alive, and runs of the two take turns: what else the machine does meanwhile
meets both. The smallest time of a process counts. It returns 1 if any ratio is above `MOST`.

    git worktree add ../older COMMIT
    python bench/against.py ../older --only SOBA "AROW covariance=full"
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

MOST = 1.03
"""A larger ratio is more than measurements differ."""

_SMALL_PROBLEMS = {"Aggregating", "Obama"}
"""Learners that sample all the weights."""

_MORE_FORMS: dict[str, list[dict[str, Any]]] = {
    "Gaptron": [{"loss": "smooth_hinge", "eta": "theory", "gamma": "theory", "radius": 1}],
    "OneBitClassifier": [{"standardize": False, "notice_changes": False}],
}
"""What an older learner always was; parameters that it does not have are left out."""

_MOST_ROUNDS = {"play": 20_000, "decide + learn": 1_000}
_SECONDS = 0.15
"""A run has as many rounds as take so long, or as `_MOST_ROUNDS`."""

_FEATURES = 100
"""Of SynSep's, those that costly learners see: 900 weights, and 6 MB of a full covariance."""


# In each of the two processes, which may have any version of onebit


def _answer() -> None:
    """Answer each line of the standard input: with what there is, or with the seconds of a run."""
    forms = dict(_forms())
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        answer: Any = list(forms)
        if asked:
            name, how, n = asked
            answer = _seconds(how, forms[name], n)
        print(json.dumps(answer), file=out, flush=True)


def _forms() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield functions that make learners, with the names of their forms."""
    from onebit import learners

    for name in sorted(set(learners.__all__) - _SMALL_PROBLEMS):
        cls = getattr(learners, name)
        for form in [*cls.forms, *_MORE_FORMS.get(name, [])]:
            known = {k: v for k, v in form.items() if k in cls().get_params()}
            yield " ".join([name, *(f"{k}={v}" for k, v in form.items())]), partial(cls, **known)


@cache
def _stream() -> tuple[Any, Any]:
    from onebit import streams

    return streams.synsep(max(_MOST_ROUNDS.values()))


def _seconds(how: str, make: Callable[..., Any], n: int) -> float | None:
    """Return the processor time of n rounds; None where the learner cannot play them."""
    from onebit import play

    X, y = _stream()
    X, y = X[:n, :_FEATURES] if _is_costly(make) else X[:n], y[:n]
    learner = make(classes=list(range(9)), random_state=0)
    try:
        if how == "play":
            start = time.process_time()
            play(learner, X, y)
            return time.process_time() - start
        rounds = [(X[i : i + 1], label) for i, label in enumerate(y.tolist())]
        start = time.process_time()
        for x, truth in rounds:
            decision = learner.decide(x)
            if learner.feedback == "full":
                learner.learn(decision, truth=truth)
            else:
                learner.learn(decision, correct=decision.label == truth)
        return time.process_time() - start
    except ValueError:  # as of a learner for two classes
        return None


def _is_costly(make: Any) -> bool:
    cost = make.func.cost
    return not str(cost).startswith("nnz K") or make.keywords.get("covariance") == "full"


# The process that asks


class Checkout:
    """A process that runs the learners of one checkout."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {
            "PYTHONPATH": str(folder.resolve() / "src"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--answer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def ask(self, *question: Any) -> Any:
        """Return the answer to the name of a form, what to run, and the number of rounds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"no answer to {question}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _compare(checkouts: Sequence[Checkout], name: str, how: str, runs: int) -> list[float] | None:
    """Return the microseconds of a round in each checkout; None where one cannot play them."""
    n = 25
    while True:  # the first run compiles
        first = [checkout.ask(name, how, n) for checkout in checkouts]
        if None in first:
            return None
        if n == _MOST_ROUNDS[how] or (n > 25 and max(first) > _SECONDS):
            break
        n = min(2 * n, _MOST_ROUNDS[how])
    seconds = [[checkout.ask(name, how, n) for checkout in checkouts] for _ in range(runs)]
    return [1e6 * min(times) / n for times in zip(*seconds, strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and show; return 1 if a learner is slower here."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--only", nargs="+", metavar="FORM", help="forms to compare")
    parser.add_argument("--how", nargs="+", choices=_MOST_ROUNDS, default=list(_MOST_ROUNDS))
    parser.add_argument("--runs", type=int, default=9, help="runs of each, of which one counts")
    options = parser.parse_args(arguments)
    here = Path(__file__).resolve().parents[1]
    checkouts = [Checkout(options.other), Checkout(here)]
    known = set(checkouts[0].ask())
    names = [name for name in checkouts[1].ask() if name in known]
    if options.only:
        unknown = sorted(set(options.only) - set(names))
        if unknown:
            parser.error(f"not a form of both: {unknown}; there are {names}")
        names = options.only
    slower = 0
    print(f"{'microseconds a round':<60}{'other':>10}{'here':>10}{'ratio':>8}")
    for how in options.how:
        for name in names:
            found = _compare(checkouts, name, how, options.runs)
            if found is not None:
                ratio = found[1] / found[0]
                slower += ratio > MOST
                print(
                    f"{how + ', ' + name:<60}{found[0]:>10.3g}{found[1]:>10.3g}{ratio:>8.3f}",
                    flush=True,
                )
    for checkout in checkouts:
        checkout.close()
    return int(slower > 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--answer"]:
        _answer()
    else:
        sys.exit(main())
