import math

import numpy as np
import pytest

from onebit import losses

KERNELS = {
    "logistic": (losses.logistic, losses.logistic_gradient, losses.logistic_gap),
    "hinge": (losses.hinge, losses.hinge_gradient, losses.hinge_gap),
    "smooth_hinge": (losses.smooth_hinge, losses.smooth_hinge_gradient, losses.smooth_hinge_gap),
}


def scores_of_all_kinds(K, n=200, seed=0):
    """Random scores of many sizes, with ties and zeros."""
    rng = np.random.default_rng([seed, K])
    for _ in range(n):
        s = rng.normal(size=K) * 10 ** rng.uniform(-2, 1)
        yield s * (rng.random(K) < rng.random())


@pytest.mark.parametrize("name", KERNELS)
def test_is_never_below_the_mistake(name):
    loss, _, _ = KERNELS[name]
    for K in (2, 3, 9):
        for s in scores_of_all_kinds(K):
            for y in range(K):
                others = np.delete(s, y)
                assert loss(s, y) >= (others.max() >= s[y]) - 1e-12


@pytest.mark.parametrize("name", KERNELS)
def test_gradient_is_that_of_the_loss(name):
    """Central differences, at scores where no two labels are about as good as each other."""
    loss, gradient, _ = KERNELS[name]
    h, looked_at = 1e-6, 0
    for K in (2, 3, 9):
        for s in scores_of_all_kinds(K):
            for y in range(K):
                others = np.sort(np.delete(s, y))
                m = s[y] - others[-1]
                kinks = [m - 1, *np.diff(others[-2:])]
                if name == "hinge" and m > 1 / K:
                    continue
                if name != "logistic" and np.abs(kinks).min() < 1e-3:
                    continue
                g = np.empty(K)
                changed = gradient(s, y, g)
                assert changed == (g != 0).any()
                differences = [
                    (loss(s + h * e, y) - loss(s - h * e, y)) / (2 * h) for e in np.eye(K)
                ]
                np.testing.assert_allclose(g, differences, atol=2e-6)
                looked_at += 1
    assert looked_at > 1000


@pytest.mark.parametrize("name", KERNELS)
def test_gradient_is_a_subgradient(name):
    """Everywhere, ties included, the loss lies above its tangent."""
    loss, gradient, _ = KERNELS[name]
    rng = np.random.default_rng(1)
    for K in (2, 3, 9):
        for s in scores_of_all_kinds(K):
            y = rng.integers(K)
            if name == "hinge" and not losses.hinge_counts(s, y):
                continue
            g = np.empty(K)
            gradient(s, y, g)
            u = s + rng.normal(size=K) * 10 ** rng.uniform(-3, 1)
            assert loss(u, y) >= loss(s, y) + g @ (u - s) - 1e-10


@pytest.mark.parametrize("name", KERNELS)
def test_gap_map_is_a_share(name):
    _, _, gap = KERNELS[name]
    for K in (2, 3, 9):
        assert gap(np.zeros(K)) == (0.5 if name == "logistic" and K == 2 else 1)
        for s in scores_of_all_kinds(K):
            assert 0 <= gap(s) <= 1


def test_values_by_hand():
    s = np.array([0.0, math.log(3), 0.0])  # sigma = (1/5, 3/5, 1/5)
    assert losses.logistic(s, 1) == pytest.approx(math.log2(5 / 3))
    assert losses.logistic(s, 0) == pytest.approx(math.log2(5))
    assert losses.logistic_gap(s) == pytest.approx(2 / 5)
    assert losses.logistic_gap(np.array([0.0, 0.5, 0.0])) == 1
    s = np.array([0.25, 0.5, -1.0])
    assert losses.margin(s, 1) == 0.25
    assert losses.margin(s, 2) == -1.5
    assert losses.hinge(s, 1) == 0.75
    assert losses.hinge(s, 2) == 2.5
    assert losses.hinge_gap(s) == 0.75
    assert losses.smooth_hinge(s, 1) == 0.5625
    assert losses.smooth_hinge(s, 2) == 4
    assert losses.smooth_hinge_gap(s) == 0.5625
    far = np.array([0.0, 3.0])
    assert losses.hinge_gap(far) == losses.smooth_hinge_gap(far) == losses.smooth_hinge(far, 1) == 0


def test_hinge_counts_up_to_a_margin_of_one_over_k():
    g = np.empty(4)
    at, above = np.array([0.0, 0.25, 0.0, 0.0]), np.array([0.0, 0.2501, 0.0, 0.0])
    assert losses.hinge_counts(at, 1)
    assert losses.hinge_gap(at) == 0.75
    assert losses.hinge_gradient(at, 1, g)
    np.testing.assert_array_equal(g, [1, -1, 0, 0])
    assert not losses.hinge_counts(above, 1)
    assert losses.hinge_gap(above) == 0
    assert not losses.hinge_gradient(above, 1, g)
    np.testing.assert_array_equal(g, 0)
    assert losses.hinge_counts(above, 0)
    assert losses.hinge_gradient(above, 0, g)
    np.testing.assert_array_equal(g, [-1, 1, 0, 0])


def test_logistic_keeps_its_digits_far_out():
    s, g = np.array([0.0, 50.0]), np.empty(2)
    tiny = math.exp(-50)  # 1 - sigma_1 up to a relative 1e-21
    assert losses.logistic(s, 1) == pytest.approx(tiny / math.log(2), rel=1e-12)
    assert losses.logistic_gap(s) == pytest.approx(tiny, rel=1e-12)
    losses.logistic_gradient(s, 1, g)
    np.testing.assert_allclose(g, np.array([tiny, -tiny]) / math.log(2), rtol=1e-12)
    s = np.array([0.0, 5000.0])
    assert losses.logistic(s, 0) == pytest.approx(5000 / math.log(2))
    assert not losses.logistic_gradient(s, 1, g)
    assert losses.logistic_gap(s) == 0


FACE = [losses.of(name) for name in losses.NAMES if name != "eta"]
FACE += [losses.of("eta", eta) for eta in (0.0, 0.3, 1.0)]


def many_scores(K, n=300):
    scores = np.array(list(scores_of_all_kinds(K, n)))
    return scores, np.random.default_rng(K).integers(K, size=n)


@pytest.mark.parametrize("loss", FACE, ids=str)
def test_one_example_or_many(loss):
    scores, y = many_scores(4)
    values, gradients = loss(scores, y), loss.gradient(scores, y)
    assert values.shape == (300,)
    assert gradients.shape == (300, 4)
    for i in (0, 7, 299):
        assert loss(scores[i], y[i]) == values[i]
        np.testing.assert_array_equal(loss.gradient(scores[i], y[i]), gradients[i])
    assert loss(scores[:0], y[:0]).shape == (0,)


@pytest.mark.parametrize("loss", FACE, ids=str)
def test_every_loss_is_at_least_the_mistake(loss):
    """Gaptron's variant too: where it is zero, the label is right with a margin."""
    unit = math.log(2) if str(loss) == "log_loss" else 1.0
    for K in (2, 5):
        scores, y = many_scores(K)
        assert (loss(scores, y) >= unit * losses.of("zero_one")(scores, y) - 1e-12).all()
        assert (losses.of("zero_one")(scores, y) >= (scores.argmax(axis=1) != y)).all()


@pytest.mark.parametrize("loss", FACE, ids=str)
def test_public_gradient_is_that_of_finite_differences(loss):
    K, h = 5, 1e-6
    scores, y = many_scores(K)
    others = np.sort(np.where(np.arange(K) == y[:, None], -np.inf, scores), axis=1)
    m = scores[np.arange(300), y] - others[:, -1]
    gaps = [m, m - 1, m - 1 / K, others[:, -1] - others[:, -2]]
    kinks = np.min(np.abs(gaps), axis=0)
    smooth = np.ones(300, bool) if str(loss) in ("log_loss", "logistic") else kinks > 1e-3
    assert smooth.sum() > 100
    differences = np.stack(
        [(loss(scores + h * e, y) - loss(scores - h * e, y)) / (2 * h) for e in np.eye(K)], axis=1
    )
    np.testing.assert_allclose(loss.gradient(scores, y)[smooth], differences[smooth], atol=1e-5)


def test_eta_family_goes_from_the_hinge_to_its_square():
    scores, y = many_scores(4)
    hinge, squared = losses.of("hinge")(scores, y), losses.of("squared_hinge")(scores, y)
    np.testing.assert_allclose(squared, hinge**2, rtol=1e-12)
    np.testing.assert_array_equal(losses.of("eta", 0)(scores, y), hinge)
    np.testing.assert_array_equal(losses.of("eta", 1)(scores, y), squared)
    for eta in (0.1, 0.5, 0.9):
        between = losses.of("eta", eta)(scores, y)
        assert (between <= np.maximum(hinge, squared) + 1e-12).all()
        assert (between >= np.minimum(hinge, squared) - 1e-12).all()
        # Linear in eta / (2 - eta), from 0 at the hinge to 1 at its square.
        share = eta / (2 - eta)
        np.testing.assert_allclose(between, (1 - share) * hinge + share * squared, atol=1e-9)


def test_logistic_in_bits_and_nats():
    scores, y = many_scores(3)
    nats = losses.of("log_loss")(scores, y)
    np.testing.assert_allclose(losses.of("logistic")(scores, y), nats / math.log(2))


def test_bad_scores_and_names_are_refused():
    with pytest.raises(ValueError, match="no loss 'hing'"):
        losses.of("hing")
    with pytest.raises(ValueError, match="eta goes with the loss 'eta'"):
        losses.of("eta")
    with pytest.raises(ValueError, match="eta goes with the loss 'eta'"):
        losses.of("hinge", 0.5)
    with pytest.raises(ValueError, match=r"eta is in \[0, 1\]"):
        losses.of("eta", 1.5)
    hinge = losses.of("hinge")
    for scores, y in [([0.0], 0), ([[0.0, 1.0]], 0), ([0.0, 1.0], [0]), (0.0, 0)]:
        with pytest.raises(ValueError, match="scores have shape"):
            hinge(scores, y)
    with pytest.raises(ValueError, match="need as many labels"):
        hinge(np.zeros((2, 3)), [0])
    for y in (2, -1, 0.5):
        with pytest.raises(ValueError, match="positions of labels, 0 to 1"):
            hinge([0.0, 1.0], y)
