"""OneBitClassifier where each label is right on its own: LogisticThompson on several views."""

import numpy as np

from references.logistic_thompson import LogisticThompson, policy_of


class IndependentMixture:
    """Members are weighed by the bits that they foresaw, and the score of a label drawn once."""

    def __init__(self, d, K, full):
        self.members = [LogisticThompson(d, K, view, view_full) for view, view_full in full.items()]
        self.trust = np.full(len(self.members), 1 / len(self.members))
        self.W = self.members[0].W[:, :d]

    @property
    def says(self):
        heard = np.where(self.trust >= 0.01, self.trust, 0.0)
        return heard / heard.sum()

    def right(self, x):
        """The probability that each label is right."""
        return sum(w * m.all_right(x) for w, m in zip(self.says, self.members, strict=True))

    def policy(self, x):
        variances = sum(
            w * np.square(member.deviations(x))
            for w, member in zip(self.says, self.members, strict=True)
        )
        return policy_of(self.right(x), np.sqrt(variances))

    def learn(self, x, label, p, correct):
        q = np.array([m.all_right(x)[label] for m in self.members]).clip(1e-3, 1 - 1e-3)
        for member in self.members:
            member.learn(x, label, p, correct)
        self.trust = self.trust * q ** float(correct) * (1 - q) ** (1 - float(correct))
        self.trust = (1 - 1e-4) * self.trust / self.trust.sum() + 1e-4 / self.trust.size
