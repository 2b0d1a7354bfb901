"""Route questions to intents by thumbs up or down, with and without the names of the intents.

The questions are those of banking77, with 77 intents, if the folder ONEBIT_DATA has them, and
made up for 36 intents otherwise. The picture, errors over time, is intents.png in the folder where
this runs.
"""

import csv
import lzma
import os
import random
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from onebit import OneBitClassifier, make_pipeline
from onebit.features import Records

VERBS = {
    "change": "edit update correct adjust",
    "cancel": "stop end undo quit",
    "find": "search locate where see",
    "pay": "settle transfer charge euros",
    "report": "complain problem broken wrong",
    "order": "buy get need purchase",
}
THINGS = {
    "card": "visa debit plastic credit",
    "flight": "plane ticket seat boarding",
    "parcel": "package delivery box courier",
    "password": "login code account locked",
    "meal": "lunch pizza restaurant menu",
    "insurance": "policy cover claim accident",
}
SMALL_TALK = "hello please thanks my the i a can you help me today how do now want to it for"


def made_up_questions(n, rng):
    """Yield questions with their intents: a verb and a thing, half of the time by other words."""
    for _ in range(n):
        verb, thing = rng.choice(list(VERBS)), rng.choice(list(THINGS))
        said = [
            name if rng.random() < 0.5 else rng.choice(others[name].split())
            for name, others in ((verb, VERBS), (thing, THINGS))
        ]
        words = said + rng.sample(SMALL_TALK.split(), 5)
        yield " ".join(rng.sample(words, len(words))), f"{verb}_{thing}"


def questions(n, seed=0):
    """Return questions with their intents, which only the people who ask know."""
    rng, path = random.Random(seed), Path(os.environ.get("ONEBIT_DATA", "."), "banking77")
    if not (file := path / "banking77.csv.xz").is_file():
        return list(made_up_questions(n, rng))
    with lzma.open(file, "rt", encoding="utf-8", newline="") as table:
        rows = [(row["text"], row["intent"]) for row in csv.DictReader(table)]
    return rng.sample(rows, min(n, len(rows)))


asked = questions(6_000)
intents = sorted({intent for _, intent in asked})
figure, axes = plt.subplots(figsize=(7, 4))
for told in ("thumbs alone", "thumbs and names"):
    router = make_pipeline(Records(), OneBitClassifier(classes=intents, random_state=0))
    if told == "thumbs and names":
        router.describe({intent: intent for intent in intents})  # their names, as texts
    wrong = []
    for text, intent in asked:
        decision = router.decide(text)
        wrong.append(decision.label != intent)
        router.learn(decision, correct=decision.label == intent)  # a thumb, up or down
    blocks = [sum(wrong[i : i + 500]) / 5 for i in range(0, len(wrong), 500)]
    axes.plot(range(500, len(wrong) + 500, 500), blocks, marker="o", label=told)
    print(f"{told:>16}: {sum(wrong) / len(wrong):.1%} wrong; {blocks[0]:.1f} % of the first 500")
axes.set(xlabel="questions", ylabel="wrong intents in 500 questions, %", ylim=(0, 100))
axes.legend()
figure.savefig("intents.png", dpi=150, bbox_inches="tight")
