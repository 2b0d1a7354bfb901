"""OneBitClassifier with descriptions of labels, as `onebit.numerics.descriptions` says."""

import numpy as np
from scipy.special import softmax

from references.one_bit_classifier import OneBitClassifier, Posterior


class DescribedPosterior(Posterior):
    """The line, whose weights have the mean theta d_k before the first round."""

    def describe(self, D):
        """D has a row for each label, zero for those without a description."""
        self.given, self.has = D, D.any(axis=1)
        units = units_of(D)[self.has]
        pairs = (units @ units.T)[~np.eye(len(units), dtype=bool)]
        likeness = pairs.mean() if pairs.size else 0.0
        unit = max(1.0, np.log(self.K)) / max(1 - likeness, 0.05)
        self.theta, self.variance, self.first_variance = 2 * unit, unit**2, unit**2
        self.narrowing, self.H, self.n = 1.0, 0.0, 0
        self.baseline, self.slope, self.weight = self.theta * likeness, likeness, float(len(units))
        self.D = units_of(D)

    def renew(self, locations, factors):
        self.D = units_of(np.where(self.given != 0, factors * (self.given - locations), 0.0))

    def look(self, x):
        super().look(x)
        self.sim = self.D @ self.x[: self.D.shape[1]]
        self.worth = np.where(self.has, self.theta * self.sim, self.baseline)
        self.slopes = np.where(self.has, self.sim, self.slope)
        self.s = self.s + self.worth
        self.p = softmax(self.c * self.s)

    def learn(self, label, correct, rounds):
        q, others = self.p[label], np.delete(self.p, label)
        c = self.c * self.slopes
        e = c[label] - others @ np.delete(c, label) / others.sum()
        gradient = (others.sum() if correct else -q) * e
        self.variance = 1 / (1 / self.variance + q * others.sum() * e**2)
        most = np.sqrt(self.variance)
        step = np.clip(gradient * self.variance, -most, most)
        super().learn(label, correct, rounds)
        self.count()
        self.theta += step
        self.baseline += step * self.slope
        self.narrow()

    def count(self):
        """Count the last x in H, and its pairs with labels that are not right in b."""
        p = softmax(self.worth)
        H = -np.sum(p * np.log(np.maximum(p, 1e-300)))
        self.n = min(self.n + 1, 100)
        self.H += (H - self.H) / self.n
        weights, sim = (1 - p)[self.has], self.sim[self.has]
        self.weight = min(self.weight + weights.sum(), 100 * weights.size)
        old = self.weight - weights.sum()
        values = np.exp(self.theta * sim)
        e_b = (old * np.exp(self.baseline) + weights @ values) / self.weight
        moment = old * np.exp(self.baseline) * self.slope + weights @ (values * sim)
        self.slope, self.baseline = moment / self.weight / e_b, np.log(e_b)

    def narrow(self):
        wanted = max(1.0, (max(1.0, np.log(self.K)) / max(1.0, self.H)) ** 2)
        if not self.narrowing / 1.2 < wanted < self.narrowing * 1.2:
            if not self.full:
                before = self.A.copy()
                self.A[self.has] += (wanted - self.narrowing) * self.first
                self.W *= before / self.A
            self.narrowing = wanted

    def forget(self, classes):
        super().forget(classes)
        if not self.full:
            classes = np.intersect1d(classes, np.flatnonzero(self.has))
            self.A[classes] = self.narrowing * self.first


def units_of(D):
    return D / np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1e-150)


class Described(OneBitClassifier):
    def __init__(self, d, K, full, D, **given):
        super().__init__(d, K, full, **given)
        more = {name: given.get(name) for name in ("explore", "a", "forgetting")}
        standardize = given.get("standardize", True)
        self.line = DescribedPosterior(d + standardize, K, full, *more.values(), standardize)
        self.line.describe(D)
        self.members[0], self.inputs = self.line, self.line.W
        self.d, self.settled = d, 0

    def fill_weights(self):
        self.W = self.line.W[:, : self.d] + self.line.theta * self.line.D

    def learn(self, x, label, p, correct):
        super().learn(x, label, p, correct)
        if self.scales is not None and self.scales.settled != self.settled:
            self.settled = self.scales.settled
            self.line.renew(self.scales.locations, self.scales.factors)
        self.fill_weights()

    def forget(self, changed, everything):
        super().forget(changed, everything)
        if everything:
            self.line.variance = self.line.first_variance

    def compare_former(self, q, rest, label, correct):
        if correct and self.changes.evidence == 0:
            self.evidence_of_former = 0.0
            return
        p = 0.0
        for w, member in zip(self.says, self.members, strict=True):
            of_description = self.line.worth if member is self.line else 0.0
            p = p + w * softmax(member.former @ member.x + of_description)
        then = self.changes.mistake(p[label], np.delete(p, label).sum())
        now = self.changes.mistake(q, rest)
        more = np.log((1 - then) / (1 - now) if correct else then / now)
        self.evidence_of_former = max(0.0, self.evidence_of_former + more)
