"""OneBitClassifier, by its notes, with explicit precision matrices and general quadrature."""

from itertools import combinations

import numpy as np
from scipy.special import expit, ndtr, softmax

from references.scales import Scales


def winning_probabilities(means, deviations):
    """P(draw k is the largest), by the trapezoidal rule in each class's own scale."""
    means, deviations = np.asarray(means), np.asarray(deviations)
    if not (deviations > 0).all():
        return np.eye(means.size)[np.argmax(means)]
    steps = int(np.ceil(40 * (deviations / deviations.min()).max()))
    t = np.linspace(-9.0, 9.0, 2 * steps + 1)
    u = means[:, None] + deviations[:, None] * t
    below = ndtr((u[:, None] - means[:, None]) / deviations[:, None])
    below[np.arange(means.size), np.arange(means.size)] = 1.0
    p = np.trapezoid(below.prod(axis=1) * np.exp(-(t**2) / 2), t)
    return p / p.sum()


def mean_over_bit(correct, if_right, if_wrong):
    """For a bit one of both; for a grade, the mean over a bit that is right so often."""
    return float(correct) * if_right + (1 - float(correct)) * if_wrong


class Changes:
    """Page's sums of likelihood ratios: of all bits, of each label's, of those where v is small."""

    alarm, alarm_of_label, alarm_of_some, known = np.log(1e7), np.log(1e12), np.log(1e3), 0.3

    def __init__(self, K):
        self.mistaken = {z: max(0.5, 1 / (1 + np.exp(z))) for z in range(-4, 8)}
        self.counts = dict.fromkeys(self.mistaken, 10.0)
        self.variance, self.began, self.some_changed = 0.0, None, None
        self.evidence_of, self.mistakes, self.expected = np.zeros((3, K))
        self.begin(np.arange(K))
        self.begin_all()

    def begin(self, labels):
        self.evidence_of[labels], self.mistakes[labels], self.expected[labels] = 0.0, 2.0, 0.5

    def begin_all(self):
        self.evidence = 0.0
        self.familiar, self.familiar_mistaken, self.n_familiar = 0.0, 0.5, 10.0

    def level(self, q, rest):
        return int(np.clip(np.floor(np.log(q / rest)), -4, 7))

    def mistake(self, q, rest):
        z = self.level(q, rest)
        return (self.counts[z] * self.mistaken[z] + 1) / (self.counts[z] + 2)

    def changed(self, q, rest, v, label, correct, rounds):
        """Return the labels that changed, and whether everything did."""
        e, z = self.mistake(q, rest), self.level(q, rest)
        odds = self.mistakes[label] / self.expected[label] * e / (1 - e)
        e_label = odds / (1 + odds)
        self.evidence = max(0.0, self.evidence + self.ratio(e, 0.8, correct))
        if e_label < self.known:
            more = self.evidence_of[label] + self.ratio(e_label, 0.8, correct)
            self.evidence_of[label] = max(0.0, more)
        self.mistaken[z] += 2 / (self.counts[z] + 2) * ((1 - correct) - self.mistaken[z])
        self.counts[z] += 1
        self.mistakes[label] += 1 - correct
        self.expected[label] += e
        if v <= self.variance:
            n, share = self.n_familiar, self.familiar_mistaken
            e_familiar = max(0.2, (n * share + 1) / (n + 2))
            self.familiar = max(0.0, self.familiar + self.ratio(e_familiar, 0.5, correct))
            self.familiar_mistaken += 2 / (n + 2) * ((1 - correct) - share)
            self.n_familiar += 1
        self.variance += 2 / (rounds + 2) * (v - self.variance)
        is_right = correct == 1
        found, everything = (np.arange(0), False) if is_right else self.found(label, rounds)
        self.begin(found)
        if everything:
            self.began = rounds
            self.begin_all()
        return found, everything

    def found(self, label, rounds):
        every = np.arange(self.mistakes.size)
        young = self.began is not None and rounds - self.began < 500
        all_changed = max(self.evidence, self.familiar) > self.alarm and not young
        one_changed = self.evidence_of[label] > self.alarm_of_label
        some = self.evidence_of > self.alarm_of_some
        soon = self.some_changed is not None and rounds - self.some_changed < 300
        others_right = self.evidence_of.sum() > self.evidence + self.alarm_of_some
        if all_changed and not (others_right and some.any()):
            self.some_changed = None
            return every, True
        if all_changed or one_changed:
            self.some_changed = rounds
        elif not (soon and some[label]):
            return every[:0], False
        if others_right:
            self.evidence = self.familiar = 0.0
        return every[some], False

    def ratio(self, e, share, correct):
        e_changed = e + share * (1 - e)
        return mean_over_bit(correct, np.log((1 - e_changed) / (1 - e)), np.log(e_changed / e))


class Rates:
    """Beta beliefs: of each label, and of the model and a constant label where these differ."""

    def __init__(self, K):
        self.right, self.tried = np.zeros(K), np.zeros(K)
        self.bits = []

    def moments(self, right, tried, alpha, beta):
        alpha, beta = alpha + right, beta + tried - right
        n = alpha + beta
        return alpha / n, alpha * beta / (n**2 * (n + 1))

    def constant(self):
        mean, variance = self.moments(self.right, self.tried, 1, self.right.size - 1)
        return int(np.argmax(mean + 2 * np.sqrt(variance)))

    def share(self):
        """Of n rounds in which the two differed, round s has the weight s (s + 1) / (n (n + 1))."""
        n, sums = len(self.bits), np.zeros((2, 2))
        if n == 0:
            return 0.0
        for s, (way, correct) in enumerate(self.bits, start=1):
            if way is not None:
                sums[way] += (s * (s + 1)) / (n * (n + 1)) * np.array([correct, 1])
        m, v = self.moments(*sums[0], 4, 1)
        c, w = self.moments(*sums[1], 1, self.right.size - 1)
        return ndtr((min(c, 1 - m) - m) / np.sqrt(v + w))

    def hedged(self, p):
        return p + self.share() * (np.eye(p.size)[self.constant()] - p)

    def count(self, best, label, correct):
        constant = self.constant()
        if best != constant:
            self.bits.append(({best: 0, constant: 1}.get(label), correct))
        self.right[label] += correct
        self.tried[label] += 1
        if self.tried[label] == 1000:
            self.right[label] /= 2
            self.tried[label] /= 2

    def forget(self, labels, everything):
        self.right[labels] = self.tried[labels] = 0
        if everything:
            self.bits = []


class Posterior:
    """Softmax of W x, with a precision matrix, or its diagonal, for each class; x normalised."""

    young = 1000.0

    def __init__(self, n, K, full, explore, a, forgetting, standardize=True):
        self.K, self.full = K, full
        default = (0.05 if full else 0.035) * max(1.0, np.log(K))
        self.explore = default if explore is None else explore
        self.rho = 0.45 if full else 0.3
        prior, self.kappa, self.m, phi = (0.3, 0.25, 2.0, 0.5) if full else (0.35, 0.03, 3.0, 0.0)
        self.sure, self.negligible = (1e-3, 1e-6) if full else (2e-2, 1e-3)
        self.eta = 0.0 if full else 0.1
        self.tau = 30 if full else 0
        self.phi = phi if forgetting is None else forgetting
        self.a = prior / max(1.0, np.log(K)) ** 2 if a is None else a
        self.first = self.a * (np.eye(n) if full else np.ones(n))
        if full and standardize:
            self.first[-1, -1] /= 4
        self.A = np.array([self.first] * K)
        self.both = np.zeros((2 * K, n))
        self.W, self.former = self.both[:K], self.both[K:]

    def look(self, x):
        """Compute all that is known of x."""
        self.x = x / np.linalg.norm(x) if x.any() else x
        if self.full:
            self.Sx = np.linalg.inv(self.A) @ self.x
        else:
            self.Sx = self.x / self.A
        self.s, self.uncapped = self.W @ self.x, self.Sx @ self.x
        self.v = np.minimum(self.uncapped, 1 / self.a)
        self.c = 1 / np.sqrt(1 + self.kappa * self.v)
        self.p = softmax(self.c * self.s)

    def widths(self):
        """Of the draws, in deviations: wide where no label is likely, of labels hardly known."""
        s, v = self.s, self.v
        best = highest(s)
        z = (s - s[best]) / np.sqrt(1 + self.kappa * (v + v[best]))
        wrong = 1 - 1 / np.exp(z).sum()
        known_less = 1 - v[best] / np.maximum(v, v[best]) if v[best] > 0 else np.sign(v)
        more = max(0.0, 1 - self.explore) if self.explore > 0 else 0.0
        return self.explore + more * (wrong * known_less) ** 6

    def policy(self):
        return winning_probabilities(self.s, self.widths() * np.sqrt(self.v))

    def learn(self, label, correct, rounds):
        p, c, v = self.p, self.c, self.v
        q, rest = p[label], np.delete(p, label).sum()
        if correct == 1 and rest < self.sure:
            return
        if_right = p - np.eye(self.K)[label]
        if_right[label] = -rest
        if rest < self.sure:
            if_right = np.zeros(self.K)
        unforeseen = self.eta / (self.eta + rest)
        if_wrong = -q * ((1 - unforeseen) * p / rest + unforeseen / (self.K - 1))
        if_wrong[label] = max(q, self.rho * expit(c[label] * self.s[label]))
        g = mean_over_bit(correct, if_right, if_wrong)
        f = q * p**2 / rest
        f[label] = q * rest
        f *= self.m * (rounds / (rounds + self.tau))
        for k in range(self.K):
            share = v[k] / self.uncapped[k] if v[k] > 0 else 1.0
            self.W[k] -= share * c[k] * g[k] * self.Sx[k]
            information = c[k] ** 2 * f[k]
            if information * self.uncapped[k] > self.negligible:
                self.A[k] += information * (np.outer(self.x, self.x) if self.full else self.x**2)

    def grow_older(self, t):
        age = (1 + t / self.young) / (1 + (t - 1) / self.young)
        self.A /= age**self.phi

    def exchange(self):
        self.both[:] = np.roll(self.both, self.K, axis=0)

    def forget(self, classes):
        self.W[classes] = 0.0
        self.A[classes] = self.first


def highest(scores):
    """The first of the labels with the highest score, of those that tie but for rounding."""
    return int(np.flatnonzero(scores > scores.max() - 1e-12)[0])


class Column:
    """The bins of one column: its first fifteen values, or eighths between quantiles."""

    def __init__(self):
        self.levels, self.others, self.edges, self.sample = [], 0, None, []

    def code(self, value):
        if self.edges is not None:
            return int((self.edges < value).sum())
        return self.levels.index(value) if value in self.levels else 15

    def observe(self, value, rounds):
        stride, end = 1, 128
        while rounds >= end:
            stride, end = (3 if stride == 1 else 2 * stride - 1), 2 * end
        if rounds % stride == 0:
            self.sample = [*self.sample, value][-128:]
        t = rounds + 1
        if self.edges is not None:
            if t in (32, 64, 128, 256) or (t > 256 and np.log2(t).is_integer() and self.moved()):
                self.edges = self.quantiles()
        elif value not in self.levels:
            if len(self.levels) < 15:
                self.levels.append(value)
            else:
                self.others += 1
                if self.others > t / 16:
                    self.edges = self.quantiles()

    def quantiles(self):
        values, n = np.sort(self.sample), len(self.sample)
        return np.array([values[[i * n // 8 - 1, i * n // 8]].mean() for i in range(1, 8)])

    def moved(self):
        new, old = self.quantiles(), self.edges
        return (new[1:] < old[:-1]).any() or (new[:-1] > old[1:]).any()


def triples(d, K):
    """The triples of columns, unless they are too many."""
    found = list(combinations(range(d), 3))
    return found if len(found) * K <= 2_400 else []


def n_encoded(view, d):
    """How many inputs a view has."""
    return {
        "features": d,
        "line": d + 1,
        "cells": 1 + d + 16 * d + 256 * (d * (d - 1) // 2) + 4096 * len(triples(d, 2)),
        "products": d + d * (d + 1) // 2 + 1,
    }[view]


def encoded(view, x, z, columns, scales, K):
    """What a view makes of x, whose scaled features are z, with a constant."""
    if view == "cells":
        return cells(x, z[:-1], columns, scales, K)
    if view == "products":
        i, j = np.triu_indices(x.size)
        m = np.count_nonzero((x != 0) | scales.measurements)
        weight = np.sqrt(2 / (m + 1))
        return np.r_[z[:-1], weight * z[i] * z[j], z[-1]]
    return z


def cells(x, z, columns, scales, K):
    """A constant, the scaled features, an indicator for each bin, pair of bins and triple of bins.

    Of more than 64 columns, only measurements have one, and all that is not zero. There are rows
    for triples if there are any for two labels.
    """
    codes = [column.code(value) for column, value in zip(columns, x, strict=True)]
    listed = (x != 0) | scales.measurements.astype(bool) | (x.size <= 64)
    one_hot = np.eye(16)[codes] * listed[:, None]
    i, j = np.triu_indices(x.size, 1)
    both = np.einsum("pa,pb->pab", one_hot[i], one_hot[j])
    length, n = np.linalg.norm(z), listed.sum()
    pairs = n * (n - 1) / 2
    few = pairs <= 16_384 // K
    coarse = np.eye(16)[coarse_codes(codes, columns)]
    of_three = triples(x.size, K)
    rows = np.zeros((len(triples(x.size, 2)), 16, 16, 16))
    for row, (a, b, c) in zip(rows, of_three, strict=False):
        row += np.einsum("a,b,c->abc", coarse[a], coarse[b], coarse[c])
    return np.concatenate(
        [
            [np.sqrt(0.05)],
            np.sqrt(0.4) * z / length if length > 0 else z,
            np.sqrt(0.3 / max(1, n)) * one_hot.ravel(),
            few * np.sqrt(0.25 / max(1, pairs)) * both.ravel(),
            np.sqrt(0.25 / max(1, len(of_three))) * rows.ravel(),
        ]
    )


def coarse_codes(codes, columns):
    """In triples, two neighbouring bins of a numeric column are one."""
    pairs = zip(codes, columns, strict=True)
    return [code if column.edges is None else code // 2 for code, column in pairs]


class Pairs:
    """Two or three columns at a time: how often labels were right, over what was expected.

    Each cell has two rows: what was right, and what the members expected.
    """

    def __init__(self, d, K):
        pairs = list(combinations(range(d), 2))
        if len(pairs) * K > 8_192 or d > 64:
            pairs = []
        self.K, self.names = K, [*pairs, *triples(d, K)]
        self.exchange()

    def look(self, codes, coarse, others):
        self.others = others
        by_size = {2: codes, 3: coarse}
        keys = [(name, tuple(by_size[len(name)][j] for j in name)) for name in self.names]
        self.cells = [self.tables.setdefault(key, np.zeros((2, self.K))) for key in keys]
        ratios = [(2 + right) / (2 + expected) for right, expected in self.cells]
        self.r = [ratio / (others * ratio).sum() for ratio in ratios]
        self.mean = sum(w * r for w, r in zip(self.trust, self.r, strict=True))

    @property
    def say(self):
        return self.weight if self.names and self.weight >= 0.01 else 0.0

    @property
    def factor(self):
        return 1 - self.say + self.say * self.mean

    def learn(self, p, label, correct):
        if not self.names:
            return

        def of_bit(q):
            q = np.clip(q, 1e-3, 1 - 1e-3)
            return q**correct * (1 - q) ** (1 - correct)

        q = self.others[label]
        own, others = self.weight * of_bit(q * self.mean[label]), (1 - self.weight) * of_bit(q)
        self.weight = (1 - 1e-4) * own / (own + others) + 0.5e-4
        self.trust = self.trust * [of_bit(q * r[label]) for r in self.r]
        self.trust = (1 - 1e-4) * self.trust / self.trust.sum() + 1e-4 / self.trust.size
        is_label = np.arange(self.K) == label
        right = mean_over_bit(correct, is_label, np.where(is_label, 0, p) / max(1 - p[label], 1e-3))
        for cell in self.cells:
            cell += [right, self.others]

    def exchange(self):
        self.weight, self.tables = 0.5, {}
        self.trust = np.full(len(self.names), 1 / max(1, len(self.names)))

    def forget(self, labels):
        for cell in self.tables.values():
            cell[:, labels] = 0.0


class Neighbours:
    """The last examples with their bits; the four nearest correct what the members say."""

    def __init__(self, d, K, room=None):
        self.K, self.room = K, min(4096, 100_000 // d) if room is None else room
        self.cases, self.now, self.former, self.newest, self.weight = [], 0, 0, 0, 0.5

    def look(self, z, others):
        self.z, self.others = z, others
        right, wrong = np.zeros((2, self.K))
        seen = [case for case in self.cases if case["era"] == self.now]
        for weight, case in zip(self.weights(seen), seen, strict=True):
            right[case["label"]] += weight * case["correct"]
            wrong[case["label"]] += weight * (1 - case["correct"])
        b = (2 * others + right) / (2 * others + right).sum()
        self.counts = right.copy()
        for j in range(self.K):
            rest = np.where(np.arange(self.K) == j, 0.0, b)
            self.counts += wrong[j] * rest / max(1 - b[j], 1e-3)
        self.p = (2 * others + self.counts) / (2 + self.counts.sum())

    def weights(self, seen):
        """Of the examples, by their squared distances; zero beyond the four nearest."""
        squares = np.array([((case["z"] - self.z) ** 2).sum() for case in seen])
        if not squares.size:
            return squares
        fourth = np.sort(squares)[:4][-1] * (1 + 1e-9) + 1e-12
        further = squares[squares > fourth]
        radius = further.min() if further.size else 2 * fourth
        weights = np.maximum(0.0, 1 - squares / radius)
        return weights * min(1.0, 4 / weights.sum())

    @property
    def say(self):
        return self.weight if self.weight >= 0.01 else 0.0

    def learn(self, label, correct):
        own, others = np.clip([self.p[label], self.others[label]], 1e-3, 1 - 1e-3)
        own = self.weight * own**correct * (1 - own) ** (1 - correct)
        others = (1 - self.weight) * others**correct * (1 - others) ** (1 - correct)
        self.weight = (1 - 1e-4) * own / (own + others) + 0.5e-4
        case = {"z": self.z, "label": label, "correct": correct, "era": self.now}
        self.cases = [*self.cases, case][-self.room :]

    def exchange(self):
        self.now, self.former = self.former, self.now

    def forget(self, labels, everything):
        if everything:
            self.newest += 1
            self.now, self.weight = self.newest, 0.5
            return
        for case in self.cases:
            if case["era"] == self.now and case["label"] in labels:
                case["era"] = None


class OneBitClassifier:
    """A mixture of posteriors: of the line, of cells and of products, weighed by the bits."""

    def __init__(
        self,
        d,
        K,
        full,
        explore=None,
        a=None,
        forgetting=None,
        floor=0.0,
        standardize=True,
        views="line",
    ):
        self.K, self.floor = K, floor
        given = (explore, a, forgetting)
        self.scales = Scales(d) if standardize else None
        self.line = Posterior(d + standardize, K, full, *given, standardize)
        self.members, self.columns = [self.line], [Column() for _ in range(d)]
        if views != "line":
            self.members.append(Posterior(n_encoded("cells", d), K, False, *given))
        if views == "products":
            self.members.append(Posterior(n_encoded("products", d), K, True, *given))
        self.trust = np.full(len(self.members), 1 / len(self.members))
        several = len(self.members) > 1
        self.pairs = Pairs(d, K) if several else None
        self.neighbours = Neighbours(d, K) if several else None
        self.W, self.inputs = self.line.W[:, :d], self.line.W
        self.has_former, self.evidence_of_former, self.rounds = False, 0.0, 0
        self.t, self.seen, self.changes, self.rates = 0, [], Changes(K), Rates(K)

    @property
    def parts(self):
        return [*self.members, *([] if self.neighbours is None else [self.pairs, self.neighbours])]

    def look(self, x):
        z = x if self.scales is None else self.scales.scaled(x)
        for name, member in zip(("line", "cells", "products"), self.members, strict=False):
            member.look(encoded(name, x, z, self.columns, self.scales, self.K))
        if self.neighbours is not None:
            codes = [column.code(value) for column, value in zip(self.columns, x, strict=True)]
            self.pairs.look(codes, coarse_codes(codes, self.columns), self.of_members())
            self.neighbours.look(z[:-1], self.corrected())

    @property
    def says(self):
        heard = np.where(self.trust >= 0.01, self.trust, 0.0)
        return heard / heard.sum()

    def of_members(self):
        return sum(w * member.p for w, member in zip(self.says, self.members, strict=True))

    def corrected(self):
        """What members say, corrected by pairs."""
        p = self.of_members()
        return p if self.pairs is None else p * self.pairs.factor

    @property
    def local(self):
        """The weight that the word of neighbours has."""
        return 0.0 if self.neighbours is None else self.neighbours.say

    @property
    def weights(self):
        """Of all members, those that have no say included."""
        if self.neighbours is None:
            return self.trust
        of_pairs, local = self.pairs.weight, self.neighbours.weight
        others = np.r_[(1 - of_pairs) * self.trust, of_pairs] if self.pairs.names else self.trust
        return np.r_[(1 - local) * others, local]

    def mixture(self):
        p = self.corrected()
        return p if self.neighbours is None else p + self.local * (self.neighbours.p - p)

    def policy(self, x):
        self.look(x)
        if self.line.explore > 0:
            means, variances = np.zeros((2, self.K))
            for w, member in zip(self.says, self.members, strict=True):
                means += w * member.s
                variances += w * member.widths() ** 2 * member.v
            if self.pairs is not None:
                means = means + np.log(self.pairs.factor)
            if self.local > 0:
                means = (1 - self.local) * means + self.local * np.log(self.neighbours.p)
            p = self.rates.hedged(winning_probabilities(means, np.sqrt(variances)))
        elif len(self.members) > 1:
            p = np.eye(self.K)[highest(self.mixture())]
        else:
            p = self.line.policy()
        return self.floor + (1 - self.K * self.floor) * p

    def learn(self, x, label, p, correct):
        correct = float(correct)
        self.rounds += 1
        self.look(x)
        mixed = self.mixture()
        q, rest = mixed[label], np.delete(mixed, label).sum()
        best = highest(self.line.s if len(self.members) == 1 else mixed)
        of_bit = np.clip([member.p[label] for member in self.members], 1e-3, 1 - 1e-3)
        self.trust = self.trust * of_bit**correct * (1 - of_bit) ** (1 - correct)
        self.trust = (1 - 1e-4) * self.trust / self.trust.sum() + 1e-4 / len(self.trust)
        for member in self.members:
            member.learn(label, correct, self.rounds)
        if self.neighbours is not None:
            self.pairs.learn(mixed, label, correct)
            self.neighbours.learn(label, correct)
        self.rates.count(best, label, correct)
        if self.has_former:
            self.compare_former(q, rest, label, correct)
        v = self.line.v[label]
        found, everything = self.changes.changed(q, rest, v, label, correct, self.rounds - 1)
        if found.size:
            self.forget(found, everything)
        if self.scales is not None:
            self.scales.observe(x, self.line.both)
        for column, value in zip(self.columns, x, strict=True):
            column.observe(value, self.rounds - 1)
        self.t += 1
        for member in self.members:
            member.grow_older(self.t)

    def compare_former(self, q, rest, label, correct):
        if correct == 1 and self.changes.evidence == 0:
            self.evidence_of_former = 0.0
            return
        pairs = zip(self.says, self.members, strict=True)
        p = sum(w * softmax(member.former @ member.x) for w, member in pairs)
        then = self.changes.mistake(p[label], np.delete(p, label).sum())
        now = self.changes.mistake(q, rest)
        more = mean_over_bit(correct, np.log((1 - then) / (1 - now)), np.log(then / now))
        self.evidence_of_former = max(0.0, self.evidence_of_former + more)

    def forget(self, changed, everything):
        returned = everything and self.evidence_of_former > np.log(100)
        names = [None] if everything else changed.tolist()
        self.seen += [(self.rounds, name, returned) for name in names]
        self.rates.forget(changed, everything)
        if everything:
            for member in self.parts:
                member.exchange()
            self.has_former, self.evidence_of_former, self.t = True, 0.0, 0
        if returned:
            return
        if everything:
            self.trust[:] = 1 / len(self.trust)
        for member in self.members:
            member.forget(changed)
        if self.neighbours is not None:
            self.pairs.forget(changed)
            self.neighbours.forget(changed, everything)
