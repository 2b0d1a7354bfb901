import copy
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import Decision, losses, play, streams
from onebit.learners.gaptron import Gaptron, theory_eta, theory_gamma
from paths import assert_same_path, continuous, one_hot, repeated, unit
from problems import assert_finite
from references import gaptron

LOSSES = ["logistic", "hinge", "smooth_hinge"]
SETTINGS = [(loss, feedback) for loss in LOSSES for feedback in ("full", "bandit")]
VALUES = {"logistic": losses.logistic, "hinge": losses.hinge, "smooth_hinge": losses.smooth_hinge}
GRADIENTS = {
    "logistic": losses.logistic_gradient,
    "hinge": losses.hinge_gradient,
    "smooth_hinge": losses.smooth_hinge_gradient,
}
GAPS = {
    "logistic": losses.logistic_gap,
    "hinge": losses.hinge_gap,
    "smooth_hinge": losses.smooth_hinge_gap,
}
LN2 = math.log(2)
THEORY = {"eta": "theory", "gamma": "theory"}

every_setting = pytest.mark.parametrize(("loss", "feedback"), SETTINGS)


def norm(learner):
    return np.linalg.norm(learner.coef_)


@every_setting
@pytest.mark.parametrize(
    ("K", "storage"), [(2, np.asarray), (3, sp.csr_array), (9, repeated)], ids=["2", "3", "9"]
)
def test_walks_the_path_of_the_reference(loss, feedback, K, storage):
    X, y = continuous(K)
    eta, gamma, D = 0.07, 0.1, 1.0
    reference = gaptron.Gaptron(X.shape[1], K, loss, feedback, eta, gamma, D)
    learner = Gaptron(loss, feedback, eta, gamma, D, random_state=K)

    def check(reference, label, truth):
        assert norm(learner) <= D * (1 + 1e-12)

    assert_same_path(learner, reference, X, y, storage, check)
    assert reference.projections > 5


@every_setting
def test_walks_the_path_of_the_reference_with_the_theory(loss, feedback):
    """Rows of unit length, with ties of labels that nothing has told apart yet."""
    X, y = one_hot(9)
    eta, gamma = settings_by_hand(loss, feedback, 9, 1.0, 2.0, 2_000)
    reference = gaptron.Gaptron(X.shape[1], 9, loss, feedback, eta, gamma, 2.0)
    learner = Gaptron(loss, feedback, radius=2.0, horizon=2_000, random_state=0, **THEORY)
    assert_same_path(learner, reference, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_walks_the_path_of_the_reference_with_the_defaults(loss):
    """With one bit, the step of the theorems for gamma = 1, for examples as long as x."""
    X, y = continuous(4)
    eta = settings_by_hand(loss, "full", 4, 1.0, 10.0, 1)[0] / 4
    reference = gaptron.Gaptron(X.shape[1], 4, loss, "bandit", eta, 0, 10.0, by_length=True)
    assert_same_path(Gaptron(loss, random_state=0), reference, X, y)


@pytest.mark.parametrize("stream", [streams.synsep, streams.synnonsep])
@pytest.mark.parametrize("scale", [None, 1.0, 100.0])
def test_learns_with_default_parameters(stream, scale):
    """The paper's constants err as often as chance here, at 8 / 9."""
    X, y = stream(10_000, seed=0)
    lengths = np.sqrt(X.multiply(X).sum(axis=1)) if sp.issparse(X) else np.linalg.norm(X, axis=1)
    X = sp.csr_array(sp.diags_array(1.0 / lengths) @ X) if scale is None else scale * X
    assert play(Gaptron(random_state=0), X, y).error_rate < 0.25
    theory = Gaptron("logistic", radius=1, random_state=0, **THEORY)
    if scale is None:
        assert play(theory, X, y).error_rate > 0.8


def test_the_step_for_an_example_shorter_than_a_millionth_is_that_for_a_millionth():
    """A step of eta x / ||x||^2 would be the longer, the shorter the example is."""
    moved = []
    lengths = np.array([1.0, 1e-12, 1e-13, 1e-20])
    for length in lengths:
        learner = Gaptron(classes=range(3), random_state=0)
        learner.learn(Decision(np.array([length, 0.0]), 1, 0.5), correct=True)
        moved.append(learner.coef_[1, 0])
    np.testing.assert_allclose(moved, moved[0] * lengths / np.maximum(lengths, 1e-6) ** 2)


def test_walks_the_path_of_the_reference_without_a_ball():
    X, y = continuous(3)
    reference = gaptron.Gaptron(X.shape[1], 3, "logistic", "full", 0.1, 0, np.inf)
    learner = Gaptron("logistic", "full", eta=0.1, radius=None, random_state=0)
    assert_same_path(learner, reference, X, y)
    assert norm(learner) > 2


def settings_by_hand(loss, feedback, K, X, D, T):
    """The step and gamma, written out from Theorems 1 to 6 with the changes that Gaptron notes."""
    beta = 1 / K
    if feedback == "full":
        by_loss = {
            "logistic": LN2 / (2 * K * X**2),
            "hinge": (1 - beta) / (K * X**2),
            "smooth_hinge": 1 / (4 * K * X**2),
        }
        return by_loss[loss], 0.0
    if loss == "hinge":
        gamma = min(1, math.sqrt(K**3 * X**2 * D**2 / (2 * (1 - beta) * (K - 1) * T)))
        return gamma * (1 - beta) / (K**2 * X**2), gamma
    if loss == "smooth_hinge":
        gamma = min(1, math.sqrt(2 * K**2 * X**2 * D**2 / T))
        return gamma / (4 * K**2 * X**2), gamma
    exploring = K * X * D * max(2 * K * X * D / LN2, 2 * math.sqrt(T / LN2))
    not_exploring = (K * X * D) ** 2 * math.exp(2 * D * X) / LN2
    gamma = min(1, K * X * D / math.sqrt(T * LN2)) if exploring <= not_exploring else 0
    return LN2 * max(math.exp(-2 * D * X), gamma) / (2 * K**2 * X**2), gamma


@every_setting
def test_theory_is_that_of_the_theorems(loss, feedback):
    gammas = set()
    for K in (2, 3, 5, 10, 20):
        for X in (0.5, 1.0, 3.0):
            for D in (0.1, 1.0, 4.0):
                for T in (1, 100, 10_000, 10**6):
                    given = {"radius": D, "max_norm": X, "horizon": T, "classes": range(K)}
                    learner = Gaptron(loss, feedback, **given, **THEORY)
                    learner.decide([0.0])
                    eta, gamma = settings_by_hand(loss, feedback, K, X, D, T)
                    assert learner._run.state.eta == pytest.approx(eta, rel=1e-12)
                    assert learner._run.state.gamma == pytest.approx(gamma, rel=1e-12)
                    gammas.add(gamma)
    if feedback == "bandit":
        assert 1 in gammas
        assert len(gammas) > 20
        assert (0 in gammas) == (loss == "logistic")
    else:
        assert gammas == {0}


def stated_bound(loss, K, X, D, T):
    """What Theorems 4 to 6 say of the regret."""
    if loss == "hinge":
        return max(K**3 * X**2 * D**2 / (K - 1), 2 * K * X * D * math.sqrt(T / 2))
    if loss == "smooth_hinge":
        return max(4 * (K * X * D) ** 2, 2 * K * X * D * math.sqrt(2 * T))
    exploring = max(2 * K * X * D / LN2, 2 * math.sqrt(T / LN2))
    return K * X * D * min(exploring, K * X * D * math.exp(2 * D * X) / LN2)


@pytest.mark.parametrize("loss", LOSSES)
def test_theory_keeps_the_stated_bound(loss):
    """Lemma 1 with a surrogate gap of at most zero: D^2 / (2 eta) + gamma T (K - 1) / K."""
    for K in (2, 3, 5, 10, 20, 150):
        for X in (0.5, 1.0, 3.0):
            for D in (0.01, 0.1, 1.0, 4.0):
                for T in (1, 100, 10_000, 10**6, 10**9):
                    gamma = theory_gamma(loss, K, X, D, T)
                    eta = theory_eta(loss, "bandit", gamma, K, X, D)
                    regret = D**2 / (2 * eta) + gamma * T * (K - 1) / K
                    assert regret <= stated_bound(loss, K, X, D, T) * (1 + 1e-12)


def surrogate_gap(loss, feedback, s, y, eta, gamma, X):
    """The last sum of Lemma 1 for one round, with the longest x; its expectation with one bit."""
    K, y_star, a = s.size, np.argmax(s), GAPS[loss](s)
    g = np.zeros(K)
    changed = GRADIENTS[loss](s, y, g)
    # The hinge loss of a round is zero where it does not count; the others are always there.
    value = VALUES[loss](s, y) if changed or loss != "hinge" else 0.0
    share = max(a, gamma)
    p_y = (1 - share) * (y == y_star) + share / K
    squares = (g @ g) * X**2
    if feedback == "bandit" and changed:
        squares /= p_y
    return (1 - a) * (y_star != y) + a * (K - 1) / K - value + eta / 2 * squares


@every_setting
@pytest.mark.parametrize("K", [2, 3, 5, 10, 20])
def test_surrogate_gap_is_never_positive(loss, feedback, K):
    rng = np.random.default_rng(K)
    largest = -np.inf
    for _ in range(250):
        X, D = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-2, 1)
        gamma = 0.0 if feedback == "full" else rng.choice([1e-4, 0.01, 0.1, 0.5, 1.0])
        if feedback == "bandit" and loss == "logistic" and rng.random() < 0.5:
            gamma = 0.0
        # ||W|| <= D and ||x|| <= X keep the scores in a ball.
        s = rng.normal(size=K) * (rng.random(K) < rng.random())
        s *= D * X * rng.choice([1, rng.random()]) / max(np.linalg.norm(s), 1e-300)
        eta = theory_eta(loss, feedback, gamma, K, X, D)
        for y in range(K):
            gap = surrogate_gap(loss, feedback, s, y, eta, gamma, X)
            assert gap <= 1e-12
            largest = max(largest, gap)
    assert largest > -0.05


@pytest.mark.parametrize("K", [2, 3, 5, 10, 20])
def test_surrogate_gap_is_tight(K):
    """No larger step would do for the hinges: their gap reaches zero."""
    e = np.eye(K)[0]
    for feedback, gamma in [("full", 0.0), ("bandit", 1.0)]:
        eta = theory_eta("smooth_hinge", feedback, gamma, K, 1, 1)
        for m in (0.0, 0.3, 0.9, 2.0):
            gap = surrogate_gap("smooth_hinge", feedback, m * e, 0, eta, gamma, 1)
            assert gap == pytest.approx(0, abs=1e-12)
        eta = theory_eta("hinge", feedback, gamma, K, 1, 1)
        gap = surrogate_gap("hinge", feedback, e / K, 0, eta, gamma, 1)
        assert gap == pytest.approx(0, abs=1e-12)
        eta = theory_eta("logistic", feedback, gamma, K, 1, 20)
        assert -1e-6 < surrogate_gap("logistic", feedback, 20 * e, 0, eta, gamma, 1) <= 1e-12
    # At p* = 1/2, where the logistic gap map jumps, there is room left: (1 / (8 ln 2) - 1 / 2) / K.
    half = np.full(K, -1000.0)
    half[:2] = 0
    eta = theory_eta("logistic", "full", 0.0, K, 1, 1)
    gap = surrogate_gap("logistic", "full", half, 1, eta, 0.0, 1)
    assert gap == pytest.approx((1 / (8 * LN2) - 1 / 2) / K)


@every_setting
@pytest.mark.parametrize("gamma", [0.0, 0.2, 1.0])
def test_every_label_keeps_its_share(loss, feedback, gamma):
    X, y = continuous(5)
    learner = Gaptron(loss, feedback, 0.1, gamma, 3, random_state=0).fit(X[:500], y[:500])
    shares = []
    for p, s in zip(learner.policy(X), learner.decision_function(X), strict=True):
        share = max(GAPS[loss](s), gamma)
        assert (p >= share / 5).all()
        assert p[np.argmax(s)] == pytest.approx(1 - share + share / 5)
        shares.append(share)
    assert min(shares) < max(shares) or gamma == 1


@pytest.mark.parametrize("K", [3, 5, 9, 100])
def test_logistic_only_guesses_in_a_small_ball(K):
    """The largest p* for scores with ||s|| <= DX is at one label up and all others equal."""
    s = np.full(K, -1.0)
    s[0] = K - 1
    s *= math.log(K - 1) / math.sqrt(K / (K - 1)) / np.linalg.norm(s)
    assert losses.logistic_gap(s * (1 - 1e-9)) == 1
    assert losses.logistic_gap(s * (1 + 1e-9)) == pytest.approx(0.5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [2, 5])
def test_expected_step_with_one_bit_is_that_of_full_information(loss, K):
    X, y = unit(continuous)(K)
    bandit = Gaptron(loss, "bandit", 0.05, 0.1, radius=1e3, classes=range(K), random_state=0)
    bandit.fit(X[:300], y[:300])
    full = Gaptron(loss, "full", 0.05, 0.1, radius=1e3, classes=range(K)).fit(X[:1], y[:1])
    full._run.state = full._run.state._replace(W=bandit._run.state.W)
    before, moved = bandit.coef_, 0
    for x, truth in zip(X[300:350], y[300:350], strict=True):
        expected = np.zeros_like(before)
        for label, p in enumerate(bandit.policy(x[None])[0]):
            told = copy.deepcopy(bandit)
            if p > 0:
                told.learn(Decision(x, label, p), correct=label == truth)
            expected += p * (told.coef_ - before)
        told = copy.deepcopy(full)
        told.learn(Decision(x, 0, 1.0), truth=truth)
        np.testing.assert_allclose(expected, told.coef_ - before, rtol=0, atol=1e-13)
        moved += (expected != 0).any()
    assert moved > 5


@every_setting
def test_stays_in_the_ball_and_tracks_its_norm(loss, feedback):
    """Over many rounds that all end on the sphere, and whose scale falls many times over."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 6)) * (rng.random((60_000, 6)) < 0.5) * 10 ** rng.uniform(-2, 2)
    y = rng.integers(4, size=60_000)
    learner = Gaptron(loss, feedback, 3.0, 0.3, 0.7, classes=range(4), random_state=0)
    for lo in range(0, 60_000, 3_000):
        learner.partial_fit(X[lo : lo + 3_000], y[lo : lo + 3_000])
        W = learner._run.state.W
        assert norm(learner) <= 0.7 * (1 + 1e-12)
        assert math.sqrt(W.squares) == pytest.approx(np.linalg.norm(W.V), rel=1e-12)
        assert 1e-100 <= W.scale <= 1
    assert norm(learner) > 0.1


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    setting=st.sampled_from(SETTINGS),
    eta=st.sampled_from(["practical", "theory", 1e-8, 1.0, 1e4]),
    gamma=st.sampled_from(["theory", 1e-6, 0.3, 1.0]),
    radius=st.sampled_from([1e-3, 1.0, 1e3]),
    max_norm=st.sampled_from([1e-8, 1.0, 1e4]),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    horizon=st.sampled_from([1, 10**9]),
)
def test_extremes_stay_finite(seed, setting, eta, gamma, radius, max_norm, scale, horizon):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(2_000, 3))
    y = rng.integers(4, size=2_000)
    learner = Gaptron(*setting, eta, gamma, radius, max_norm, horizon, random_state=seed)
    learner.fit(X, y)
    assert_finite(learner, X[:100])
    assert learner._run.state.W.scale > 0
    assert norm(learner) <= radius * (1 + 1e-9)
    np.testing.assert_allclose(learner.policy(X[:100]).sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-8, 1e4])
def test_extremes_stay_finite_without_a_ball(loss, scale):
    X, y = continuous(3)
    learner = Gaptron(loss, "full", radius=None, random_state=0).fit(scale * X, y)
    assert_finite(learner, scale * X)


def test_parameters_that_exclude_each_other_are_refused():
    x = [1.0, 2.0]
    with pytest.raises(ValueError, match="radius=None goes with feedback='full' only"):
        Gaptron(radius=None, classes=[0, 1]).decide(x)
    for loss in ("hinge", "smooth_hinge"):
        with pytest.raises(ValueError, match=r"gamma=0\.0 .* would never learn"):
            Gaptron(loss, eta="theory", classes=[0, 1]).decide(x)
    with pytest.raises(ValueError, match="radius=1000: it would never learn"):
        Gaptron("logistic", eta="theory", radius=1000, classes=[0, 1]).decide(x)
    Gaptron("hinge", eta=0.1, classes=[0, 1]).decide(x)
    Gaptron("logistic", eta="theory", radius=1, classes=[0, 1]).decide(x)


@pytest.mark.parametrize("loss", LOSSES)
def test_keeps_its_bound_with_full_information(loss):
    """Theorems 1 to 3, with the weights of a long run as the comparator."""
    X, y = streams.synnonsep(20_000, seed=0)
    X = X / math.sqrt(X.sum(axis=1).max())
    K = 9
    learner = Gaptron(loss, "full", radius=None, random_state=0)
    history = play(learner, X, y)
    comparator = copy.deepcopy(learner)
    play(comparator, X, y)
    U = comparator.coef_
    surrogate = sum(VALUES[loss](s, label) for s, label in zip(X @ U.T, y, strict=True))
    factor = {"logistic": K / LN2, "hinge": K**2 / (2 * (K - 1)), "smooth_hinge": 2 * K}[loss]
    assert history.n_mistakes < 0.5 * len(y)
    # The bound is on the expectation; the weights do not depend on the decisions, so that these
    # are independent and the count strays from its mean by at most sqrt(T) / 2 or so.
    assert history.n_mistakes <= surrogate + factor * (U**2).sum() + 4 * math.sqrt(len(y))


@pytest.mark.parametrize("loss", ["hinge", "smooth_hinge", "logistic"])
def test_short_examples_leave_it_finite(loss):
    X = np.array([[0.0, 0.0], [1e-160, 0.0], [1e-300, 1e-310], [1e-7, 1.0], [1e30, -1e30]])
    learner = Gaptron(loss, classes=[0, 1], random_state=0)
    for _ in range(20):
        for x in X:
            for label in (0, 1):
                learner.learn(Decision(x, label, 1e-30), correct=True)
    assert np.isfinite(learner.coef_).all()
    assert np.linalg.norm(learner.coef_) <= 10.0 * (1.0 + 1e-9)
    assert np.isfinite(learner._run.state.W.squares)
