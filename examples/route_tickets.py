"""Route tickets that are JSON; learn from feedback that is late, missing, double or a truth.

The model is kept in router.safetensors, in the folder where this runs.
"""

import json

from tickets import HelpDesk

from onebit import Decision, OneBitClassifier, load, make_pipeline
from onebit.features import Records

help_desk, decisions = HelpDesk(seed=0, change=5_000), {}
router = make_pipeline(Records(), OneBitClassifier(classes=help_desk.desks, random_state=0))
for n, ticket in enumerate(map(json.loads, help_desk.tickets(10_000)), 1):
    if n == help_desk.change + 1:  # a desk opens, another one closes
        router.add_classes(["fraud"]).retire_classes(["fax"])
    decision = router.decide(ticket | {"id": None}, id=ticket["id"])
    decisions[decision.id] = json.dumps(decision.to_dict())  # as in a table of a database
    help_desk.send(decision.id, decision.label)
    for feedback in map(json.loads, help_desk.feedback()):
        if not router.has_learned(feedback["id"]):
            decision = Decision.from_dict(json.loads(decisions.pop(feedback.pop("id"))))
            router.learn(decision, **feedback)
    if n % 500 == 0:
        print(f"up to ticket {n:>6,}: {help_desk.wrong / 500:6.1%} to the wrong desk")
        help_desk.wrong = 0
        router.save("router.safetensors")  # as when the service restarts
        router = load("router.safetensors")
learned = sum(map(router.has_learned, help_desk.told))
print(f"feedback came for {len(help_desk.told):,} tickets, and {learned:,} were learned from")
