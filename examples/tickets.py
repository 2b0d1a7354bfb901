"""The tickets of `route_tickets.py`: a help desk that sends them as JSON and says what went wrong.

The right desk of a ticket is known here only. Feedback comes 0 to 60 tickets later, for four of
five tickets; now and then it comes twice, and one time in ten it names the right desk.
"""

import json
import random

WORDS = {
    "billing": "invoice refund charged card payment twice receipt tax subscription price",
    "delivery": "parcel late courier address tracking lost box arrived shipped delay",
    "login": "password locked reset email code account sign forgot browser two-factor",
    "returns": "broken return label exchange size wrong colour damaged faulty warranty",
    "fax": "fax line busy page paper toner number dial tone unreadable",
    "fraud": "stranger stolen unknown suspicious identity blocked police hacked scam report",
}
SMALL_TALK = "hello please thanks my the order help yesterday again I cannot find still why"


class HelpDesk:
    """Tickets for five desks; from number `change` on, there is one for fraud and none for fax."""

    def __init__(self, seed, change):
        self.desks, self.change = ["billing", "delivery", "login", "returns", "fax"], change
        self.wrong, self.told = 0, {}
        self._rng, self._due, self._right = random.Random(seed), {}, {}

    def tickets(self, n):
        """Yield n tickets, one JSON text each."""
        for self._now in range(n):
            if self._now == self.change:
                self.desks = [desk for desk in self.desks if desk != "fax"] + ["fraud"]
            desk = self._rng.choice(self.desks)
            words = self._rng.sample(WORDS[desk].split(), 2 if self._rng.random() < 0.9 else 1)
            words += self._rng.sample(WORDS[self._rng.choice(self.desks)].split(), 1)
            words += self._rng.sample(SMALL_TALK.split(), 5)
            ticket = {"id": f"T{self._now:06}", "subject": " ".join(words[:2]), "via": "web"}
            ticket["body"] = " ".join(self._rng.sample(words[2:], len(words) - 2))
            ticket["customer"] = {"years": self._rng.randrange(9), "plan": self._rng.choice("abc")}
            self._right[ticket["id"]] = desk
            yield json.dumps(ticket)

    def send(self, ticket_id, desk):
        """Send a ticket to a desk, which may say later whether it was right."""
        right = self._right.pop(ticket_id)
        self.wrong += desk != right
        if self._rng.random() < 0.8:
            said = {"truth": right} if self._rng.random() < 0.1 else {"correct": desk == right}
            for _ in range(2 if self._rng.random() < 0.05 else 1):
                due = self._now + self._rng.randrange(60)
                self._due.setdefault(due, []).append(json.dumps({"id": ticket_id, **said}))

    def feedback(self):
        """Yield the feedback that came since the last ticket, JSON texts."""
        for text in self._due.pop(self._now, []):
            self.told.setdefault(json.loads(text)["id"], text)
            yield text
