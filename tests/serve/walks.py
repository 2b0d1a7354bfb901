"""Walks at random through what a service can be asked."""

import numpy as np


class Walk:
    """Requests at random, of all kinds that change a model, to services that share its log.

    None of them may end it.
    """

    def __init__(self, services, seed):
        self.services, self.rng = services, np.random.default_rng(seed)
        self.labels, self.awaited, self.answered = list("abc"), [], []

    def some(self, of, least=1):
        n = self.rng.integers(min(least, len(of)), len(of) + 1)
        return [of[i] for i in self.rng.permutation(len(of))[:n]]

    def send(self, method, path, body=None):
        service = self.services[self.rng.integers(len(self.services))]
        reply = service.send(method, f"/v1/models/m{path}", body)
        assert reply.status_code in (200, 204, 404, 409, 410, 422), reply.text
        return reply

    def decide(self):
        question = {"record": f"card {self.rng.integers(10)}"}
        if self.rng.random() < 0.5:
            question["among"] = self.some(self.labels)
        reply = self.send("POST", "/decide", [question] * self.rng.integers(1, 4))
        if reply.status_code == 200:
            self.awaited += [made["id"] for made in reply.json()]

    def feedback(self):
        names = self.some(self.awaited + self.answered[-3:], 0)[:5]
        kinds = [{"correct": True}, {"correct": False}, {"truth": None}]
        kinds += [{"truth": str(label)} for label in self.labels]
        said = [{"id": name} | kinds[self.rng.integers(len(kinds))] for name in names]
        if said:
            self.send("POST", "/feedback", said)
            self.answered += names
            self.awaited = [name for name in self.awaited if name not in names]

    def revise(self):
        names = self.some([*self.answered[-20:], *self.awaited[:1]], 0)[:3]
        kinds = [{"correct": True}, {"correct": False}, {"truth": None}, {"withdrawn": True}]
        kinds += [{"truth": str(label)} for label in self.labels]
        said = [{"id": name} | kinds[self.rng.integers(len(kinds))] for name in names]
        if said:
            self.send("POST", "/revise", said)

    def erase(self):
        names = self.some([*self.answered[-20:], *self.awaited[:2]], 0)[:3]
        if names:
            self.send("POST", "/erase", {"ids": names})

    def change_labels(self):
        if self.rng.random() < 0.5 and len(self.labels) < 8:
            self.labels.append(f"label {len(self.labels)}")
            self.send("POST", "/labels", {"add": self.labels[-1:]})
        elif self.rng.random() < 0.3:
            described = [{"name": name, "description": f"card {name}"} for name in self.labels]
            self.send("POST", "/labels", {"describe": self.some(described)})
        else:
            self.send("POST", "/labels", {self.some(["add", "retire"])[0]: self.some(self.labels)})

    def change_shadows(self):
        name = self.some(["s", "t", "previous"])[0]
        learner = self.some(["Banditron", "SOBA", "OneBitClassifier"])[0]
        self.send("POST", "/shadows", {"name": name, "learner": learner})
        self.send(
            *self.some([("DELETE", f"/shadows/{name}"), ("POST", f"/shadows/{name}/promote")])[0]
        )

    def change_settings(self):
        self.send("PATCH", "", {"frozen": bool(self.rng.random() < 0.3)})
        seconds = self.some([None, 1e-6, 1000.0])[0]
        counts_as = self.some(["nothing", "wrong"])[0]
        self.send("PATCH", "", {"expiry_seconds": seconds, "expired_counts_as": counts_as})

    def go(self, n):
        usual = [self.decide, self.feedback] * 5 + [self.revise, self.erase]
        for _ in range(n):
            steps = [*usual, self.change_labels, self.change_shadows, self.change_settings]
            steps[self.rng.integers(len(steps))]()
