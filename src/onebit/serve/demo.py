"""A demonstration of the service: a help desk with simulated tickets."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from typing import Any

from onebit.serve.client import Client, ServiceError
from onebit.serve.running import Options, serve

MODEL = "tickets"

_WORDS = {
    "billing": "invoice refund charged card payment receipt tax subscription price bank",
    "delivery": "parcel courier address tracking lost box shipped arrived delay late",
    "login": "password locked reset code account sign forgot browser phone blocked",
    "returns": "broken return exchange size colour damaged faulty warranty wrong label",
}
_OTHER = "hello please thanks my the order help yesterday again cannot find still why"

CHANGE = 3000
"""Tickets after which two desks swap their work, as happens when a company is reorganised."""

RATE = 40.0
"""Tickets a second."""


class HelpDesk:
    """Tickets and their right desks."""

    def __init__(self, seed: int = 0) -> None:
        self._rng, self._n = random.Random(seed), 0

    def ticket(self) -> tuple[dict[str, Any], str]:
        """Return a ticket, and the desk it belongs to."""
        self._n += 1
        rng, topic = self._rng, self._rng.choice(list(_WORDS))
        other = rng.choice(list(_WORDS))
        words = rng.sample(_WORDS[topic].split(), 3) + rng.sample(_WORDS[other].split(), 1)
        words += rng.sample(_OTHER.split(), 4)
        rng.shuffle(words)
        record = {"subject": " ".join(words[:3]), "body": " ".join(words[3:]), "via": "web"}
        record["plan"] = rng.choice(("free", "pro"))
        desk = topic
        if self._n > CHANGE:
            desk = {"delivery": "returns", "returns": "delivery"}.get(topic, topic)
        return record, desk

    def feedback(self, label: str, desk: str) -> dict[str, Any] | None:
        """Return the feedback for a decision, if there is any."""
        if self._rng.random() < 0.1:
            return None
        if self._rng.random() < 0.1:
            return {"truth": desk}
        return {"correct": label == desk}


def serve_demo(options: Options) -> None:
    """Serve a model with simulated traffic, from a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="onebit-demo-") as folder:
        url = f"http://{options.host}:{options.port}"
        threading.Thread(target=_traffic, args=(url,), daemon=True).start()
        print(f"look at {url} (Ctrl+C ends it)", flush=True)
        serve(options._replace(data=folder, database=None, workers=1))


def _traffic(url: str) -> None:
    help_desk = HelpDesk()
    # On a slow machine, compiling for the first model may take longer than clients wait.
    with Client(url, MODEL, timeout=600) as client:
        _make(client)
        while True:
            record, desk = help_desk.ticket()
            try:
                decision = client.decide(record)
                feedback = help_desk.feedback(decision.label, desk)
                if feedback is not None:
                    client.learn(decision, **feedback)
            except ServiceError:  # the service stops
                return
            time.sleep(1.0 / RATE)


def _make(client: Client) -> None:
    for _ in range(100):
        try:
            client.make(sorted(_WORDS), n_features=2**12, expiry_seconds=30, seed=0)
            client.add_shadow("soba", "SOBA", gamma=0.05)
            return
        except ServiceError:
            time.sleep(0.2)
