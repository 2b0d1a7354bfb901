"""The same log, the same numbers: all estimates, as numbers.txt has them."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drawn import described
from onebit import Banditron
from onebit.evaluation import (
    ConfidenceSequence,
    Log,
    by_label,
    calibration,
    check_probabilities,
    confusion,
    counterfactual,
    estimate,
)
from onebit.evaluation.estimators import METHODS
from onebit.evaluation.intervals import log_prior_anytime, log_prior_at
from written import assert_as_written

WRITTEN = Path(__file__).with_name("numbers.txt")


def made(n=300, K=3, seed=0, known=True, missing=0.0, offers=False):
    """A log of a policy that depends on x, some of its bits missing, some labels not on offer."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    h = np.exp(x @ rng.normal(size=(2, K)))
    offered = np.ones((n, K), dtype=bool)
    if offers:
        offered[::3, 0] = False
    h = np.where(offered, h, 0.0)
    h /= h.sum(axis=1, keepdims=True)
    labels = (h.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=K - 1)
    truth = np.argmax(x @ rng.normal(size=(2, K)) + rng.normal(size=(n, K)), axis=1)
    correct = (labels == truth).astype(float)
    correct[rng.random(n) < missing] = np.nan
    p = h[np.arange(n), labels]
    more = {"policy": h} if known else {}
    if offers:
        more["among"] = [None if row.all() else np.flatnonzero(row).tolist() for row in offered]
    confidence = np.clip(p + 0.1 * rng.normal(size=n), 0, 1)
    return Log(labels, p, correct, x=x, classes=range(K), confidence=confidence, **more)


def shown(*values):
    return " ".join(
        f"{value:.5g}" for value in np.ravel(np.concatenate([np.ravel(v) for v in values]))
    )


def estimates(log, policy, **options):
    """Yield what each method says."""
    for method in METHODS:
        found = estimate(log, policy, method, clip=2.0, **options)
        ends = [found.value, found.low, found.high, *found.missing_bounds]
        weights = [found.effective_rows, found.covered, found.mean_weight, found.largest_weight]
        values = list(found.values.values())
        said = f"{shown(ends)}; {shown(weights)}; {shown(values)}; {len(found.warnings)}"
        yield f"  {found.method}: {said}"


def numbers():
    """Yield all lines."""
    learner = Banditron(gamma=0.4, classes=range(3), random_state=0)
    learner.teach(made().x[:40], np.arange(40) % 3)
    logs = {
        "known": made(),
        "not known": made(known=False),
        "missing": made(missing=0.3),
        "offers": made(offers=True),
        "few": made(n=7),
        "long": made(n=2_600, seed=3),
    }
    for name, log in logs.items():
        yield f"{name}: {shown(log.least[:5], log.correct[:5])}"
        yield from estimates(log, None, level=0.8)
        yield from estimates(log, 1, interval="anytime")
        yield from estimates(log, learner)
        if name != "long":
            for one in by_label(log):
                shares = [one.shown, one.right, one.precision, one.share, one.recall]
                ends = one.precision_interval, one.share_interval, one.recall_interval
                yield f"  {one.label}: {shown(shares, *ends)}"
            found = confusion(log, learner, greedy=True)
            yield f"  {shown(found.chosen, found.share, found.low, found.high)}"
        found = calibration(log, bins=4)
        yield f"  {found.verdict}, {shown([found.error, found.confidence, found.right])}"
        for one in found.bins:
            yield f"    {one.n} {shown([one.confidence, one.right], one.interval)}"
        checked = check_probabilities(log)
        yield f"  {[(one.shown, round(one.mean_weight, 4), one.passed) for one in checked.labels]}"
        wrong = Log(log.labels, np.minimum(1.0, 1.3 * log.probabilities), log.correct, least=1e-4)
        checked = check_probabilities(wrong)
        yield f"  {[(round(one.mean_weight, 4), one.passed) for one in checked.labels]}"
    for method, log in [("weights", made()), ("weights", made(offers=True)), ("auto", uniform())]:
        for found in counterfactual(
            log, Banditron(gamma=0.3, random_state=1), method, random_state=2
        ):
            ends = [found.value, found.low, found.high, found.covered]
            yield f"{found.method}: {found.rows} {found.rounds} {shown(ends)}"
            yield f"  {found.curve.shape} {shown(found.curve[[0, 5, -1]])}"
            yield from described(found.plot(Figure().add_subplot()).figure)
    yield from described(calibration(made(), bins=3).plot(Figure().add_subplot()).figure)
    yield f"{shown(log_prior_anytime()[::7])} | {shown(log_prior_at(50, 0.1)[::7])}"
    for n in (1, 10, 5_000):
        sequence = ConfidenceSequence(0.9)
        sequence.update(np.arange(n) % 3 > 0, 1.0 + (np.arange(n) % 2))
        yield f"{n}: {shown([sequence.mean, sequence.mean_weight, *sequence.interval])}"


def uniform():
    log = made(n=600)
    labels = np.random.default_rng(9).integers(3, size=600)
    return Log(
        labels, np.full(600, 1 / 3), labels == log.labels, x=log.x, least=1 / 3, classes=range(3)
    )


def test_numbers_are_those_of_numbers_txt():
    assert_as_written(numbers(), WRITTEN)
