"""Who is answered: holders of keys, or this machine where there never was a key."""

import asyncio
import re
import socket
from itertools import product
from types import SimpleNamespace

import httpx
import pytest

from onebit.serve.access import Access
from onebit.serve.api import RefusedError
from onebit.serve.keys import make_key
from onebit.serve.log import Key
from onebit.serve.requests import Request, RequestHead
from onebit.serve.routes import ROUTES
from services import in_folder

LIST, HEALTH, PAGE = (
    next(route for route in ROUTES if route.name == name)
    for name in ("list_models", "health", "page")
)
HERE = {b"host": b"localhost"}


@pytest.fixture
def service(tmp_path):
    with in_folder(tmp_path) as service:
        yield service


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A service with a model and keys."""
    with in_folder(tmp_path_factory.mktemp("asked")) as service:
        service.make(learner="Banditron")
        log, scopes = service.app.service.log, ("decide", "feedback", "read", "admin")
        keys = {one: service.do(make_key(log, one, [one])) for one in scopes}
        for one in scopes:
            name = f"{one} of other"
            keys[name] = service.do(make_key(log, name, [one], models=["other"]))
        service.app.access.update(service.do(log.keys()))

        def status(method, path, headers):
            media = {"content-type": "text/plain"}  # so that nothing is changed
            return service.send(method, path, headers=media | headers).status_code

        def bearer(name):
            return f"Bearer {keys[name]}"

        yield SimpleNamespace(keys=keys, status=status, bearer=bearer)


def is_answered(access, peer, route=LIST, **headers):
    found = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    try:
        access.check(route, Request(RequestHead("GET", route.template, HERE | found), peer))
    except RefusedError as error:
        return error.status not in (401, 403)
    return True


def test_keys(service):
    service.make()
    log = service.app.service.log
    keys = {
        scope: service.do(make_key(log, scope, [scope]))
        for scope in ("decide", "feedback", "admin")
    }
    service.app.access.update(service.do(log.keys()))

    def status(scope, method, path, json=None):
        key = keys.get(scope, scope)
        return service.send(
            method, path, json, headers={"authorization": f"Bearer {key}"}
        ).status_code

    decide, feedback = "/v1/models/m/decide", "/v1/models/m/feedback"
    said = {"id": "none", "correct": True}
    for scope, expected in {
        "decide": (200, 403, 403),
        "feedback": (403, 404, 403),
        "admin": (200, 404, 200),
        "nobody": (401, 401, 401),
    }.items():
        assert status(scope, "POST", decide, {"record": "x"}) == expected[0]
        assert status(scope, "POST", feedback, said) == expected[1]
        assert status(scope, "GET", "/v1/models/m") == expected[2]
    assert service.send("GET", "/metrics").status_code == 401
    assert service.send("GET", "/health").status_code == 200
    stored = (log.folder / "log.sqlite").read_bytes() + (log.folder / "log.sqlite-wal").read_bytes()
    assert not any(key.encode() in stored for key in keys.values())
    with pytest.raises(ValueError, match="no scope"):
        service.do(make_key(log, "x", ["root"]))
    for name in ("", " ", "web\nadmin: admin", "\x1b[2J"):
        with pytest.raises(ValueError, match="printed in one line"):
            service.do(make_key(log, name, ["read"]))


OPEN = {"health", "ready", "openapi", "page"}
"""What needs no key: it says nothing about models."""


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.template}")
def test_every_route_about_models_needs_a_key(asked, route):
    path = re.sub(r"{\w+}", "m", route.template)
    wrong = [{}, {"authorization": "Bearer x"}, {"authorization": f"Basic {asked.keys['admin']}"}]
    methods = [route.method, *(["HEAD"] if route.method == "GET" else [])]
    for method, headers in product(methods, wrong):
        status = asked.status(method, path, headers)
        assert (status == 401) == (route.name not in OPEN), (method, status)
    if route.name in OPEN:
        return
    for scope in ("decide", "feedback", "read"):
        for name, forbidden in ((scope, scope != route.scope), (f"{scope} of other", True)):
            status = asked.status(route.method, path, {"authorization": asked.bearer(name)})
            # A key for other models may ask for the list, which is empty.
            forbidden = forbidden and (scope != route.scope or route.name != "list_models")
            assert (status == 403) == forbidden, (name, status)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models/"),
        ("GET", "//v1/models"),
        ("GET", "/V1/models"),
        ("GET", "/v1/models/../models"),
        ("GET", "/v1/models/m/log/"),
        ("GET", "/page.js/../v1/models"),
        ("DELETE", "/health"),
        ("PUT", "/"),
        ("OPTIONS", "/v1/models"),
    ],
)
def test_no_other_way_of_asking_is_answered_without_a_key(asked, method, path):
    override = {"x-http-method-override": "GET", "x-original-url": "/health"}
    assert asked.status(method, path, override) in (401, 404, 405)


def test_without_keys_other_pages_are_not_answered(service):
    for host in ("example.org", "127.0.0.1.example.org", "localhost.example.org:80", ""):
        assert service.send("GET", "/v1/models", headers={"host": host}).status_code == 403
    for host in ("localhost", "127.0.0.1:8000", "[::1]:80"):
        assert service.send("GET", "/v1/models", headers={"host": host}).status_code == 200
    # Browsers send a POST without a body for any page, and say for which.
    service.make()
    shadow = {"name": "s", "learner": "Banditron"}
    service.ask("POST", "/v1/models/m/shadows", shadow)
    path = "/v1/models/m/shadows/s/promote"
    for origin in ("http://example.org", "null", "http://127.0.0.1:8000", "https://127.0.0.1.org"):
        service.ask("POST", path, status=403, headers={"origin": origin})
    service.ask("POST", path, headers={"origin": "http://127.0.0.1"})


def test_without_keys_the_address_of_the_connection_decides():
    access = Access()
    for peer in ("127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"):
        assert is_answered(access, peer)
    for peer in ("10.0.0.7", "203.0.113.9", "::ffff:10.0.0.7", "testclient", "", None):
        assert not is_answered(access, peer)
        assert is_answered(access, peer, HEALTH)


@pytest.mark.parametrize("name", ["forwarded", "x-forwarded-for", "x-real-ip", "via"])
def test_without_keys_what_a_proxy_passed_on_is_refused(service, name):
    assert service.send("GET", "/v1/models", headers={name: "127.0.0.1"}).status_code == 403
    assert service.send("GET", "/", headers={name: "127.0.0.1"}).status_code == 403
    assert service.send("GET", "/health", headers={name: "127.0.0.1"}).status_code == 200


@pytest.mark.parametrize("exposed", [True, False])
def test_removing_the_last_key_opens_nothing(exposed):
    access, key = Access(exposed=exposed), Key("web", "digest", "decide", 0.0)
    assert is_answered(access, "127.0.0.1") != exposed
    access.update([key])
    assert not is_answered(access, "127.0.0.1")
    access.update([])
    assert not is_answered(access, "127.0.0.1")
    assert not is_answered(access, "127.0.0.1", PAGE)
    assert is_answered(access, "203.0.113.9", HEALTH)


def test_a_running_service_whose_last_key_is_removed_answers_nobody(service):
    """With the address of the peer, and a header that names this machine."""
    service.make()
    log = service.app.service.log
    key = service.do(make_key(log, "web", ["admin"]))
    service.app.access.update(service.do(log.keys()))
    with_key = {"authorization": f"Bearer {key}"}
    assert service.send("GET", "/v1/models", headers=with_key).status_code == 200
    service.do(log.remove_key("web"))
    service.app.access.update(service.do(log.keys()))
    for path in ("/v1/models", "/metrics", "/openapi.json", "/"):
        assert service.send("GET", path, headers=with_key).status_code == 403
    assert service.send("DELETE", "/v1/models/m").status_code == 403
    assert service.send("GET", "/health").status_code == 200
    assert service.send("GET", "/ready").status_code == 200


def test_a_peer_from_elsewhere_may_not_say_that_it_is_local(service):
    transport = httpx.ASGITransport(service.app, client=("203.0.113.9", 4321))
    http = httpx.AsyncClient(transport=transport, base_url="http://localhost")
    assert service.do(http.get("/v1/models")).status_code == 403
    assert service.do(http.get("/health")).status_code == 200
    service.do(http.aclose())


def test_proxies_that_are_named_say_who_asks():
    access = Access(proxies=["10.0.0.0/8", "127.0.0.1"])
    for peer, said, client in (
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        # Whoever asks can send the header, too: what it says stands before what proxies add.
        ("10.0.0.1", "127.0.0.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "nonsense", "nonsense"),
        ("203.0.113.9", "127.0.0.1", None),
    ):
        assert access.client_of(peer, {b"x-forwarded-for": said.encode()}) == client
    assert access.client_of("203.0.113.9", {}) == "203.0.113.9"
    for given in ("10.0.0.0/99", "10.0.0.999", "proxy example", "-proxy", "a..b", ""):
        with pytest.raises(ValueError, match="address, network or host name"):
            Access(proxies=[given])


def test_proxies_may_be_given_by_their_host_names(monkeypatch):
    """As in networks of containers, where addresses change."""
    known = {"proxy": ["10.0.0.3", "10.0.0.4"], "gone": []}

    async def look_up(host, port, **_):
        if not known[host]:
            raise socket.gaierror("no such host")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in known[host]]

    access = Access(proxies=["proxy", "gone", "10.9.0.0/16"])

    def clients():
        said = {b"x-forwarded-for": b"203.0.113.9"}
        return [access.client_of(f"10.{k}", said) for k in ("0.0.3", "0.0.4", "0.0.5", "9.1.1")]

    async def resolve():
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up, raising=False)
        await access.resolve_proxies()

    theirs = "203.0.113.9"
    assert clients() == [None, None, None, theirs]
    asyncio.run(resolve())
    assert clients() == [theirs, theirs, None, theirs]
    known["proxy"] = ["10.0.0.5"]
    asyncio.run(resolve())
    assert clients() == [None, None, theirs, theirs]
    known["proxy"] = []  # a name server that does not answer takes no trust away
    asyncio.run(resolve())
    assert clients() == [None, None, theirs, theirs]
