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
