"""Route support tickets to a desk, and learn from thumbs up or down that come late."""

import random
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.feature_extraction.text import HashingVectorizer

import onebit

DESKS = {
    "billing": "invoice refund charged card payment twice receipt tax subscription price",
    "delivery": "parcel late courier address tracking lost box arrived shipped delay",
    "login": "password locked reset email code account sign forgot browser two-factor",
    "returns": "broken return label exchange size wrong colour damaged faulty warranty",
}
SMALL_TALK = "hello please thanks my the order help yesterday again I cannot find still why"
LATE = 25  # tickets that are routed before the thumb for one arrives


def ticket(rng):
    """Return a text and the desk that should get it, which the learner never sees."""
    desk = rng.choice(list(DESKS))
    words = rng.sample(DESKS[desk].split(), 3) + rng.sample(SMALL_TALK.split(), 5)
    return " ".join(rng.sample(words, len(words))), desk


rng = random.Random(0)
vectorizer = HashingVectorizer(n_features=2**12)
learner = onebit.OneBitClassifier(classes=list(DESKS), random_state=0)
waiting = deque()
wrong = 0

with TemporaryDirectory() as folder:
    model = Path(folder, "router.safetensors")
    for n in range(1, 10_001):
        text, desk = ticket(rng)
        decision = learner.decide(vectorizer.transform([text]))
        waiting.append((decision, decision.label == desk))
        wrong += decision.label != desk
        if len(waiting) > LATE:
            decision, thumbs_up = waiting.popleft()
            learner.learn(decision, correct=thumbs_up)
        if n % 2_000 == 0:
            print(f"up to ticket {n:>6,}: {wrong / 2_000:6.1%} to the wrong desk")
            wrong = 0
            # As when the service restarts; waiting decisions fit the learner read back.
            learner.save(model)
            learner = onebit.load(model)

question = "my parcel never arrived and the tracking says it was shipped"
print(f"{question!r} -> {learner.predict(vectorizer.transform([question]))[0]}")
