"""Estimates: equal to the formulas, true intervals, and bounds where a log does not cover."""

import json
import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from onebit import Banditron, OneBitClassifier, Perceptron, make_pipeline, play, streams
from onebit.evaluation import Log, confusion, counterfactual, estimate
from onebit.evaluation.coverage import Coverage
from onebit.evaluation.estimators import METHODS
from onebit.features import Records
from references import off_policy


def random_log(n=400, K=4, seed=0, **columns):
    rng = np.random.default_rng(seed)
    h = 0.8 * rng.dirichlet(np.ones(K), size=n) + 0.2 / K
    labels = (h.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=K - 1)
    p, truth = h[np.arange(n), labels], rng.integers(K, size=n)
    x = np.column_stack([truth + rng.normal(size=n), np.arange(n) / n])
    made = Log(labels, p, labels == truth, x=x, classes=range(K), policy=h, **columns)
    return made, truth, rng


@pytest.mark.parametrize("K", [2, 7])
def test_values_are_those_of_the_formulas(K):
    log, _, rng = random_log(K=K)
    policy, q = rng.dirichlet(np.ones(K), size=400), rng.random((400, K))
    given = policy.tolist(), log.labels.tolist(), log.probabilities.tolist(), log.correct.tolist()

    def judged(x):
        return policy[np.rint(400 * x[:, 1]).astype(int)]

    expected = {
        "ips": off_policy.ips(*given),
        "snips": off_policy.snips(*given),
        "clipped": off_policy.clipped(*given, 1.5),
        "direct": off_policy.direct(policy, q),
        "dr": off_policy.dr(*given, q),
        "sndr": off_policy.sndr(*given, q),
    }
    for method, value in expected.items():
        found = estimate(log, judged, method, model=q, clip=1.5)
        assert found.values[method] == pytest.approx(value, abs=1e-9)
        assert found.value == found.values[method]
    w = off_policy.weights(*given[:3])
    assert found.effective_rows == pytest.approx(sum(w) ** 2 / sum(one**2 for one in w))
    assert found.mean_weight == pytest.approx(np.mean(w))
    assert found.largest_weight == pytest.approx(max(w))


def test_batches_are_as_the_whole(tmp_path):
    log, *_ = random_log(2000)
    log.write(tmp_path / "log.jsonl")
    for method in METHODS:
        whole = estimate(log, 2, method)
        parts = estimate(Log.batches(tmp_path / "log.jsonl", 300), 2, method)
        assert parts.rows == 2000
        if method in ("ips", "clipped"):
            assert parts.low == pytest.approx(whole.low, abs=1e-9)
        if method != "direct":  # whose model learns after each block of rows
            assert parts.value == pytest.approx(whole.value, abs=0.03)


def test_what_is_chosen_is_the_mean_of_the_bits():
    log, *_ = random_log()
    found = estimate(log)
    assert found.value == log.correct.mean()
    assert found.low < found.value < found.high
    assert (found.covered, found.effective_rows, found.warnings) == (1.0, 400.0, ())
    wide = estimate(log, interval="anytime")
    assert wide.low < found.low < found.high < wide.high
    assert estimate(log, level=0.5).low > found.low


def test_policies_are_learners_functions_and_labels():
    X, y = streams.synnonsep(3000, seed=0)
    log = Log()
    writer = Banditron(gamma=0.2, random_state=0)
    play(writer, X, y, log=log)
    judged = Banditron(random_state=1, classes=range(9))
    play(judged, X[:500], y[:500])
    truth = judged.policy(X)[np.arange(3000), y].mean()
    found = estimate(log, judged)
    assert found.low <= truth <= found.high
    assert found.policy == "Banditron, as it stands"
    greedy = estimate(log, judged, greedy=True)
    assert greedy.low <= (judged.predict(X) == y).mean() <= greedy.high
    by_function = estimate(log, judged.predict)
    assert by_function.value == pytest.approx(greedy.value, abs=1e-12)
    constant = estimate(log, 4)
    assert constant.low <= (y == 4).mean() <= constant.high
    assert estimate(log, lambda x: np.full(x.shape[0], 4)).value == constant.value


def test_a_log_that_does_not_cover_gives_bounds():
    """The label is chosen nearly surely: what other labels would do, no bit tells."""
    X, y = load_digits(return_X_y=True)
    log = Log()
    learner = OneBitClassifier(
        0.1, covariance="diagonal", views="line", random_state=0, classes=range(10)
    )
    play(learner, X[:1000], y[:1000], log=log)
    judged = Perceptron(random_state=0).fit(X, y)
    truth = (judged.predict(X[:1000]) == y[:1000]).mean()
    found = estimate(log, judged)
    assert math.isnan(found.value)
    assert "covers" in found.warnings[0]
    assert found.covered < 0.95
    assert found.low <= truth <= found.high
    values = np.where(judged.predict(X[:1000]) == log.labels, 1 / log.probabilities, 0)
    values *= log.correct
    error = 1.96 * values.std() / math.sqrt(1000)
    assert values.mean() + error < truth  # as it would be done by hand
    assert json.loads(json.dumps(found.to_dict()))["value"] is None


def test_a_few_large_weights_do_not_show_that_a_log_covers():
    """One row of a thousand stands for all others: the mean weight is one, by luck."""
    labels, p = np.zeros(1000, dtype=int), np.ones(1000)
    labels[0], p[0] = 1, 1e-3
    found = estimate(Log(labels, p, labels == 1, classes=[0, 1]), 1)
    assert math.isnan(found.value)
    assert "large weights" in found.warnings[0]
    assert found.low < 0.05
    assert found.high > 0.95


def test_what_is_known_not_to_be_covered_is_left_open():
    rng = np.random.default_rng(0)
    h = np.tile([0.5, 0.5, 0.0], (2000, 1))
    labels = rng.integers(2, size=2000)
    log = Log(labels, np.full(2000, 0.5), np.ones(2000), classes=range(3), policy=h)
    for method in METHODS:
        found = estimate(log, 2, method)
        assert math.isnan(found.value)
        assert (found.low, found.high) == (0.0, 1.0)


def test_missing_feedback():
    log, *_ = random_log(3000)
    rng = np.random.default_rng(1)
    full = estimate(log)
    bits = log.correct.copy()
    bits[rng.random(3000) < 0.3] = np.nan
    part = Log(log.labels, log.probabilities, bits, x=log.x, classes=range(4), policy=log.policy)
    found = estimate(part)
    assert (found.rows, found.feedback) == (3000, np.isfinite(bits).sum())
    assert found.low <= full.value <= found.high
    assert "have no bit" in found.warnings[-1]
    # Whatever is missing: also if all that is missing is wrong, or right.
    assert found.missing_bounds.low <= np.nansum(bits) / 3000
    assert found.missing_bounds.high >= (np.nansum(bits) + np.isnan(bits).sum()) / 3000
    for method in ("ips", "snips", "dr"):
        other, bounds = estimate(part, 1, method), estimate(part, 1, method).missing_bounds
        assert bounds.low <= other.low
        assert other.high <= bounds.high
    none = estimate(Log(log.labels, log.probabilities, classes=range(4)))
    assert math.isnan(none.value)
    assert none.warnings == ("no decision has a bit",)
    assert (none.low, none.high) == (0.0, 1.0)


@pytest.mark.parametrize("method", ["ips", "snips", "clipped", "dr", "sndr"])
def test_missing_bits_are_left_out_and_bounded_by_the_worst_that_they_can_be(method):
    log, _, rng = random_log(600)
    q, missing = rng.random((600, 4)), rng.random(600) < 0.3

    def estimated(bits, rows=slice(None)):
        columns = {"x": log.x[rows], "policy": log.policy[rows], "classes": range(4)}
        some = Log(log.labels[rows], log.probabilities[rows], bits[rows], **columns)
        models = {"model": q[rows]} if method in ("dr", "sndr") else {}
        return estimate(some, 1, method, **models)

    found = estimated(np.where(missing, np.nan, log.correct))
    if method != "snips":  # whose model depends on how many rows came before
        known = estimated(log.correct, ~missing)
        assert found.value == pytest.approx(known.value, abs=1e-12)
        assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-9)
        wrong, right = (estimated(np.where(missing, bit, log.correct)) for bit in (0.0, 1.0))
        assert found.missing_bounds == pytest.approx((wrong.low, right.high), abs=1e-9)
    assert found.missing_bounds.low < found.low < found.high < found.missing_bounds.high


def test_a_model_predicts_a_row_before_it_learns_from_it(monkeypatch):
    log, *_ = random_log(1_000)
    known = set()

    class Model:
        def predict(self, rows):
            assert known.isdisjoint(rows.x[:, 1])
            return np.full((len(rows), 4), 0.25)

        def learn(self, rows):
            known.update(rows.x[:, 1])

    monkeypatch.setattr("onebit.evaluation.estimators.model_for", lambda *_: Model())
    estimate(log, 1, "dr")
    assert len(known) == 1_000


def weights_of(n, zeros, twos):
    """Coverage by n rows whose largest weight is unknown: those that are not 0 or 2 are 1."""
    coverage, w = Coverage(), np.ones(n)
    w[:zeros], w[zeros : zeros + twos] = 0.0, 2.0
    coverage.update(w, np.full(n, np.inf), np.ones(n))
    return coverage


def test_a_shortfall_of_three_deviations_is_not_chance():
    """Of 2,500 rows that are one off, 50 is a deviation of their sum."""
    assert not weights_of(10_000, 1_325, 1_175).is_short
    assert weights_of(10_000, 1_326, 1_174).is_short
    assert weights_of(10_000, 1_325, 1_175).covered == 1.0 - 150 / 10_000
    assert not weights_of(16_000, 1_329, 1_171).is_short  # more than a hundredth is needed, too
    assert weights_of(16_000, 1_331, 1_169).is_short
    assert not weights_of(144, 72, 72).is_unknown  # three deviations are a quarter of the rows
    assert weights_of(143, 72, 71).is_unknown


def test_warnings_of_wrong_probabilities_and_of_learning_from_the_log():
    log, *_ = random_log(3000)
    wrong = Log(log.labels, 0.5 * log.probabilities, log.correct, x=log.x, classes=range(4))
    assert any("not those that labels" in words for words in estimate(wrong, 1).warnings)
    learner = Banditron(classes=range(4), random_state=0)
    decisions = learner.decide_many(log.x[:50])
    learner.learn_many(decisions, correct=log.correct[:50].astype(bool))
    own = Log.from_decisions(decisions, correct=log.correct[:50].astype(bool).tolist())
    assert any("learned from 50 decisions" in words for words in estimate(own, learner).warnings)


def test_pipelines_are_judged_by_records_and_by_the_examples_of_decisions(tmp_path):
    rng, desks = np.random.default_rng(0), ["billing", "support"]
    truth = rng.integers(2, size=300)
    records = [{"subject": f"{desks[k]} {rng.integers(9)}", "n": float(k)} for k in truth]

    def pipeline(seed):
        learner = OneBitClassifier(classes=desks, min_probability=0.1, random_state=seed)
        return make_pipeline(Records(1024), learner)

    writer, candidate = pipeline(0), pipeline(1)
    decisions = [writer.decide(record, id=f"t{i}") for i, record in enumerate(records)]
    bits = [one.label == desks[k] for one, k in zip(decisions, truth, strict=True)]
    for decision, bit in zip(decisions, bits, strict=True):
        writer.learn(decision, correct=bit)
    for record, k in zip(records[:50], truth[:50], strict=True):
        candidate.learn(candidate.decide(record), truth=desks[k])
    rows = [d.to_dict() | {"correct": bit} for d, bit in zip(decisions, bits, strict=True)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = Log.from_decisions(decisions, correct=bits, least=0.1)
    known = Log.from_decisions(decisions, correct=bits, least=0.1, x=records)
    assert own.x.shape == (300, 1024)
    assert known.x == records
    for log in (own, Log.read(path, least=0.1)):
        for method, greedy in (("dr", False), ("ips", True)):
            expected = estimate(known, candidate, method, greedy=greedy)
            assert estimate(log, candidate, method, greedy=greedy) == expected
            assert expected.value > 0.8
        found = [counterfactual(one, pipeline(2))[0].value for one in (known, log)]
        assert found[0] == found[1]
        found = [confusion(one, candidate).chosen.tolist() for one in (known, log)]
        assert found[0] == found[1]
    wider = make_pipeline(Records(2048), OneBitClassifier(classes=desks))
    wider.teach(records, [desks[k] for k in truth])
    with pytest.raises(ValueError, match="1024 features"):
        estimate(own, wider)
    with pytest.raises(ValueError, match=r"x are records.* a pipeline that begins with Records"):
        estimate(known, candidate[-1])
    alone = make_pipeline(candidate[-1])
    assert estimate(own, alone, "ips").value == estimate(own, candidate, "ips").value


def test_labels_on_offer():
    """A policy that may choose only what was on offer is judged on that."""
    rng = np.random.default_rng(0)
    n, offers = 2000, [("a", "b"), ("b", "c"), None]
    among = [offers[i % 3] for i in range(n)]
    labels = [rng.choice(offer or ("a", "b", "c")) for offer in among]
    p = [1 / len(offer or "abc") for offer in among]
    truth = rng.choice(["a", "b", "c"], size=n).tolist()
    x = rng.normal(size=(n, 2))
    log = Log(labels, p, truth=truth, among=among, x=x, least=p)
    learner = Banditron(classes=["a", "b", "c"], gamma=0.5, random_state=0)
    learner.teach(x[:50], np.array(truth[:50]))
    found = estimate(log, learner)
    expected = np.mean(
        [learner.policy(x[i : i + 1], among[i])[0, "abc".index(truth[i])] for i in range(n)]
    )
    assert found.low <= expected <= found.high
    assert found.covered == 1.0
    # "a" is not on offer in a third of the rows.
    assert estimate(log, "a").covered == pytest.approx(2 / 3, abs=0.01)
    assert estimate(log, learner, greedy=True).covered == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "magic"}, "method is one of"),
        ({"interval": "weekly"}, 'interval is "fixed" or "anytime"'),
        ({"level": 95}, "level is a number between 0 and 1"),
        ({"policy": 9}, "unknown label 9"),
        ({"policy": 1, "greedy": True}, "greedy=True is for a learner"),
        ({"policy": lambda x: [1]}, "a label for each of"),
        ({"policy": lambda x: np.full((len(x), 4), 0.9)}, "not those of labels"),
        ({"policy": 1, "method": "dr", "model": [[2.0]]}, "predictions are probabilities"),
        ({"policy": 1, "method": "dr", "model": [[0.5]]}, "predictions have a row for each"),
        (
            {"policy": 1, "method": "dr", "model": Banditron()},
            "a model has right_proba or predict_proba",
        ),
        ({"clip": 0.0}, "clip is a weight"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        estimate(random_log(100)[0], **arguments)


def test_greedy_labels_are_those_of_worth_and_cost():
    log, _, _ = random_log(300)
    learner = OneBitClassifier(classes=range(4), random_state=0)
    learner.replay(log.x, log.labels, log.probabilities, log.correct)
    by_score = estimate(log, learner, "ips", greedy=True).value
    learner.set_utility(cost={0: 5.0, 1: 5.0, 2: 5.0})
    by_value = estimate(log, learner, "ips", greedy=True).value
    assert by_value == estimate(log, 3, "ips").value != by_score
    assert estimate(log, learner, "ips").value == pytest.approx(by_value, abs=0.02)
    learner.set_utility()
    assert estimate(log, learner, "ips", greedy=True).value == by_score
