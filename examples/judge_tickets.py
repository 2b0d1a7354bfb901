"""Judge a ticket router by its own log: how good it is, and what its exploration costs.

The log is kept in tickets.jsonl, in the folder where this runs.
"""

import copy
import json

from tickets import HelpDesk

from onebit import OneBitClassifier, make_pipeline
from onebit.evaluation import Log, by_label, calibration, check_probabilities, estimate
from onebit.features import Records

help_desk, decisions, tickets, told = HelpDesk(seed=0, change=10**9), {}, {}, {}
learner = OneBitClassifier(classes=help_desk.desks, min_probability=0.02, random_state=0)
router = make_pipeline(Records(), learner)
for n, ticket in enumerate(map(json.loads, help_desk.tickets(9_000)), 1):
    if n == 3_001:  # from here on decisions are logged, and a copy is kept to be judged by them
        decisions, told, frozen = {}, {}, copy.deepcopy(router)
    name, ticket["id"] = ticket["id"], None
    decisions[name], tickets[name] = router.decide(ticket, id=name), ticket
    help_desk.send(name, decisions[name].label)
    for feedback in map(json.loads, help_desk.feedback()):
        if feedback["id"] in decisions and feedback["id"] not in told:
            told[feedback["id"]] = feedback
            router.learn(decisions[feedback.pop("id")], **feedback)

log = Log(
    [decision.label for decision in decisions.values()],
    [decision.probability for decision in decisions.values()],
    [told.get(name, {}).get("correct") for name in decisions],
    truth=[told.get(name, {}).get("truth") for name in decisions],
    confidence=[decision.confidence for decision in decisions.values()],
    x=[tickets[name] for name in decisions],
    classes=help_desk.desks,
    least=0.02,
    ids=list(decisions),
)
log.write("tickets.jsonl")
log = Log.read("tickets.jsonl", classes=help_desk.desks)
print("probabilities are sound:", check_probabilities(log).passed)
for result in (estimate(log), estimate(log, frozen, greedy=True), estimate(log, "billing")):
    print(result, *result.warnings, sep="\n    ")
for desk in by_label(log):
    low, high = desk.precision_interval
    print(f"{desk.label}: {desk.shown} tickets, {low:.1%} to {high:.1%} of them right")
print("confidence is", calibration(log).verdict)
