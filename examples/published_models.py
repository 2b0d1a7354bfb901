"""Language models of `route_models.py` by published figures: shares of right answers, and prices.

Shares of right answers are from the table of openai/simple-evals (README.md at commit 0f2cf333;
DROP has the F1 score). Prices are list prices in dollars for a million tokens of output; all
answers count as equally long, although models that reason write more. The choice of models was
fixed before the first run: five of one vendor with a figure in each of the seven columns and with
prices that span 1:100; as a change half-way, a later release of gpt-4o, which is worse in four
columns and better in two; and as the new model, the small one of the next generation. A right
answer is worth 1, and the most expensive one costs 0.3, as in `models.py`. Questions of a kind are
equally hard: how much they differ is not published.
"""

from models import FILLER, Assistant, add_words

KINDS = ("MMLU", "GPQA", "MATH", "HumanEval", "MGSM", "DROP", "SimpleQA")
"""Knowledge, science, maths, code, sums in many languages, reading, facts."""

RIGHT = {
    "gpt-4o-mini": (82.0, 40.2, 70.2, 87.2, 87.0, 79.7, 9.5),
    "o3-mini": (85.9, 74.9, 97.3, 96.3, 90.8, 79.2, 13.4),
    "gpt-4o": (88.7, 53.1, 75.9, 90.2, 90.0, 79.8, 40.1),  # 2024-08-06
    "gpt-4-turbo": (86.7, 49.3, 73.4, 88.2, 89.6, 86.0, 24.2),
    "o1-preview": (90.8, 73.3, 85.5, 92.4, 90.8, 74.8, 42.4),
    "gpt-4.1-mini": (87.5, 65.0, 81.4, 93.8, 88.2, 81.0, 16.8),
}
"""Percent of answers that are right, for each kind."""

LATER = {"gpt-4o": (85.7, 46.0, 68.5, 90.2, 90.3, 81.5, 38.8)}  # 2024-11-20
"""After half of the questions."""

DOLLARS = {
    "gpt-4o-mini": 0.60,
    "o3-mini": 4.40,
    "gpt-4o": 10.0,
    "gpt-4-turbo": 30.0,
    "o1-preview": 60.0,
    "gpt-4.1-mini": 1.60,
}

PRICES = {model: 0.3 * price / 60.0 for model, price in DOLLARS.items()}
NEW_PRICE = PRICES.pop("gpt-4.1-mini")

WORDS = {
    "MMLU": "law history economics philosophy anatomy marketing geography ethics sociology logic",
    "GPQA": "quantum enzyme spectrum synthesis neutrino genome orbital catalyst entropy isotope",
    "MATH": "integral proof matrix prime polynomial series angle probability equation modulo",
    "HumanEval": "function list string return sort parse array loop integer python",
    "MGSM": "apples eggs buses baskets hours coins marbles tickets pages cookies",
    "DROP": "passage touchdown paragraph quarter census battle percent yards population season",
    "SimpleQA": "award born village album painter treaty stadium mayor founded episode",
}

TOPICS = {f"{word}/{kind}": kind for kind, words in WORDS.items() for word in words.split()}
"""The same word means something else in another kind, which an embedding of a text tells."""

add_words(TOPICS)


class Published(Assistant):
    """Questions as the benchmarks have them, answered as often right as was published."""

    new, best, worse = "gpt-4.1-mini", "o1-preview", "gpt-4o"
    prices, new_price = PRICES, NEW_PRICE

    def _question(self):
        rng = self._rng
        self.kind = rng.choice(KINDS)
        words = [f"{word}/{self.kind}" for word in rng.sample(WORDS[self.kind].split(), 5)]
        words += rng.sample(FILLER.split(), 4)
        return " ".join(rng.sample(words, len(words)))

    def chance(self, model):
        """Return the probability that a model's answer to the last question is right."""
        is_late = self.now >= self.change and model in LATER
        return (LATER if is_late else RIGHT)[model][KINDS.index(self.kind)] / 100.0
