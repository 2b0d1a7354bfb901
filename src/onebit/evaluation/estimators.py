"""How accurate a policy is, from the bits of a log.

With weights w = policy(label) / probability and bits c, a row's value is, for each method,

    ips       w c
    clipped   min(w, clip) c
    snips     w c, and the sum is divided by that of w, not by n
    direct    q(policy), by a model alone
    dr        q(policy) + w (c - q(label)): the model, corrected by the bits (doubly robust)
    sndr      the same, with the correction divided by the mean of w

where q(label) is a model's probability that the label is right, and q(policy) its mean over the
policy. The intervals are for the policy's accuracy, whatever the method, and are valid however much
the log covers: see `Bets`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from onebit.evaluation.coverage import RARE, Coverage, covered_part, largest_weight, weigh
from onebit.evaluation.intervals import (
    BETS,
    CAUTION,
    Interval,
    LowerBound,
    check_level,
    interval_of,
)
from onebit.evaluation.log import Log
from onebit.evaluation.models import model_for
from onebit.evaluation.policies import has_learned_from, name_of, probabilities_of

METHODS = ("auto", "ips", "snips", "clipped", "direct", "dr", "sndr")
MODELLED = ("snips", "direct", "dr", "sndr")
"""Methods whose intervals use a model; that of snips is a single number."""

FIRST_BLOCK, LARGEST_BLOCK = 64, 16_384
"""Rows between two updates of a model: few at first."""

ENOUGH_ROWS = 50_000
"""After this many rows a model stops learning, which takes longer than all else."""


@dataclass(frozen=True)
class Estimate:
    """The accuracy of a policy.

    Attributes
    ----------
    policy, method, interval : str
        Whose accuracy, how it was estimated, and what kind the interval is.
    value : float
        The accuracy; NaN if the log does not cover the policy, as there is then no point estimate.
    low, high : float
        Its interval. Where the log does not cover the policy these are bounds: what is not covered
        may be all wrong, or all right.
    level : float
        Of the interval.
    rows, feedback : int
        Rows of the log, and those with a bit.
    effective_rows : float
        The number of rows chosen by the policy itself that would be as informative:
        (sum w)^2 / sum w^2.
    covered : float
        The share of the policy that the log covers.
    mean_weight, largest_weight : float
        Of the importance weights. The mean is near one if all is covered and the log's
        probabilities are right.
    missing_bounds : Interval
        An interval that is valid even if bits are not missing at random.
    values : dict
        The value by each method that was also computed, even if it is not in [0, 1].
    warnings : tuple of str
        What to know before using the number.
    """

    policy: str
    method: str
    interval: str
    value: float
    low: float
    high: float
    level: float
    rows: int
    feedback: int
    effective_rows: float
    covered: float
    mean_weight: float
    largest_weight: float
    missing_bounds: Interval
    values: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def is_covered(self) -> bool:
        """Whether there is a point estimate."""
        return not math.isnan(self.value)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; numbers that do not exist are None."""
        return _jsonable(asdict(self) | {"missing_bounds": list(self.missing_bounds)})

    def __str__(self) -> str:
        value = f"{self.value:.4f}" if self.is_covered else "not covered"
        return f"{self.policy}: {value}, {self.low:.4f} to {self.high:.4f} at {self.level:.0%}"


def estimate(
    log: Log | Iterable[Log],
    policy: Any = None,
    method: str = "auto",
    level: float = 0.95,
    interval: str = "fixed",
    *,
    greedy: bool = False,
    model: Any = None,
    clip: float = 100.0,
) -> Estimate:
    """Estimate the accuracy of what was chosen, or of another policy on the same examples.

    Parameters
    ----------
    log : Log or iterable of Log
        Batches, such as those of `Log.batches`, are read once, one in memory at a time.
    policy : learner, pipeline, function or label, optional
        A learner in its current state, or a pipeline, for a log of records or of the examples that
        its `Records` made of them; a function of the x of some rows that returns labels or
        probabilities of shape (n, n_classes); or a label, which is then always chosen. By default
        the logged decisions are judged.
    method : {"auto", "ips", "snips", "clipped", "direct", "dr", "sndr"}, default="auto"
        "auto" is "dr" where the log says that it covers all labels (`Log.least`, `Log.policy`),
        else "ips".
    level : float in (0, 1), default=0.95
        The interval contains the accuracy with at least this probability.
    interval : {"fixed", "anytime"}, default="fixed"
        "anytime" is for a log that grows and is evaluated more than once: all of its intervals hold
        simultaneously with probability `level`.
    greedy : bool, default=False
        Judge a learner as if it did not explore: by its scores, or its worth and cost if
        `set_utility` set them.
    model : learner or array of shape (n, n_classes), optional
        For "direct" and doubly robust: a learner with `right_proba` or `predict_proba`, a copy of
        which keeps learning from the log; or predicted probabilities of each label being right,
        made without the row's own bit. By default the policy, if it is such a learner, else a
        softmax regression over all labels and "none of them".
    clip : float, default=100.0
        The largest weight, for "clipped".

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from onebit import OneBitClassifier, play, streams
    >>> from onebit.evaluation import Log, estimate
    >>> X, y = streams.synnonsep(4000, seed=0)
    >>> log = Log()
    >>> learner = OneBitClassifier(min_probability=0.01, random_state=0)
    >>> history = play(learner, X, y, log=log)
    >>> print(estimate(log))
    what was chosen: 0.8688, 0.8508 to 0.8855 at 95%
    >>> print(estimate(log, 3))
    always 3: 0.1063, 0.0909 to 0.3476 at 95%
    """
    check_interval(level, interval)
    sums = Sums(policy, method, greedy=greedy, model=model, clip=clip)
    parts: Iterable[Log] = [log] if isinstance(log, Log) else log
    for part in parts:
        sums.take(part)
    return sums.estimate(level, anytime=interval == "anytime")


def check_interval(level: float, interval: str) -> None:
    """Raise unless there are such intervals."""
    if interval not in ("fixed", "anytime"):
        raise ValueError(f'interval is "fixed" or "anytime"; got {interval!r}')
    check_level(level)


class Bets:
    """Lower bounds for the shares of right and of wrong labels under a policy.

    The bets are on w c and w (1 - c), plus a part s of the model's correction, which has mean zero.
    Their means are the policy's shares of right and of wrong labels, minus what the log does not
    cover: so both bounds are valid without any assumption about coverage.

    A value must be above -1 / b for a bet b, and the model subtracts at most w q(label); hence s =
    min(1, f / (b m)), with the largest m = w q(label) that the row could have had, and two values f
    < 1. Small bets, which many rows need, use the whole model; where the probabilities of other
    labels are unknown, s is zero.
    """

    def __init__(self) -> None:
        self.right, self.wrong = LowerBound(), LowerBound()

    def update(self, w: np.ndarray, c: np.ndarray, modelled: Modelled | None = None) -> None:
        """Take rows; bits that are missing are NaN, neither right nor wrong."""
        right, wrong = np.nan_to_num(w * c), np.nan_to_num(w * (1.0 - c))
        if modelled is None:
            self.right.update(right)
            self.wrong.update(wrong)
            return
        more_right = modelled.q_policy - w * modelled.q_label
        more_wrong = (modelled.mass - modelled.q_policy) - w * (1.0 - modelled.q_label)
        for bound, values, more, most in (
            (self.right, right, more_right, modelled.most_right),
            (self.wrong, wrong, more_wrong, modelled.most_wrong),
        ):
            for lo in range(0, w.size, _ROWS):
                at = slice(lo, lo + _ROWS)
                share = CAUTION / np.multiply.outer(np.maximum(most[at], 1e-9), BETS)
                np.minimum(share, 1.0, out=share)
                bound.update(values[at, None] + share * more[at, None])

    def interval(self, level: float, *, anytime: bool) -> Interval:
        """Return the interval of the accuracy."""
        return interval_of(self.right, self.wrong, level, anytime=anytime)

    def __add__(self, other: Bets) -> Bets:
        both = Bets()
        both.right, both.wrong = self.right + other.right, self.wrong + other.wrong
        return both


_ROWS = 2048
"""Rows at a time: their products with the bets stay in a processor's cache."""


class Modelled(NamedTuple):
    """A model's predictions for some rows.

    mass: the covered part of the policy; most_right, most_wrong: the largest w q(label) and
    w (1 - q(label)) that there could have been, of any label.
    """

    q_policy: np.ndarray
    q_label: np.ndarray
    mass: np.ndarray
    most_right: np.ndarray
    most_wrong: np.ndarray


def one_for_all(q: float, mass: np.ndarray, most: np.ndarray) -> Modelled:
    """Return the predictions of a model that has one number for all rows and labels."""
    return Modelled(q * mass, np.full(mass.size, q), mass, q * most, (1.0 - q) * most)


class Sums:
    """What an estimate needs from the rows so far; its size does not grow."""

    def __init__(
        self,
        policy: Any,
        method: str,
        *,
        greedy: bool = False,
        model: Any = None,
        clip: float = 100.0,
    ) -> None:
        if method not in METHODS:
            raise ValueError(f"method is one of {', '.join(METHODS)}; got {method!r}")
        if not clip > 0.0:
            raise ValueError(f"clip is a weight, above 0; got {clip!r}")
        self.policy, self.method, self.clip, self.greedy = policy, method, clip, greedy
        self.probabilities = None if policy is None else probabilities_of(policy, greedy=greedy)
        self.model, self.started = model, False
        self._frozen = False
        self._block = FIRST_BLOCK
        self._share = 0.5
        self._clear()

    def _clear(self) -> None:
        self.rows = self.taught = 0
        self.known, self.unknown = Bets(), Bets()
        self.coverage = Coverage()
        self.right = self.modelled = self.added = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether no model learns any more: what further rows add does not depend on each other."""
        return self.method != "auto" and (
            self.policy is None or self.method not in MODELLED or not self._learns
        )

    @property
    def _learns(self) -> bool:
        return not self._frozen and self.rows < ENOUGH_ROWS

    def emptied(self) -> Sums:
        """Return sums of no rows that take rows as these do, once they are settled."""
        made = copy(self)
        made._frozen, made._block = True, LARGEST_BLOCK
        made._clear()
        return made

    def __add__(self, other: Sums) -> Sums:
        """Return the sums of the rows of both; `other` was made by `emptied`."""
        both = copy(self)
        for name in (
            "rows",
            "taught",
            "known",
            "unknown",
            "coverage",
            "right",
            "modelled",
            "added",
        ):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def take(self, log: Log) -> None:
        """Take more rows of a log."""
        if len(log) and self.method == "auto":
            covers = bool((log.least >= RARE).mean() > 0.5) and self.policy is not None
            self.method = "dr" if covers else "ips"
        self.taught += has_learned_from(self.policy, log)
        lo = 0
        while lo < len(log):
            hi = min(lo + self._block, len(log))
            self._take(log[lo:hi])
            lo, self._block = hi, min(2 * self._block, LARGEST_BLOCK)

    def _take(self, log: Log) -> None:
        p = q = None
        if self.probabilities is not None:
            models = self.method in ("direct", "dr", "sndr")
            if models and len(log) >= _ROWS:
                with ThreadPoolExecutor(1) as pool:  # two pieces of compiled code run in parallel
                    predicted = pool.submit(self._predict, log)
                    p = self.probabilities(log)
                q = predicted.result()
            else:
                p = self.probabilities(log)
                q = self._predict(log) if models else None
        w, most, mass = weigh(log, p)
        if self.method == "clipped":
            w = np.minimum(w, self.clip)
        modelled = None
        if self.method in MODELLED and p is not None:
            modelled = self._judge(log, q, covered_part(log, p), mass, most)
        self.count(w, log.correct, most, mass, modelled)

    def count(
        self,
        w: np.ndarray,
        correct: np.ndarray,
        most: np.ndarray,
        mass: np.ndarray,
        modelled: Modelled | None = None,
    ) -> None:
        """Take rows by their weights and bits, and by what `weigh` returns beside the weights."""
        known = ~np.isnan(correct)
        for rows, bets in ((known, self.known), (~known, self.unknown)):
            if rows.any():
                some = None if modelled is None else Modelled(*(part[rows] for part in modelled))
                bets.update(w[rows], correct[rows], some)
        self.rows += w.size
        self.coverage.update(w[known], most[known], mass[known])
        self.right += float(w[known] @ correct[known])
        if modelled is not None:
            self.modelled += float(modelled.q_policy[known].sum())
            self.added += float(w[known] @ (correct - modelled.q_label)[known])

    def _predict(self, log: Log) -> np.ndarray:
        """Return the model's predictions for rows with unseen bits; then learn from these."""
        if not self.started:
            self.model, self.started = model_for(self.model, self.policy, log), True
        q = self.model.predict(log)
        if self._learns:
            self.model.learn(log)
        return q

    def _judge(
        self, log: Log, q: np.ndarray | None, p: np.ndarray, mass: np.ndarray, most: np.ndarray
    ) -> Modelled:
        """Return a model's predictions for rows; `p` is the covered part of the policy."""
        if q is None:  # snips
            if self._learns:
                self._share = (self.right + 0.5) / (self.coverage.sum + 1.0)
            return one_for_all(self._share, mass, most)
        return Modelled(
            (q * p).sum(axis=1),
            q[np.arange(len(log)), log.labels],
            mass,
            largest_weight(log, p * q),
            largest_weight(log, p * (1.0 - q)),
        )

    def estimate(self, level: float, *, anytime: bool) -> Estimate:
        """Return the estimate from the rows so far."""
        coverage, n = self.coverage, self.known.right.n
        values = self._values(n)
        found = self.known.interval(level, anytime=anytime)
        everything = found
        if self.unknown.right.n:
            everything = (self.known + self.unknown).interval(level, anytime=anytime)
        value = math.nan
        if n and not coverage.is_short:
            value = min(max(values[self.method], 0.0), 1.0)
        return Estimate(
            policy=name_of(self.policy, greedy=self.greedy),
            method=self.method if self.policy is not None else "mean",
            interval="anytime" if anytime else "fixed",
            value=value,
            low=found.low,
            high=found.high,
            level=level,
            rows=self.rows,
            feedback=n,
            effective_rows=coverage.effective_rows,
            covered=coverage.covered,
            mean_weight=coverage.mean_weight,
            largest_weight=coverage.largest,
            missing_bounds=everything,
            values=values,
            warnings=tuple(self._warnings(n, found, everything)),
        )

    def _values(self, n: int) -> dict[str, float]:
        """Return the accuracy by each method that there are sums for."""
        weights = self.coverage.sum
        if not n:
            return {}
        values = {self.method: self.right / n}
        if self.method != "clipped":
            values = {"ips": self.right / n, "snips": self.right / weights if weights else math.nan}
        if self.method in ("direct", "dr", "sndr") and self.policy is not None:
            corrected = self.added / weights if weights else math.nan
            values["direct"] = self.modelled / n
            values["dr"] = (self.modelled + self.added) / n
            values["sndr"] = self.modelled / n + corrected
        values.setdefault(self.method, values.get("ips", math.nan))
        return values

    def _warnings(self, n: int, found: Interval, everything: Interval) -> Iterator[str]:
        coverage = self.coverage
        if not n:
            yield "no decision has a bit"
            return
        if coverage.is_impossible:
            yield (
                f"the mean weight is {coverage.mean_weight:.3g}, and should be 1: the log's "
                "probabilities are not those that labels were chosen with"
            )
        if coverage.is_unknown:
            yield (
                "how much of the policy the log covers depends on a few rows with large weights: "
                "the interval is of bounds; if each label had a chance, say so by `least`"
            )
        elif coverage.is_short:
            yield (
                f"the log covers {coverage.covered:.1%} of the policy: the rest may be right or "
                "wrong, and the interval is of bounds"
            )
        elif coverage.effective_rows < FEW_ROWS:
            rows = coverage.effective_rows
            yield f"the log is as informative as {rows:.0f} rows of the policy itself"
        if self.taught:
            yield (
                f"the policy has learned from {self.taught:,} decisions of this log, and looks "
                "better on them than it is"
            )
        if self.method == "direct" and not found.low <= self.modelled / n <= found.high:
            yield "the model is refuted by the bits: its value is outside of the interval"
        if self.rows > n:
            yield (
                f"{1 - n / self.rows:.1%} of the decisions have no bit; unless those are missing "
                f"at random, the interval is {everything.low:.4f} to {everything.high:.4f}"
            )


FEW_ROWS = 50
"""Effective rows below which an estimate carries a warning."""


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _jsonable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
