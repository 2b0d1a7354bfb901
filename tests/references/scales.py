"""Running scales, as `onebit.numerics.scales` describes them, from all rows so far."""

import numpy as np

FAR, FEW, MORE = 4.0, 5, 10
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


class Scales:
    def __init__(self, d):
        self.rounds, self.rows, self.words, self.settled = 0, np.zeros((0, d)), [], 0
        self.measurements = np.zeros(d, dtype=bool)
        self.locations, self.factors, self.constant = np.zeros(d), np.ones(d), 0.3

    def scaled(self, x):
        z = np.clip(self.factors * (x - self.locations), -FAR, FAR)
        z = np.where(self.measurements | (x != 0.0), z, 0.0)
        if self.settled == 0 and z.any():
            self.constant = 0.3 * np.sqrt(np.mean(z[z != 0.0] ** 2))
        return np.append(z, self.constant)

    def observe(self, x, W):
        """Count x; change the weights W, of shape (K, d + 1), where scales are settled again."""
        self.rounds += 1
        times = 1
        if self.rounds > 1000:
            times = 4 if GOLDEN * (self.rounds - 1) % 1.0 < 0.25 else 0
        self.rows = np.vstack([self.rows, *times * [x]])
        exceeds = (np.abs(self.rows) > 1.0).any(axis=0)
        self.words += times * list(x[(x != 0.0) & ~exceeds & ~self.measurements])
        if len(self.rows) > 1.1 * self.settled:
            self.settle(exceeds, W)

    def settle(self, exceeds, W):
        self.settled = len(self.rows)
        counts = (self.rows != 0.0).sum(axis=0)
        share, enough = counts / self.settled, counts >= np.where(exceeds, FEW, MORE)
        stays = share >= np.where(exceeds, 0.25, 0.85)
        becomes = enough & (share > np.where(exceeds, 0.5, 0.95))
        self.measurements = np.where(self.measurements, stays, becomes)
        unit = np.sqrt(np.mean(np.square(self.words))) if self.words else 1.0
        constant = unit if self.measurements.any() else 0.3 * unit
        W[:, -1] *= self.constant / constant
        self.constant = constant
        for j, column in enumerate(self.rows.T):
            location, factor = 0.0, 0.0
            seen = column[column != 0.0]
            if not (exceeds[j] or self.measurements[j]):
                factor = 1.0
            elif not self.measurements[j]:
                factor = unit / np.sqrt(max(1.0, np.mean(seen**2)))
            else:
                location = column.mean()
                if column.std() > 1e-9 * abs(seen.mean()):
                    factor = unit / column.std()
            offset = self.factors[j] * (location - self.locations[j])
            beyond = abs(offset) > FAR or self.factors[j] > FAR * factor > 0.0
            if beyond and (self.locations[j], self.factors[j]) == (0.0, 1.0):
                W[:, j] = 0.0
            elif abs(offset) <= 1.0 and self.factors[j] <= 2.0 * factor:
                W[:, -1] += W[:, j] * offset / constant
                W[:, j] *= self.factors[j] / factor if factor > 0.0 else 1.0
            self.locations[j], self.factors[j] = location, factor
