"""A model that learns beside a rule which is right in 70 %: when it takes over.

    python bench/apprentice.py [--stream optdigits] [--runs 200] [--rounds 2000] [--share 0.2]

A model of the service decides a share of the rounds of a named stream, the rule all others. It
prints the round in which the model takes over by itself, and how accurate both are up to there,
by the truth. Then, in as many runs, a model that is worse by 5 points than the rule, and one that
is exactly as good: how many take over at some round.
"""

from __future__ import annotations

import argparse

import numpy as np

from onebit import streams
from onebit.evaluation import DifferenceSequence
from onebit.serve.model import Model
from onebit.serve.rows import ApprenticeSettings, FeedbackBody, ModelSpec, Row, text_of

RULE = 0.7


def take_over(stream: str, share: float, confidence: float, seed: int) -> None:
    """Play a stream until the model takes over, and print the round."""
    X, y = streams.load(stream)
    labels = [str(label) for label in np.unique(y).tolist()]
    rng = np.random.default_rng(seed)
    spec = ModelSpec(
        labels=[*labels],
        input="numbers",
        n_features=X.shape[1],
        seed=seed,
        apprentice=ApprenticeSettings(share=share, confidence=confidence),
    )
    model = Model.begin(Row(1, 1, "model", None, 0.0, text_of(spec)))
    wrong, found, low = [], DifferenceSequence(confidence), 0.0
    for i, row in enumerate(rng.permutation(len(y))):
        truth = str(y[row])
        others = [label for label in labels if label != truth]
        chosen = truth if rng.random() < RULE else str(rng.choice(others))
        x = np.asarray(X[row].todense() if hasattr(X, "todense") else X[row]).ravel().tolist()
        best, _ = model.decide(x, None, f"t{i}", len(x))
        decision, body = model.decide(x, None, f"t{i}", len(x), chosen)
        wrong.append((chosen != truth, best.label != truth))
        model.apply(Row(1, model.n + 1, "decision", f"t{i}", 0.0, text_of(body)))
        said = FeedbackBody(correct=decision.label == truth)
        model.apply(Row(1, model.n + 1, "feedback", f"t{i}", 0.0, text_of(said)))
        pi, p = body.model_probability or 0.0, body.probability
        found.update(said.correct, pi / p, (body.label == body.chosen) / p)
        before, low = low, found.low
        if model.meta.apprentice is not None and model.meta.apprentice.decides == "model":
            rule, own = 1.0 - np.mean(wrong, axis=0)
            late = 1.0 - np.mean(wrong[-500:], axis=0)
            print(f"{stream}, seed {seed}: the model takes over in round {i + 1:,}")
            print(f"  lower end before and after that round: {before:.4f}, {low:.4f}")
            print(f"  right up to there: rule {rule:.3f}, model {own:.3f}")
            print(f"  right in the last 500: rule {late[0]:.3f}, model {late[1]:.3f}")
            return
    print(f"{stream}, seed {seed}: the model does not take over in {len(y):,} rounds")


def never(better: float, share: float, confidence: float, runs: int, rounds: int) -> None:
    """Print how many of the models that are better by so much take over."""
    taken = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        from_model = rng.random(rounds) < share
        bits = rng.random(rounds) < RULE + better * from_model
        found = DifferenceSequence(confidence)
        for n in range(rounds):
            is_model = from_model[n]
            found.update(bits[n], is_model / share, (not is_model) / (1.0 - share))
            if found.is_better():
                taken += 1
                break
    most = 1.0 - confidence
    print(f"difference {better:+.2f}: {taken} of {runs} take over; at most {most:.0%} may")


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stream", default="optdigits")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--confidence", type=float, default=0.95)
    given = parser.parse_args()
    for seed in range(3):
        take_over(given.stream, given.share, given.confidence, seed)
    for better in (-0.05, 0.0):
        never(better, given.share, given.confidence, given.runs, given.rounds)


if __name__ == "__main__":
    main()
