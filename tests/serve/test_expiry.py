"""Decisions for which no feedback came in time."""

import time
from types import SimpleNamespace

from onebit.serve import decisions, expiry
from services import in_folder


def test_decisions_of_a_time_to_come_hold_up_no_others(tmp_path, monkeypatch):
    """The clock was set back, or the log is of a machine with another clock."""
    monkeypatch.setattr(expiry, "EXPIRY_SECONDS", 1000.0)
    start = time.time()
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron", expiry_seconds=10.0, expired_counts_as="wrong")

        def expired_at(seconds):
            monkeypatch.setattr(expiry, "time", SimpleNamespace(time=lambda: start + seconds))
            while service.do(expiry._expire_some(service.app.service, service.live())):
                pass
            found = service.ask("GET", "/v1/models/m/decisions")
            return {one["id"] for one in found if one.get("expired")}

        for name, seconds in {"a": 0, "early": 5000, "earlier": 4000, "b": 1, "c": 2}.items():
            monkeypatch.setattr(
                decisions, "time", SimpleNamespace(time=lambda s=seconds: start + s)
            )
            service.ask("POST", "/v1/models/m/decide", {"record": "card", "id": name})
        assert expired_at(10.5) == {"a"}
        assert expired_at(11.5) == {"a", "b"}
        assert expired_at(20) == {"a", "b", "c"}
        assert expired_at(4009) == {"a", "b", "c"}
        assert expired_at(4011) == {"a", "b", "c", "earlier"}
        assert expired_at(5011) == {"a", "b", "c", "earlier", "early"}
