"""Keys: for some models, for some time, for some requests a second."""

import sqlite3
import time

import pytest

from onebit.serve import keys
from onebit.serve.api import RefusedError
from onebit.serve.keys import Grant, Keyring, digest_of, make_key
from onebit.serve.log import Key
from services import in_folder


@pytest.fixture
def service(tmp_path):
    with in_folder(tmp_path) as service:
        yield service


class Holder:
    """Who has a key, and sends requests with it."""

    def __init__(self, service, name, scopes, **limits):
        self._service, log = service, service.app.service.log
        self._key = service.do(make_key(log, name, scopes, **limits))
        service.app.access.update(service.do(log.keys()))

    def send(self, method, path, json=None):
        headers = {"authorization": f"Bearer {self._key}"}
        return self._service.send(method, path, json, headers=headers)

    def status(self, method, path, json=None):
        return self.send(method, path, json).status_code


def test_a_key_may_be_for_some_models(service):
    for name in ("ours", "also", "theirs"):
        service.make(name)
    limited = Holder(service, "limited", ["admin"], models=["ours", "also", "later"])
    everyone = Holder(service, "everyone", ["admin"])
    for name, expected in (("ours", 200), ("also", 200), ("theirs", 403), ("none", 403)):
        assert limited.status("POST", f"/v1/models/{name}/decide", {"record": "x"}) == expected
        assert limited.status("GET", f"/v1/models/{name}") == expected
        assert limited.status("GET", f"/v1/models/{name}/log") == expected
        assert limited.status("PATCH", f"/v1/models/{name}", {"frozen": True}) == expected
    for name in ("theirs", "none"):
        assert limited.status("DELETE", f"/v1/models/{name}") == 403
        assert limited.status("PUT", f"/v1/models/{name}/log") == 403
    assert [one["name"] for one in limited.send("GET", "/v1/models").json()] == ["also", "ours"]
    assert len(everyone.send("GET", "/v1/models").json()) == 3
    # Figures of the whole service are for keys of all models.
    assert (limited.status("GET", "/metrics"), everyone.status("GET", "/metrics")) == (403, 200)
    for name, expected in (("later", 200), ("other", 403)):
        body = {"name": name, "labels": ["a", "b"], "learner": "Banditron", "n_features": 8}
        assert limited.status("POST", "/v1/models", body) == expected
    assert limited.status("GET", "/openapi.json") == limited.status("GET", "/") == 200


def test_a_scope_holds_for_the_models_of_a_key(service):
    service.make()
    reader = Holder(service, "reader", ["read"], models=["m"])
    assert reader.status("GET", "/v1/models/m") == 200
    assert reader.status("POST", "/v1/models/m/decide", {"record": "x"}) == 403


def test_metrics_and_page_need_no_more_than_the_scope_read(service):
    service.make()
    reader, decider = Holder(service, "reader", ["read"]), Holder(service, "d", ["decide"])
    for path in ("/metrics", "/v1/models", "/v1/models/m", "/v1/models/m/decisions"):
        assert (reader.status("GET", path), decider.status("GET", path)) == (200, 403)
    for method, path in (("DELETE", "/v1/models/m"), ("GET", "/v1/models/m/log")):
        assert reader.status(method, path) == 403


def test_a_key_expires(service, monkeypatch):
    service.make()
    now = time.time()
    holder = Holder(service, "short", ["decide"], expires=now + 60)
    assert holder.status("POST", "/v1/models/m/decide", {"record": "x"}) == 200
    monkeypatch.setattr(keys.time, "time", lambda: now + 61)
    reply = holder.send("POST", "/v1/models/m/decide", {"record": "x"})
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert "expired" in reply.json()["error"]
    # Expired keys open nothing either.
    assert service.send("GET", "/v1/models").status_code == 401


def test_a_key_has_a_rate(service, monkeypatch):
    service.make()
    clock = [100.0]
    monkeypatch.setattr(keys.time, "monotonic", lambda: clock[0])
    holder = Holder(service, "slow", ["decide", "feedback"], rate=2)
    fast = Holder(service, "fast", ["decide"])

    def decide(n=1, of=holder):
        body = {"record": "x"} if n == 1 else [{"record": "x"}] * n
        return of.send("POST", "/v1/models/m/decide", body)

    assert [decide().status_code for _ in range(4)] == [200, 200, 429, 429]
    assert [decide(of=fast).status_code for _ in range(5)] == [200] * 5
    # Reading the keys again, as happens every few seconds, gives nothing back.
    log = service.app.service.log
    service.app.access.update(service.do(log.keys()))
    reply = decide()
    assert (reply.status_code, reply.headers.get_list("retry-after")) == (429, ["1"])
    clock[0] += 0.5
    assert [decide().status_code for _ in range(2)] == [200, 429]
    # Items of a list count: ten need five seconds.
    clock[0] += 1.0
    assert decide(10).status_code == 200
    clock[0] += 4.0
    reply = decide()
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
    clock[0] += 0.5
    assert decide().status_code == 200
    assert service.model().meta.statistics.decisions == 2 + 5 + 1 + 10 + 1


def test_a_rate_below_one_a_second_allows_single_requests(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(keys.time, "monotonic", lambda: clock[0])
    grant = Grant(Key("slow", "digest", "decide", 0.0, rate=0.1))
    grant.use()
    for second in range(10):
        clock[0] = second + 1e-6  # what a second brings is rounded
        with pytest.raises(RefusedError) as refused:
            grant.use()
        assert refused.value.headers == {"retry-after": str(10 - second)}
    clock[0] = 10.0
    grant.use()


def test_a_key_that_changes_is_another(monkeypatch):
    ring, key = Keyring(), Key("web", digest_of("x"), "decide", 0.0, rate=1.0)
    ring.update([key])
    ring.grant_of("x").use()
    ring.update([key])
    with pytest.raises(RefusedError, match="1 requests a second"):
        ring.grant_of("x").use()
    ring.update([key._replace(rate=5.0)])
    ring.grant_of("x").use()
    ring.update([])
    for given in ("x", "", "y"):
        with pytest.raises(RefusedError, match="a key is needed"):
            ring.grant_of(given)


def test_keys_are_kept_with_their_limits(service):
    log = service.app.service.log
    limits = {"models": ["b", "a", "b"], "expires": 2e9, "rate": 0.5}
    service.do(make_key(log, "limited", ["read"], **limits))
    service.do(make_key(log, "plain", ["read"]))
    limited, plain = service.do(log.keys())
    assert (limited.models, limited.expires, limited.rate) == ("a,b", 2e9, 0.5)
    assert (plain.models, plain.expires, plain.rate) == ("", None, None)
    for given in ({"models": ["a,b"]}, {"models": [""]}, {"rate": 0.0}, {"rate": float("nan")}):
        with pytest.raises(ValueError, match=r"name of a model|positive number"):
            service.do(make_key(log, "bad", ["read"], **given))


def test_keys_of_the_version_before_have_no_limits(tmp_path):
    with in_folder(tmp_path) as service:
        service.do(make_key(service.app.service.log, "web", ["read"]))
    with sqlite3.connect(tmp_path / "log.sqlite") as db:
        for column in ("models", "expires", "rate"):
            db.execute(f"ALTER TABLE key DROP COLUMN {column}")
        db.execute("DROP INDEX log_amendments")
        db.execute("PRAGMA user_version = 2")
    db.close()
    with in_folder(tmp_path) as service:
        (key,) = service.do(service.app.service.log.keys())
    assert (key.name, key.models, key.expires, key.rate) == ("web", "", None, None)
