"""How often lists have a right label: equal to the formula, without bias, or refused."""

import numpy as np
import pytest

from onebit import NONE_OF_THESE, Banditron, Decision, DecisionList, Perceptron
from onebit.core.lists import bits_if_taken
from onebit.evaluation import Log, estimate, estimate_lists

KINDS, K, PLACES = 3, 4, 2
LABELS = list(range(K))
TRUTH = np.random.default_rng(5).dirichlet(np.ones(K), size=KINDS)
"""P(label is right) for each kind of x."""


def policy_with(seed, floor=0.2):
    """Return the probabilities of labels for each kind of x."""
    return (1 - floor) * np.random.default_rng(seed).dirichlet(np.ones(K), size=KINDS) + floor / K


LOGGED, JUDGED = policy_with(1), policy_with(2, 0.0)


def given(p, before):
    """The policy, given that some labels are on the list already."""
    left = np.array([0.0 if k in before else p[k] for k in LABELS])
    return left / left.sum()


def share_of_right_lists(policy):
    """By the sum over all lists."""
    total = 0.0
    for kind in range(KINDS):
        for a in LABELS:
            for b in (label for label in LABELS if label != a):
                chosen = policy[kind, a] * given(policy[kind], [a])[b]
                total += chosen * (TRUTH[kind, a] + TRUTH[kind, b]) / KINDS
    return total


def logged_lists(n, seed=0):
    """Lists by the logging policy, with the bits that people give who stop at the right label."""
    rng = np.random.default_rng(seed)
    lists, bits = [], []
    for i in range(n):
        kind = rng.integers(KINDS)
        truth, before = rng.choice(K, p=TRUTH[kind]), []
        places = []
        for place in range(PLACES):
            p = given(LOGGED[kind], before)
            among = tuple(label for label in LABELS if label not in before)
            label = int(rng.choice(K, p=p))
            x = np.eye(KINDS)[kind]
            places.append(Decision(x, label, float(p[label]), among, id=f"{i}#{place + 1}"))
            before.append(label)
        chosen = DecisionList(places, str(i))
        lists.append(chosen)
        bits += bits_if_taken(chosen, int(truth) if truth in before else NONE_OF_THESE)
    places = [place for chosen in lists for place in chosen]
    return lists, bits, Log.from_decisions(places, correct=bits, classes=LABELS)


class Judged:
    """A policy with the interface of a learner: each place among what is left."""

    classes_ = np.array(LABELS)

    def policy(self, X, among=None):
        p = JUDGED[np.argmax(X, axis=1)]
        on = np.isin(LABELS, LABELS if among is None else among)
        return np.where(on, p, 0.0) / np.where(on, p, 0.0).sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.policy(X).argmax(axis=1)]


def by_the_formula(lists, bits):
    total = 0.0
    for i, chosen in enumerate(lists):
        weight, before = 1.0, []
        for place, bit in zip(chosen, bits[PLACES * i : PLACES * (i + 1)], strict=True):
            p = given(JUDGED[int(np.argmax(place.x))], before)
            weight *= p[place.label] / place.probability
            before.append(place.label)
            if bit:
                total += weight
                break
    return total / len(lists)


def test_values_are_those_of_the_formula():
    lists, bits, log = logged_lists(300)
    found = estimate_lists(log, Judged())
    assert found.values["ips"] == pytest.approx(by_the_formula(lists, bits), abs=1e-12)
    assert found.rows == found.feedback == 300
    chosen = estimate_lists(log)
    assert chosen.value == pytest.approx(np.nansum(log.correct) / 300)
    assert chosen.method == "mean"


def test_estimates_are_without_bias():
    values = [
        estimate_lists(logged_lists(150, seed)[2], Judged()).values["ips"] for seed in range(40)
    ]
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - share_of_right_lists(JUDGED)) < 4 * error
    assert error < 0.02


def test_intervals_contain_the_share():
    _, _, log = logged_lists(2_000, seed=7)
    for policy, share in ((None, share_of_right_lists(LOGGED)), (Judged(), None)):
        share = share_of_right_lists(JUDGED) if share is None else share
        for interval in ("fixed", "anytime"):
            found = estimate_lists(log, policy, interval=interval)
            assert found.low < share < found.high
            assert found.value == pytest.approx(share, abs=0.06)
            assert found.high - found.low < 0.25
    assert not estimate_lists(log, Judged()).warnings


def test_a_file_keeps_lists(tmp_path):
    _, _, log = logged_lists(50)
    for name in ("log.jsonl", "log.csv"):
        log.write(tmp_path / name)
        again = Log.read(tmp_path / name, classes=LABELS)
        assert estimate_lists(again).value == estimate_lists(log).value
        found = estimate_lists(again, Judged()).values["ips"]
        assert found == pytest.approx(estimate_lists(log, Judged()).values["ips"])


def test_a_learner_is_judged_by_its_lists():
    """With gamma=1 each label is chosen with the same probability, at each place."""
    _, _, log = logged_lists(1_500, seed=3)
    x, _ = np.eye(KINDS), 0
    learner = Banditron(gamma=1.0, classes=LABELS, random_state=0).fit(x, [0, 1, 2])
    uniform = share_of_right_lists(np.full((KINDS, K), 1 / K))
    found = estimate_lists(log, learner)
    assert found.low < uniform < found.high
    ranked = Perceptron(classes=LABELS).fit(x, [3, 2, 1])
    greedy = estimate_lists(log, ranked, greedy=True)
    best = [[one.label for one in ranked.rank(row)[:PLACES]] for row in x]
    share = np.mean([TRUTH[kind, labels].sum() for kind, labels in enumerate(best)])
    assert greedy.low < share < greedy.high


def test_unknown_bits_and_uncovered_policies_are_reported():
    lists, bits, _ = logged_lists(400)
    places = [place for chosen in lists for place in chosen]
    bits = [None if i % 8 == 0 else bit for i, bit in enumerate(bits)]  # of every fourth list
    log = Log.from_decisions(places, correct=bits, classes=LABELS)
    found = estimate_lists(log)
    assert found.rows == 400
    assert found.feedback == 300
    assert any("have no bit" in words for words in found.warnings)
    first = [place for place in places if place.id.endswith("#1")]
    narrow = [Decision(p.x, 0, 1.0, tuple(LABELS), id=p.id) for p in first]
    uncovered = Log.from_decisions(narrow, correct=[True] * 400, classes=LABELS)
    assert not estimate_lists(uncovered, Judged()).is_covered


def test_what_is_no_log_of_lists_is_refused():
    _, _, log = logged_lists(3)
    for rows, words in {
        (1,): "row 0: the id of place 1 of a list ends in #1",
        (0, 2, 1): "row 2: the id of place 1 of a list ends in #1",
        (0, 1, 1): "row 2: the id of place 3 of a list ends in #3",
    }.items():
        some = log[np.array(rows)]
        with pytest.raises(ValueError, match=words):
            estimate_lists(some)
    without = Log(log.labels, log.probabilities, log.correct, classes=LABELS)
    with pytest.raises(ValueError, match="got None"):
        estimate_lists(without)
    all_on_offer = Log(log.labels, log.probabilities, log.correct, classes=LABELS, ids=log.ids)
    with pytest.raises(ValueError, match="row 1: a place of a list is among the labels"):
        estimate_lists(all_on_offer)
    with pytest.raises(ValueError, match="interval is"):
        estimate_lists(log, interval="never")


def test_rows_of_the_first_place_are_a_log_of_decisions():
    _, _, log = logged_lists(2_000)
    first = log[np.arange(0, len(log), PLACES)]
    expected = np.mean([LOGGED[kind] @ TRUTH[kind] for kind in range(KINDS)])
    found = estimate(first)
    assert found.low < expected < found.high
