"""The language models of `route_models.py`: questions, answers and thumbs, simulated by a table.

An answer is right with the log-odds ABILITY[model][kind] - 3 * difficulty, for a difficulty
from -1 to 1. What is right is known here only. One user in two sends a thumb, up to 200 questions
later, and one thumb in twenty is wrong. "m-medium" gets worse after half of the questions, and
"x-small", which is new, comes after two fifths.
"""

import random
from zlib import crc32

import numpy as np

PRICES = {"s-tiny": 0.02, "s-small": 0.06, "m-medium": 0.14, "l-large": 0.35, "l-reason": 0.50}
"""What an answer costs, where a right one is worth 1."""

NEW, NEW_PRICE = "x-small", 0.05

KINDS = ["chat", "code", "facts", "maths"]
ABILITY = {
    "s-tiny": [2.0, -2.0, 0.5, -2.5],
    "s-small": [2.5, 0.5, 1.0, -1.5],
    "m-medium": [2.5, 2.5, 1.5, 0.5],
    "l-large": [3.0, 3.5, 3.5, 1.5],
    "l-reason": [3.0, 4.0, 3.0, 4.5],
    "x-small": [2.0, 1.0, 3.0, -1.0],
}
WORSE = {"m-medium": [2.0, -1.5, 1.0, -1.5]}
"""Its ability after half of the questions."""

WORDS = {
    "chat": "birthday greeting poem story joke letter toast invitation apology thanks speech song",
    "code": "function class loop query index compiler thread socket parser test merge array",
    "facts": "capital river century treaty author planet element king border language war museum",
    "maths": "integral proof matrix prime limit series angle graph group equation bound measure",
}
EASY = "short simple basic quick plain small first everyday"
HARD = "rigorous concurrent obscure nested general optimal ambiguous adversarial"
FILLER = "please could you write me a the for with about explain give what is"


class Assistant:
    """Questions of four kinds, of any difficulty, for models that answer right or wrong."""

    def __init__(self, n, seed):
        self.n, self.change, self.arrival = n, n // 2, 2 * n // 5
        self.models, self.prices = list(PRICES), dict(PRICES)
        self.utility, self._rng, self._due = [], random.Random(seed), {}

    def questions(self):
        """Yield the questions; what they are about is in `kind`, for those who are told."""
        rng = self._rng
        for self.now in range(self.n):
            if self.now == self.arrival:
                self.models, self.prices = [*self.models, NEW], self.prices | {NEW: NEW_PRICE}
            self.kind, self.difficulty = rng.choice(KINDS), rng.uniform(-1.0, 1.0)
            hard = sum(rng.random() < (1.0 + self.difficulty) / 2.0 for _ in range(4))
            words = rng.sample(WORDS[self.kind].split(), 3) + rng.sample(FILLER.split(), 4)
            words += rng.sample(HARD.split(), hard) + rng.sample(EASY.split(), 4 - hard)
            yield " ".join(rng.sample(words, len(words)))

    def chance(self, model):
        """Return the probability that a model's answer to the last question is right."""
        ability = WORSE.get(model, ABILITY[model]) if self.now >= self.change else ABILITY[model]
        return 1.0 / (1.0 + np.exp(3.0 * self.difficulty - ability[KINDS.index(self.kind)]))

    def answer(self, model, ticket):
        """Let a model answer the last question; a thumb may come later, with the same ticket."""
        right = self._rng.random() < self.chance(model)
        self.utility.append(right - self.prices[model])
        if self._rng.random() < 0.5:
            thumb = right if self._rng.random() < 0.95 else not right
            due = self.now + self._rng.randrange(200)
            self._due.setdefault(due, []).append((ticket, thumb))

    def thumbs(self):
        """Return the thumbs that came since the last question, with their tickets."""
        return self._due.pop(self.now, [])


_VECTORS = {}


def embedding(text):
    """Return the mean of a fixed vector for each word, of unit length, and a constant."""
    for word in text.split():
        if word not in _VECTORS:
            _VECTORS[word] = np.random.default_rng(crc32(word.encode())).normal(size=32)
    x = sum(_VECTORS[word] for word in text.split())
    return np.append(x / np.linalg.norm(x), 1.0)
