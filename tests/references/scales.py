"""Running scales, as `onebit.numerics.scales` and `columns` describe them, from all values."""

import numpy as np

FARTHEST, GOLDEN, NEVER = 4.0, (np.sqrt(5.0) - 1.0) / 2.0, 1e30


class Column:
    """Robust moments of a column; its values are kept with their weights."""

    def __init__(self):
        self.values, self.weights, self.start = [], [], None
        self.sample, self.n_stored, self.age, self.next = [], 0, 0.0, 0.0
        self.low, self.high, self.run = -NEVER, NEVER, []

    def count(self, value, weight):
        """Return whether the value is stored."""
        self.values.append(float(np.clip(value, self.low, self.high)))
        self.weights.append(weight)
        self.age += weight
        if self.age < self.next:
            return False
        if self.n_stored < 64:
            self.sample.append(value)
        else:
            self.sample[self.n_stored % 64] = value
        self.n_stored += 1
        if self.n_stored >= 64:
            self.next = (1 + 1 / 64) * self.age
        return True

    def moments(self):
        w, x = np.array(self.weights), np.array(self.values)
        mean = w @ x / w.sum()
        return w.sum(), mean, np.sqrt(w @ (x - mean) ** 2 / w.sum())

    def scale(self, robust):
        """Set the bounds; return location, deviation and reach, and whether they began anew."""
        self.low, self.high, anew = -NEVER, NEVER, False
        _, mean, deviation = self.moments()
        median = np.sort(self.sample)[(len(self.sample) - 1) // 2] if self.sample else 0.0
        distances = np.sort([abs(x - median) for x in self.sample if x != median])
        if robust and len(self.sample) >= 8 and distances.size >= 2:
            reach = 3 * distances[-1 - max(1, distances.size // 10)]
            self.low, self.high = median - reach, median + reach
            anew = not self.low <= mean <= self.high or deviation > reach
            if anew:
                self.values = list(np.clip(self.sample, self.low, self.high))
                self.weights = [1.0] * len(self.sample)
                _, mean, deviation = self.moments()
        deviation = deviation if deviation > 1e-9 * abs(mean) else 0.0
        return mean, deviation, max(self.high - mean, mean - self.low), anew


class Scales:
    def __init__(self, d):
        self.rounds, self.seen, self.settled = 0, 0, 0
        self.counts, self.logs, self.excess, self.power = np.zeros((4, d))
        self.exceeds, self.measurements = np.zeros((2, d), dtype=bool)
        self.n_exceeding = np.zeros(d)
        self.columns = {}
        self.locations, self.factors, self.constant = np.zeros(d), np.ones(d), 0.3
        self.limits = np.full(d, NEVER)
        self.unit_rounds, self.whole, self.vector = 0, 0, np.zeros(d, dtype=bool)

    def deviations(self, x):
        return self.factors * (x - self.locations)

    def scaled(self, x):
        z = self.deviations(x)
        z = np.where(np.abs(z) <= self.limits, np.clip(z, -FARTHEST, FARTHEST), 0.0)
        z = np.where(self.measurements | (x != 0.0), z, 0.0)
        if self.settled == 0 and z.any():
            self.constant = 0.3 * np.sqrt(np.mean(z[z != 0.0] ** 2))
        return np.append(z, self.constant)

    def observe(self, x, W):
        """Count x; change the weights W, of shape (K, d + 1), where scales are settled again."""
        self.rounds += 1
        weight = 1
        if self.rounds > 1000:
            weight = 4 if GOLDEN * (self.rounds - 1) % 1.0 < 0.25 else 0
        incredible = np.abs(self.deviations(x)) > self.limits
        if weight == 0 and not incredible.any():
            return
        self.seen += weight
        self.counts += weight * (x != 0.0)
        below = x[(x != 0.0) & (np.abs(x) < 1.0)]
        if below.size >= 32 and abs(np.sum(below**2) - 1.0) <= 0.05:
            self.unit_rounds += weight
        self.whole += weight * np.sum(np.abs(x) >= 1.0)
        self.n_exceeding += weight * (np.abs(x) > 1.0)
        self.exceeds = self.n_exceeding > 0
        size = np.where(self.measurements, 1.0, np.maximum(1.0, np.abs(x)))
        self.logs += weight * np.log(size)
        counted = np.minimum(size, self.largest_size())
        self.excess += weight * np.where(size > 1.0, counted**2 - 1.0, 0.0)
        self.power += weight * x**2
        for j, column in list(self.columns.items()):
            now = False
            if weight and column.count(x[j], weight) and column.age < 0.1 * self.seen:
                now = column.n_stored % 4 == 0
            if not incredible[j]:
                column.run = column.run[: max(0, len(column.run) - weight)]
            else:
                column.run.append(x[j])
                if len(column.run) == 8:
                    self.columns[j], now = Column(), True
                    for value in column.run:
                        self.columns[j].count(value, 1)
            if now:
                self.settle_feature(W, j, self.constant, 0.0)
        if self.seen > 1.1 * self.settled:
            self.settle(W, weight)

    def largest_size(self):
        return 32 * np.exp(self.logs / np.maximum(1, self.counts))

    def settle(self, W, weight):
        share = self.counts / self.seen
        small = ~self.exceeds
        often = self.n_exceeding > max(1.0, 0.05 * self.seen)
        self.vector = ~often & (share > 0.95)
        if self.vector.sum() < 32 or self.unit_rounds < 0.95 * self.seen:
            self.vector[:] = False
        has_vector = self.vector.any()
        for j in np.flatnonzero(share >= np.where(small, 0.95, 0.5)):
            if has_vector and not often[j]:
                continue
            if j not in self.columns and self.counts[j] >= (5 if small[j] else 2):
                self.columns[j] = Column()
        stays = share >= np.where(small, 0.85, 0.25)
        becomes = (share > np.where(small, 0.95, 0.5)) & (self.counts >= np.where(small, 10, 5))
        becomes &= [j in self.columns and bool(self.columns[j].values) for j in range(share.size)]
        self.measurements = np.where(self.measurements, stays, becomes)
        if has_vector:
            self.measurements &= often
        words = ~self.exceeds & ~self.measurements & (self.counts > 0)
        unit = 1.0
        if words.any() and not has_vector:
            unit = np.sqrt(self.power[words].sum() / self.counts[words].sum())
        constant = unit if self.measurements.any() else 0.3 * unit
        W[:, -1] *= self.constant / constant
        self.constant = constant
        chance = 3 * unit * np.sqrt(weight * (self.seen - self.settled))
        for j in np.flatnonzero(self.counts):
            self.settle_feature(W, j, unit, chance)
        self.settled = self.seen

    def settle_feature(self, W, j, unit, chance):
        location, factor, most, limit = 0.0, 1.0, 0.0, NEVER
        if self.measurements[j]:
            column = self.columns[j]
            location, deviation, reach, anew = column.scale(self.exceeds[j])
            factor = unit / deviation if deviation > 0.0 else 0.0
            limit = factor * reach
            steps = np.diff(column.sample) if column.n_stored <= 64 else np.array([-1.0, 1.0])
            counter = (steps >= 0).all() or (steps <= 0).all()
            if not anew and 2 * column.age > self.seen and not counter:
                most = chance / column.moments()[0]
        elif self.vector[j]:
            factor = np.sqrt(max(1.0, self.whole / self.seen))
        elif self.exceeds[j]:
            most_excess = (self.largest_size()[j] ** 2 - 1.0) * self.counts[j]
            self.excess[j] = min(self.excess[j], most_excess)
            factor = unit / np.sqrt(1.0 + self.excess[j] / self.counts[j])
        self.move(W, j, location, factor, most)
        self.locations[j], self.factors[j], self.limits[j] = location, factor, limit

    def move(self, W, j, location, factor, most):
        offset, before = self.factors[j] * (location - self.locations[j]), self.factors[j]
        if location == self.locations[j] and factor == before:
            return
        beyond = abs(offset) > FARTHEST or before > FARTHEST * factor > 0.0
        if beyond and (self.locations[j], before) == (0.0, 1.0):
            W[:, j] = 0.0
            return
        if (self.locations[j], before) == (0.0, 1.0):
            most = 1.0
        if abs(offset) <= most and before <= 2.0 * factor:
            W[:, -1] += W[:, j] * offset / self.constant
            W[:, j] *= before / factor if factor > 0.0 else 1.0
