"""Lists: exact probabilities at each place, feedback for places, and what is refused."""

import json

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chisquare
from sklearn.base import clone

from onebit import (
    NONE_OF_THESE,
    SOBA,
    Banditron,
    Decision,
    DecisionList,
    LinTS,
    OneBitClassifier,
    Perceptron,
    SoftmaxThompson,
    load,
    make_pipeline,
)
from onebit.core.templates import CHOOSE
from onebit.features import Records
from onebit.numerics.neighbours import P
from onebit.numerics.pairs import FACTOR

pytestmark = pytest.mark.xdist_group("one_bit_classifier")

K = 4


def stream(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.argmax(X @ rng.normal(size=(3, K)) + rng.gumbel(size=(n, K)), axis=1)


def trained(learner, seed=0):
    """Let a learner learn from a log in which each label was chosen in turn."""
    X, y = stream(seed=seed)
    learner = clone(learner).set_params(classes=range(K), random_state=seed)
    for i, (x, truth) in enumerate(zip(X, y, strict=True)):
        if learner.feedback == "full":
            learner.learn(Decision(x, i % K, 1 / K), truth=truth)
        else:
            learner.learn(Decision(x, i % K, 1 / K), correct=bool(truth == i % K))
    return learner, X, y


# Probabilities


def choose(learner, x, offer):
    """Fill the scratch of a learner with what it knows of x."""
    example, run = learner.decide(x).x, learner._run
    run.decide(run.packed, example, np.zeros(K), np.array(offer), np.zeros(K), CHOOSE)


def draws_of_mixture(learner, x, offer, rng, n):
    """Draw scores around the weighted means of the members, as the class describes."""
    choose(learner, x, offer)
    mixture = learner._run.state.mixture
    trust = np.where(mixture.trust >= 0.01, mixture.trust, 0.0)
    members = [member.posterior.scratch for member in mixture.named.values()]
    shares = trust / trust.sum()
    means = sum(w * member.scores for w, member in zip(shares, members, strict=True))
    variances = sum(w * member.deviations**2 for w, member in zip(shares, members, strict=True))
    if mixture.weighed_pairs is not None:
        means = means + np.log(mixture.pairs.scratch.labels[FACTOR])
    if mixture.neighbours is not None and mixture.neighbours.weight >= 0.01:
        w, p = mixture.neighbours.weight, mixture.neighbours.scratch.labels[P]
        means = (1 - w) * means + w * np.log(p)
    drawn = drawn_highest(means[offer], np.sqrt(variances)[offer], rng, n)
    share, constant = hedge(learner._run.state.rates, offer)
    return np.where(rng.random(n) < share, offer.index(constant), drawn)


def hedge(rates, offer):
    """How often the best constant label is chosen instead, and which one that is."""

    def moments(rate, alpha, beta):
        alpha, beta = alpha + rate[0], beta + rate[1] - rate[0]
        mean = alpha / (alpha + beta)
        return mean, mean * (1 - mean) / (alpha + beta + 1)

    model, v = moments(rates.ways[0], 4, 1)
    constant, w = moments(rates.ways[1], 1, len(offer) - 1)
    ends = []
    for k in offer:
        mean, variance = moments(rates.labels[k], 1, len(offer) - 1)
        ends.append(mean + 2 * np.sqrt(variance))
    return ndtr((min(constant, 1 - model) - model) / np.sqrt(v + w)), offer[int(np.argmax(ends))]


def draws_of_model(learner, x, offer, rng, n):
    choose(learner, x, offer)
    scratch = learner._run.state.model.posterior.scratch
    deviations = scratch.deviations[offer]
    return drawn_highest(learner.scores(x[None])[0][offer], deviations, rng, n)


def draws_of_lin_ts(learner, x, offer, rng, n):
    """Agrawal and Goyal, Algorithm 1, for the log of `trained`: a regression for each label."""
    (X, y), means, deviations = stream(), [], []
    for k in offer:
        rows = np.arange(len(y)) % K == k
        B_inv = np.linalg.inv(np.eye(3) + X[rows].T @ X[rows])
        means.append(x @ B_inv @ X[rows].T @ (y[rows] == k))
        deviations.append(np.sqrt(x @ B_inv @ x))
    return drawn_highest(np.array(means), learner.v * np.array(deviations), rng, n)


def draws_by_gamma(learner, x, offer, rng, n):
    """The best label, but in a share gamma of all rounds any."""
    best = int(np.argmax((learner.coef_ @ x)[offer]))
    any_label = rng.integers(len(offer), size=n)
    return np.where(rng.random(n) < learner.gamma, any_label, best)


def drawn_highest(means, deviations, rng, n):
    return np.argmax(means + deviations * rng.normal(size=(n, means.size)), axis=1)


FIVE = {
    "mixture": (OneBitClassifier(explore=1.0), draws_of_mixture),
    "model": (SoftmaxThompson(explore=1.0), draws_of_model),
    "lin_ts": (LinTS(v=0.5), draws_of_lin_ts),
    "banditron": (Banditron(gamma=0.3), draws_by_gamma),
    "soba": (SOBA(gamma=0.2), draws_by_gamma),
}


@pytest.mark.parametrize(
    ("n", "error"), [(100_000, 6e-3), pytest.param(1_000_000, 1e-3, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", FIVE)
def test_probabilities_are_those_of_a_simulation(name, n, error):
    """The first place is drawn among all labels, the second among those that are left."""
    learner, draw = FIVE[name]
    learner, X, _ = trained(learner)
    rng = np.random.default_rng(1)
    x = X[5]
    first = learner.policy(x[None])[0]
    assert first.sum() == pytest.approx(1.0, abs=1e-12)
    shares = np.bincount(draw(learner, x, list(range(K)), rng, n), minlength=K) / n
    np.testing.assert_allclose(first, shares, atol=error)
    for k in range(K):
        left = [label for label in range(K) if label != k]
        second = learner.policy(x[None], among=left)[0]
        assert second.sum() == pytest.approx(1.0, abs=1e-12)
        shares = np.bincount(draw(learner, x, left, rng, n), minlength=K - 1) / n
        np.testing.assert_allclose(second[left], shares, atol=error)


def test_all_orders_have_their_frequencies():
    learner, X, _ = trained(OneBitClassifier(explore=2.0))
    lists = [learner.decide(X[5], among=[0, 1, 3], top=3) for _ in range(3_000)]
    found = {}
    for one in lists:
        assert sorted(one.labels) == [0, 1, 3]
        assert one.among == (0, 1, 3)
        assert one[2].probability == 1.0
        found.setdefault(one.labels, [one.probability, 0])[1] += 1
    assert len(found) == 6
    probabilities, counts = np.array(list(found.values())).T
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    assert chisquare(counts, probabilities * len(lists)).pvalue > 1e-4


def test_the_first_place_is_the_decision():
    """With one seed, the first place is what `decide` chooses, and later ones what it would."""
    learner, X, _ = trained(OneBitClassifier(explore=1.0))
    other, _, _ = trained(OneBitClassifier(explore=1.0))
    chosen = learner.decide(X[0], top=3)
    left = list(range(K))
    for place in chosen:
        one = other.decide(X[0], among=left)
        assert (one.label, one.probability, one.confidence) == (
            place.label,
            place.probability,
            place.confidence,
        )
        left.remove(one.label)
    assert chosen.probability == pytest.approx(np.prod(chosen.probabilities))
    assert [place.id for place in chosen] == [f"{chosen.id}#{i}" for i in (1, 2, 3)]


def test_lists_have_the_terms_of_decisions():
    """Worth, cost, limits and explore=False hold for each place."""
    learner, X, _ = trained(OneBitClassifier(explore=1.0))
    ranked = tuple(one.label for one in learner.rank(X[0]))
    greedy = learner.decide(X[0], top=4, explore=False)
    assert greedy.labels == ranked
    assert greedy.probabilities == (1.0,) * 4
    worth, cost = {0: 5.0, 3: 0.1}, {1: 0.05}
    other, _, _ = trained(OneBitClassifier(explore=1.0))
    left = list(range(K))
    for place in learner.decide(X[0], top=3, worth=worth, cost=cost):
        one = other.decide(X[0], among=left, worth=worth, cost=cost)
        assert (one.label, one.probability) == (place.label, place.probability)
        left.remove(one.label)
    learner.set_limits(max_exploration=0.0)
    assert learner.decide(X[0], top=4).labels == ranked


# Feedback


def state_of(learner):
    return learner._run.state.mixture.members.line.posterior.W.copy()


@pytest.mark.parametrize(
    ("feedback", "bits"),
    [
        ({"taken": 0}, [True, None, None]),
        ({"taken": 2}, [False, False, True]),
        ({"taken": NONE_OF_THESE}, [False, False, False]),
        ({"correct": [None, True, False]}, [None, True, False]),
        ({"correct": np.array([0, 1, 1])}, [False, True, True]),
    ],
)
def test_feedback_is_a_bit_for_each_place_that_was_seen(feedback, bits):
    learner, X, _ = trained(OneBitClassifier())
    other, _, _ = trained(OneBitClassifier())
    chosen = learner.decide(X[0], top=3)
    if "taken" in feedback and feedback["taken"] is not NONE_OF_THESE:
        feedback = {"taken": chosen.labels[feedback["taken"]]}
    learner.learn(chosen, **feedback)
    for place, bit in zip(chosen, bits, strict=True):
        assert learner.has_learned(place) == (bit is not None)
        if bit is not None:
            other.learn(Decision(place.x, place.label, place.probability, place.among), correct=bit)
    np.testing.assert_array_equal(state_of(learner), state_of(other))


def test_a_place_may_be_told_later():
    learner, X, _ = trained(OneBitClassifier())
    chosen = learner.decide(X[0], top=2, id="seven")
    assert not learner.has_learned("seven")
    learner.learn(chosen, correct=[False, None])
    assert learner.has_learned("seven")
    learner.learn(chosen, correct=[None, True])
    with pytest.raises(ValueError, match="already learned"):
        learner.learn(chosen, correct=[None, True])
    learner.learn(chosen, correct=[None, None])


def test_a_truth_is_told_once():
    learner, X, _ = trained(OneBitClassifier())
    other, _, _ = trained(OneBitClassifier())
    chosen = learner.decide(X[0], top=3)
    learner.learn(chosen, truth=2)
    other.learn(Decision(X[0], 0, 0.5), truth=2)
    np.testing.assert_array_equal(state_of(learner), state_of(other))
    assert all(learner.has_learned(place) for place in chosen)
    full, X, _ = trained(Perceptron())
    before = full.coef_.copy()
    full.learn(full.decide(-X[0], top=3), truth=full.rank(-X[0])[-1].label)
    assert not np.array_equal(before, full.coef_)


def test_a_truth_is_bits_for_learners_that_take_bits():
    learner, X, _ = trained(Banditron())
    other, _, _ = trained(Banditron())
    chosen = learner.decide(X[0], top=3)
    learner.learn(chosen, truth=chosen.labels[1])
    other.learn_many(
        [Decision(p.x, p.label, p.probability, p.among) for p in chosen],
        correct=[False, True, False],
    )
    np.testing.assert_array_equal(learner.coef_, other.coef_)


def test_a_replayed_log_of_lists_gives_the_same_learner(tmp_path):
    """Lists stored as JSON, and replayed, teach what they taught; files go on identically."""
    learner = OneBitClassifier(classes=range(K), random_state=0)
    again = OneBitClassifier(classes=range(K), random_state=0)
    _, X, y = trained(Banditron())
    log = []
    for i, (x, truth) in enumerate(zip(X, y, strict=True)):
        chosen = learner.decide(x, top=2)
        taken = int(truth) if truth in chosen.labels else NONE_OF_THESE
        log.append((json.dumps(chosen.to_dict()), taken))
        learner.learn(chosen, taken=taken)
        if i == 70:
            learner.save(tmp_path / "learner.safetensors")
            learner = load(tmp_path / "learner.safetensors")
    for text, taken in log:
        again.learn(DecisionList.from_dict(json.loads(text)), taken=taken)
    np.testing.assert_array_equal(state_of(learner), state_of(again))
    for text, taken in log:
        one = DecisionList.from_dict(json.loads(text))
        assert learner.has_learned(one.id)
        with pytest.raises(ValueError, match="already learned"):
            learner.learn(one, taken=taken)


def test_an_error_in_one_place_leaves_the_learner_as_it_was():
    learner, X, _ = trained(OneBitClassifier())
    before = state_of(learner)
    chosen = learner.decide(X[0], top=2)
    chosen[1].probability = 0.0
    with pytest.raises(ValueError, match="probability"):
        learner.learn(chosen, correct=[False, True])
    np.testing.assert_array_equal(before, state_of(learner))


REFUSED = {
    "correct has a bit for each of 2 places": {"correct": True},
    "got \\[True\\]": {"correct": [True]},
    "correct is True or False": {"correct": [True, "no"]},
    "taken is one of the labels of the list": {"taken": 9},
    "one of correct": {"taken": NONE_OF_THESE, "truth": 1},
    "unknown label 9": {"truth": 9},
}


@pytest.mark.parametrize("words", REFUSED)
def test_unsound_feedback_for_a_list_is_refused(words):
    learner, X, _ = trained(Banditron())
    before, chosen = learner.coef_.copy(), learner.decide(X[0], top=2)
    with pytest.raises(ValueError, match=words):
        learner.learn(chosen, **REFUSED[words])
    np.testing.assert_array_equal(before, learner.coef_)


def test_what_is_no_list_is_refused():
    learner, X, _ = trained(Banditron())
    with pytest.raises(ValueError, match=r"taken=\.\.\. is for a list"):
        learner.learn(learner.decide(X[0]), taken=1)
    with pytest.raises(ValueError, match="a list has 'places'"):
        DecisionList.from_dict({"x": [1.0]})
    with pytest.raises(ValueError, match="at least one place"):
        DecisionList([])
    with pytest.raises(ValueError, match="an id is a text of 1 to 200"):
        learner.decide(X[0], top=2, id="x" * 199)
    with pytest.raises(TypeError, match="a decision is what decide returned"):
        learner.learn_many([learner.decide(X[0], top=2)], correct=[True])


# Pipelines


def test_a_pipeline_decides_and_learns_lists():
    router = make_pipeline(Records(256), Banditron(classes=["a", "b", "c"], random_state=0))
    chosen = router.decide({"subject": "two words"}, top=2, among=["a", "c"])
    assert sorted(chosen.labels) == ["a", "c"]
    router.learn(chosen, taken=chosen.labels[0])
    by_hand = DecisionList(
        [Decision("two words", "a", 0.5, ("a", "b")), Decision("two words", "b", 1.0, ("b",))]
    )
    router.learn(by_hand, correct=[False, True])
    assert router.has_learned(by_hand)
    assert repr(by_hand) == "DecisionList('a': 0.5, 'b': 1)"


def test_lists_for_many_rows_are_those_of_one_row_after_the_other():
    X = np.random.default_rng(0).normal(size=(20, 3))
    one, many = (OneBitClassifier(classes=range(4), random_state=0) for _ in range(2))
    given = {"cost": {1: 0.2}, "among": [0, 1, 3]}
    expected = [one.decide(x, top=2, id=f"list {i}", **given) for i, x in enumerate(X)]
    found = many.decide_many(X, top=2, ids=[f"list {i}" for i in range(20)], **given)
    assert [repr(chosen) for chosen in found] == [repr(chosen) for chosen in expected]
    assert [chosen.id for chosen in found] == [chosen.id for chosen in expected]
    assert [len(chosen) for chosen in many.decide_many(X[:2], top=9)] == [4, 4]
    with pytest.raises(ValueError, match="top is a number of places"):
        many.decide_many(X, top=0)
    with pytest.raises(ValueError, match="an id is a text"):
        many.decide_many(X[:1], top=2, ids=["i" * 199])
