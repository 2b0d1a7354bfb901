"""The language models of `route_models.py`: questions, answers and thumbs, simulated by a table.

A model has an ability, and a question a difficulty; an answer is right with the log-odds ability -
difficulty (the model of Rasch). What is right is known here only. One user in two sends a thumb,
up to 200 questions later, and one thumb in twenty is wrong. "medium" gets worse after half of the
questions, and "flash", which is new, comes after seven tenths.
"""

import random
from zlib import crc32

import numpy as np

PRICES = {"tiny": 0.01, "small": 0.04, "medium": 0.12, "large": 0.30, "reasoner": 0.50}
"""What an answer costs, where a right one is worth 1."""

ABILITY = {"tiny": -6, "small": -4, "medium": -1, "large": 2, "reasoner": 8, "flash": 1}
WORSE = {"medium": -10}
"""Ability after half of the questions."""

NEW, NEW_PRICE = "flash", 0.08

SPREAD = 12.0
KINDS = {"facts": -3, "chat": 0, "code": 3, "maths": 6}
"""Their mean difficulties; within a kind, questions differ by up to SPREAD either way."""

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
        self.n, self.change, self.arrival = n, n // 2, 7 * n // 10
        self.models, self.prices = list(PRICES), dict(PRICES)
        self.utility, self._rng, self._due = [], random.Random(seed), {}

    def questions(self):
        """Yield the questions; what they are about is in `kind`, for those who are told."""
        rng = self._rng
        for now in range(self.n):
            self.now = now
            if self.now == self.arrival:
                self.models, self.prices = [*self.models, NEW], self.prices | {NEW: NEW_PRICE}
            self.kind, harder = rng.choice(list(KINDS)), rng.uniform(-1.0, 1.0)
            self.difficulty, hard = KINDS[self.kind] + SPREAD * harder, round(4.0 + 4.0 * harder)
            words = rng.sample(WORDS[self.kind].split(), 3) + rng.sample(FILLER.split(), 4)
            words += rng.sample(HARD.split(), hard) + rng.sample(EASY.split(), 8 - hard)
            yield " ".join(rng.sample(words, len(words)))

    def chance(self, model):
        """Return the probability that a model's answer to the last question is right."""
        ability = WORSE.get(model, ABILITY[model]) if self.now >= self.change else ABILITY[model]
        return 1.0 / (1.0 + np.exp(self.difficulty - ability))

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


GROUPS = {word: group for group, words in WORDS.items() for word in words.split()}
GROUPS |= dict.fromkeys(EASY.split(), "easy") | dict.fromkeys(HARD.split(), "hard")


def _vector(name):
    return np.random.default_rng(crc32(name.encode())).normal(size=32) / 6.0


VECTORS = {
    word: _vector(word) + 2.0 * _vector(GROUPS[word]) if word in GROUPS else _vector(word)
    for word in [*GROUPS, *FILLER.split()]
}
"""Words of a group are near each other, as in embeddings of texts."""


def embedding(text):
    """Return the mean of the vectors of all words."""
    return np.mean([VECTORS[word] for word in text.split()], axis=0)
