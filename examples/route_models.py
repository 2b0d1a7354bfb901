"""Choose among language models of different cost, by thumbs that are late, missing or wrong.

Answers are simulated from a table: a made-up one of `models.py`, and one of published figures,
`published_models.py`. Run as `python route_models.py 5` for five seeds, `python route_models.py 5
published` for the second table; with matplotlib it also draws models.svg.
"""

import sys

import numpy as np
from models import Assistant, embedding
from published_models import Published

from onebit import LinUCB, LogisticThompson

N = 10_000
TABLES = {"made-up": Assistant, "published": Published}


class Router:
    """A learner that decides by worth and cost, and learns from thumbs."""

    def __init__(self, learner, prices):
        self.learner = learner.set_utility(cost=prices)

    def choose(self, question, assistant):
        """Return a model, and what is needed to learn from a thumb."""
        if assistant.now == assistant.arrival:
            self.learner.add_classes([assistant.new]).set_utility(cost=assistant.prices)
        decision = self.learner.decide(np.append(embedding(question), 1.0))
        return decision.label, decision

    def learn(self, decision, thumb):
        """Learn from a thumb."""
        self.learner.learn(decision, correct=thumb)


class BetaThompson:
    """Thompson sampling with one Beta distribution for each model and kind of question."""

    def __init__(self, seed):
        self.rng, self.counts = np.random.default_rng(seed), {}

    def choose(self, question, assistant):
        """Draw the probability of each model for this kind; take the highest utility."""
        kind = assistant.kind  # it is told, where the others see only the embedding
        drawn = {
            model: self.rng.beta(*self.counts.setdefault((model, kind), [1, 1])) - price
            for model, price in assistant.prices.items()
        }
        model = max(drawn, key=drawn.get)
        return model, (model, kind)

    def learn(self, key, thumb):
        """Count a thumb."""
        self.counts[key][0 if thumb else 1] += 1


class Oracle:
    """The model with the highest utility, by chances that nobody knows: what is left to gain."""

    def choose(self, question, assistant):
        """Return the model."""
        prices = assistant.prices
        return max(prices, key=lambda model: assistant.chance(model) - prices[model]), None

    def learn(self, ticket, thumb):
        """Learn nothing."""


class Always:
    """One model for all questions."""

    def __init__(self, model):
        self.model = model

    def choose(self, question, assistant):
        """Return the model."""
        return self.model, None

    def learn(self, ticket, thumb):
        """Learn nothing."""


def routers(seed, table):
    """Return all routers, by name; the first is the one to take."""
    prices = table.prices
    models = list(prices)
    ours = LogisticThompson(
        "features",
        explore=0.5,  # both chosen with seeds 100 to 104 of the made-up table
        a=0.1,
        classes=models,
        random_state=seed,
    )
    linear = {
        f"LinUCB, alpha={alpha:g}": Router(LinUCB(alpha, classes=models), prices)
        for alpha in (0.25, 0.5, 1.0, 2.0)
    }
    return {
        "LogisticThompson": Router(ours, prices),
        **linear,
        "Beta-Thompson a kind": BetaThompson(seed),
        "always the cheapest": Always(min(prices, key=prices.get)),
        "always the best": Always(table.best),
    }


def ceiling(seeds, n, table):
    """Return the mean utility of the oracle."""
    return np.mean([run(Oracle(), seed, n, table)[0] for seed in range(seeds)])


def run(router, seed, n=N, table=Assistant):
    """Return the utility of each answer, and which model gave it."""
    assistant, chosen = table(n, seed), []
    for question in assistant.questions():
        model, ticket = router.choose(question, assistant)
        chosen.append(model)
        assistant.answer(model, ticket)
        for ticket, thumb in assistant.thumbs():
            router.learn(ticket, thumb)
    return np.array(assistant.utility, dtype=float), np.array(chosen)


def compare(seeds, n=N, table=Assistant):
    """Print the mean utility of an answer; return the utilities and the models of each router."""
    found = {}
    for name in routers(0, table):
        runs = [run(routers(seed, table)[name], seed, n, table) for seed in range(seeds)]
        found[name] = np.array([u for u, _ in runs]), np.array([m for _, m in runs])
        means = found[name][0].mean(axis=1)
        print(f"{name:<21}{means.mean():.3f}   {'  '.join(f'{mean:.3f}' for mean in means)}")
    (ours, _), *others = found.values()
    best = max(u.mean() for u, _ in others)
    print(f"{ours.mean() / best - 1.0:+.1%} beside the best of the others")
    always = found["always the best"][0].mean()
    print(f"{ours.mean() / always - 1.0:+.1%} beside always the best")
    print(f"{ceiling(seeds, n, table) / best - 1.0:+.1%} for an oracle that knows all chances")
    chosen, k = found["LogisticThompson"][1], n // 10
    for model, before in ((table.worse, 5 * k), (table.new, 7 * k)):
        shares = [
            (chosen[:, lo : lo + k] == model).mean() for lo in (before - k, before + k, n - k)
        ]
        print(
            f"{model}: {shares[0]:.1%}, then {shares[1]:.1%}, in the end {shares[2]:.1%} of answers"
        )
    return found


def draw(found, n=N, table=Assistant):
    """Return a picture of the mean utility over time."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(8.0, 3.6), layout="constrained").subplots()
    width = n // 20
    for name, (utility, _) in found.items():
        smooth = utility.mean(axis=0).reshape(-1, width).mean(axis=1)
        axes.plot(np.arange(width // 2, n, width), smooth, label=name)
    for at, what in ((7 * n // 10, f"{table.new} is new"), (n // 2, f"{table.worse} gets worse")):
        axes.axvline(at, color="grey", linewidth=0.8)
        axes.annotate(f"{what} ", (at, 0.22), ha="right", fontsize="small")
    axes.set(xlabel="questions", ylabel="utility of an answer", ylim=(0.2, 0.75))
    axes.figure.legend(fontsize="small", loc="outside right upper")
    return axes.figure


if __name__ == "__main__":
    chosen_table = TABLES[sys.argv[2] if len(sys.argv) > 2 else "made-up"]
    results = compare(int(sys.argv[1]) if len(sys.argv) > 1 else 1, table=chosen_table)
    try:
        draw(results, table=chosen_table).savefig("models.svg")
    except ImportError:
        print("there is no picture without matplotlib")
