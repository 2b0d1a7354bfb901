"""Logs with a known story, as lines that `PUT /v1/models/{model}/log` takes."""

import json
import random
import time

DESKS = ["billing", "delivery", "login", "returns"]
HOUR = 3600.0
SPAN = 72 * HOUR
SWAPPED_AT = 8 * HOUR
"""Before now: when two desks swapped their work."""


def prepared(story, n=1500, seed=0):
    """Return the lines of a log that ends now.

    Parameters
    ----------
    story : {"healthy", "swapped", "silent", "random"}
        healthy: 95 % of the decisions are right. swapped: the same, until delivery and returns
        swap their work. silent: nobody gives feedback for login. random: labels are chosen
        uniformly at random, and a shadow is added first.
    n : int
        Decisions.
    seed : int
    """
    rng, now = random.Random(seed), time.time()
    start = now - SPAN
    spec = {"learner": "Banditron", "parameters": {"gamma": 0.1}, "labels": DESKS}
    rows = [("model", None, start, spec | {"n_features": 64, "seed": 7})]
    if story == "random":
        shadow = {"learner": "OneBitClassifier", "parameters": {"views": "line"}}
        rows.append(("shadow", None, start, {"action": "add", "name": "b", "spec": shadow}))
    for i in range(n):
        at, desk = start + SPAN * (i + 0.5) / n, rng.choice(DESKS)
        label, probability = desk, 0.95
        if story == "random":
            label, probability = rng.choice(DESKS), 0.25
        elif rng.random() < 0.05:
            label, probability = rng.choice([one for one in DESKS if one != desk]), 0.05 / 3
        truth = desk
        if story == "swapped" and at > now - SWAPPED_AT:
            truth = {"delivery": "returns", "returns": "delivery"}.get(desk, desk)
        body = {"record": f"{desk} {rng.randrange(9)}", "label": label, "probability": probability}
        rows.append(("decision", f"t{i}", at, body | {"seen": 1, "explored": probability < 0.5}))
        if story == "silent" and label == "login":
            continue
        said = {"truth": truth} if rng.random() < 0.3 else {"correct": label == truth}
        rows.append(("feedback", f"t{i}", at + 1.0, said))
    lines = []
    for n_row, (kind, name, at, body) in enumerate(rows, 1):
        row = {"n": n_row, "kind": kind, "at": at, "body": body}
        lines.append(json.dumps(row if name is None else row | {"id": name}))
    return "\n".join(lines).encode()
