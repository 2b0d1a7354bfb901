"""Choose an article for each visitor: several may be clicked, or none; new ones come every day.

A visitor is a vector of interests, an article is described by its topics. Clicks over time, with
descriptions and without, are drawn in articles.png, in the folder where this runs.
"""

import numpy as np
from matplotlib.figure import Figure

from onebit import OneBitClassifier

TOPICS, ARTICLES, DAYS, VISITORS = 12, 15, 12, 400


def clicked(described, seed=0):
    """Return which visitors clicked what they were shown; every day three articles are new."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(TOPICS, 0.3), size=ARTICLES + 3 * DAYS)
    learner = OneBitClassifier(exclusive=False, classes=range(ARTICLES), random_state=seed)
    if described:
        learner.describe(dict(enumerate(topics[:ARTICLES])))
    found = []
    for day in range(DAYS):
        if day > 0:
            first = ARTICLES + 3 * (day - 1)
            new = {k: topics[k] if described else None for k in range(first, first + 3)}
            learner.add_classes(new).retire_classes(range(3 * (day - 1), 3 * day))
        for visitor in rng.dirichlet(np.full(TOPICS, 0.3), size=VISITORS):
            decision = learner.decide(visitor)
            log_odds = 12.0 * visitor @ topics[decision.label] - 4.0  # what only the visitor knows
            found.append(bool(rng.random() < 1.0 / (1.0 + np.exp(-log_odds))))
            learner.learn(decision, correct=found[-1])
    return np.array(found)


if __name__ == "__main__":
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.add_subplot(xlabel="day", ylabel="visitors who clicked, %")
    for described in (True, False):
        by_day = 100 * clicked(described).reshape(DAYS, VISITORS).mean(axis=1)
        name = "articles described" if described else "not described"
        print(f"{name}: {by_day.mean():.1f} % clicked, by day {by_day.round(1).tolist()}")
        ax.plot(range(1, DAYS + 1), by_day, marker="o", label=name)
    ax.legend(frameon=False)
    figure.savefig("articles.png", dpi=100)
