"""The short form of bench/intervals.py: intervals hold in simulated logs."""

from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def simulation(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    import intervals

    return intervals


@pytest.mark.parametrize("n", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_intervals_hold(simulation, n):
    """Of 30 logs, more than 6 that are missed refute a level of 95 %."""
    for name, _, method, found in simulation.simulate(30, (n,), ("ips", "dr")):
        for kind in ("fixed", "anytime"):
            held = np.sum([getattr(one, kind) for one in found])
            assert held >= 24, (name, method, kind, held)
        if name == "badly covered":
            assert not any(one.number for one in found)


def test_what_is_not_true_is_refuted(simulation):
    """What the test above counts can be missed: accuracies that are claimed too high by 0.2 are."""
    world, rng = simulation.World.make(), np.random.default_rng(0)
    policy = world.policies()["uniform"]
    for _ in range(5):
        log = world.log(2000, rng)
        one = simulation.judge(log, policy, world.accuracy(policy, log) + 0.2, "ips")
        assert not one.fixed
        assert not one.anytime
