"""The short form of `onebit lab run intervals`: intervals hold in simulated logs."""

import numpy as np
import pytest

from onebit.lab.experiments import intervals


@pytest.mark.parametrize("n", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("covered", [True, False])
def test_intervals_hold(n, covered):
    """Of 30 logs, more than 6 that are missed refute a level of 95 %."""
    for (name, method), found in intervals.Coverage(n, covered, 30).outcomes(0).items():
        for kind in ("fixed", "anytime"):
            held = np.sum([getattr(one, kind) for one in found])
            assert held >= 24, (name, method, kind, held)
        if name == "badly covered":
            assert not any(one.number for one in found)


def test_what_is_not_true_is_refuted():
    """What the test above counts can be missed: accuracies that are claimed too high by 0.2 are."""
    world, rng = intervals.World.make(), np.random.default_rng(0)
    policy = world.policies()["uniform"]
    for _ in range(5):
        log = world.log(2000, rng)
        one = intervals.judge(log, policy, world.accuracy(policy, log) + 0.2, "ips")
        assert not one.fixed
        assert not one.anytime


def test_wrong_probabilities_are_noticed():
    assert intervals.Noticed("all 1", 300, 10).result(1) == {"noticed": 1.0}
    assert intervals.Noticed("true", 300, 10).result(1)["noticed"] <= 0.2
