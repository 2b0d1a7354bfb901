"""The language models of `route_models.py`: questions, answers and thumbs, simulated by a table.

The table follows from these sentences, which were written down before the first run:

- Five models, each 30^(1/4) times as expensive as the one before: prices span 1:30, about as those
  of hosted models do. A right answer is worth 1, and the most expensive one costs 0.3.
- An answer is right with the log-odds ability - difficulty (the model of Rasch). Each step in price
  adds one to the ability. Models also have strengths: "small" is tuned for code (+2 there),
  "reasoner" is better at maths (+1) and worse at chat (-1.5).
- Questions are of four kinds, whose mean difficulties differ by one each; within a kind, they
  differ by up to 3 either way: a model answers 5 % of the hardest questions where it answers 95 %
  of the easiest. Words of a question tell its kind and, roughly, how hard it is.
- After half of the questions, "medium" loses three units of ability: it is served in another
  form. After seven tenths, "flash" comes: the next generation, as able as "large" for the price of
  "small".
- What is right is known here only. One user in two sends a thumb, up to 200 questions later, and
  one thumb in twenty is wrong.
"""

import random
from zlib import crc32

import numpy as np

PRICES = {"tiny": 0.010, "small": 0.023, "medium": 0.055, "large": 0.128, "reasoner": 0.300}
"""What an answer costs, where a right one is worth 1."""

ABILITY = {"tiny": -1.0, "small": 0.0, "medium": 1.0, "large": 2.0, "reasoner": 3.0, "flash": 2.0}
STRENGTHS = {("small", "code"): 2.0, ("reasoner", "maths"): 1.0, ("reasoner", "chat"): -1.5}
"""More ability for questions of one kind."""

WORSE = {"medium": -2.0}
"""Ability after half of the questions."""

NEW, NEW_PRICE = "flash", 0.023

KINDS = {"chat": -1.0, "facts": 0.0, "code": 1.0, "maths": 2.0}
"""Their mean difficulties."""

SPREAD = 3.0
"""The largest difference of a question from the mean difficulty of its kind."""

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
    """Questions of several kinds for models that answer right or wrong, by the table above."""

    prices, new, new_price, best = PRICES, NEW, NEW_PRICE, "reasoner"
    worse = "medium"

    def __init__(self, n, seed):
        self.n, self.change, self.arrival = n, n // 2, 7 * n // 10
        self.prices = dict(self.prices)
        self.utility, self._rng, self._due = [], random.Random(seed), {}

    def questions(self):
        """Yield the questions; what they are about is in `kind`, for those who are told."""
        for now in range(self.n):
            self.now = now
            if self.now == self.arrival:
                self.prices = self.prices | {self.new: self.new_price}
            yield self._question()

    def _question(self):
        rng = self._rng
        self.kind, harder = rng.choice(list(KINDS)), rng.uniform(-1.0, 1.0)
        self.difficulty, hard = KINDS[self.kind] + SPREAD * harder, round(4.0 + 4.0 * harder)
        words = rng.sample(WORDS[self.kind].split(), 3) + rng.sample(FILLER.split(), 4)
        words += rng.sample(HARD.split(), hard) + rng.sample(EASY.split(), 8 - hard)
        return " ".join(rng.sample(words, len(words)))

    def chance(self, model):
        """Return the probability that a model's answer to the last question is right."""
        ability = WORSE.get(model, ABILITY[model]) if self.now >= self.change else ABILITY[model]
        ability += STRENGTHS.get((model, self.kind), 0.0)
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


VECTORS = {}


def add_words(groups):
    """Add words, each with its group: words of a group are near each other, as in embeddings."""
    for word, group in groups.items():
        VECTORS[word] = _vector(word) + 2.0 * _vector(group)


VECTORS |= {word: _vector(word) for word in FILLER.split()}
add_words(GROUPS)


def embedding(text):
    """Return the mean of the vectors of all words."""
    return np.mean([VECTORS[word] for word in text.split()], axis=0)
