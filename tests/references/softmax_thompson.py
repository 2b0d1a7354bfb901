"""SoftmaxThompson: one posterior, on one view of x."""

from references.one_bit_classifier import Column, Posterior, encoded, n_encoded
from references.scales import Scales


class SoftmaxThompson:
    """Scores are drawn from the posterior, and the highest wins."""

    def __init__(self, d, K, view, full, explore=None, a=None, forgetting=None):
        self.view, self.K, self.rounds = view, K, 0
        scaled = view != "features"
        self.scales = Scales(d) if scaled else None
        self.columns = [Column() for _ in range(d)]
        n = n_encoded(view, d)
        self.posterior = Posterior(n, K, full, explore, a, forgetting, scaled)
        self.W = self.posterior.W

    def look(self, x):
        z = x if self.scales is None else self.scales.scaled(x)
        self.posterior.look(encoded(self.view, x, z, self.columns, self.scales, self.K))

    def policy(self, x):
        self.look(x)
        return self.posterior.policy()

    def learn(self, x, label, p, correct):
        self.rounds += 1
        self.look(x)
        self.posterior.learn(label, correct, self.rounds)
        if self.scales is not None:
            # Only weights of the line change with the scales.
            rows = self.posterior.both if self.view == "line" else 0.0 * self.posterior.both
            self.scales.observe(x, rows)
        for column, value in zip(self.columns, x, strict=True):
            column.observe(value, self.rounds - 1)
        self.posterior.grow_older(self.rounds)
