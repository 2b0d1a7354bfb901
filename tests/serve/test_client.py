"""What clients send, and what they make of answers; tests/serve/test_processes.py has a service."""

import asyncio
import json

import httpx
import pytest

from onebit import NONE_OF_THESE, AsyncClient, Client, Decision
from onebit.serve import client as module
from onebit.serve.client import RETRIES, ServiceError
from processes import run_python

URL = "http://service"
ANSWER = {"label": "billing", "probability": 0.5, "id": "T1", "confidence": 0.75}


@pytest.fixture(params=[Client, AsyncClient])
def ask(request, monkeypatch):
    """Return a function that runs a call on a client whose service answers as it is told.

    It returns what the call returned, or the error that it raised, and the requests.
    """
    monkeypatch.setattr(module, "_pause", lambda attempt: 0.0)

    def run(call, *answers):
        seen, left = [], list(answers)

        def answer(sent):
            seen.append(sent)
            found = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(found, Exception):
                raise found
            if isinstance(found, httpx.Response):
                return found
            status, body = found
            return httpx.Response(status, json=body)

        transport = httpx.MockTransport(answer)
        found = request.param(URL, "tickets", key="secret")
        options = found._options | {"transport": transport}

        async def later():
            async with httpx.AsyncClient(**options) as found._http:
                return await call(found)

        try:
            if request.param is AsyncClient:
                return asyncio.run(later()), seen
            with httpx.Client(**options) as found._http:
                return call(found), seen
        except (ValueError, ServiceError) as error:
            return error, seen

    return run


class Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """An answer whose connection ends before it is whole."""

    def __iter__(self):
        yield b"{"
        raise httpx.ReadError("cut")

    async def __aiter__(self):
        yield b"{"
        raise httpx.ReadError("cut")


class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
    """An answer that is not compressed as its head says."""

    def __iter__(self):
        yield b"plain"

    async def __aiter__(self):
        yield b"plain"


def decide(client):
    return client.decide({"subject": "Card charged twice"}, among=["billing", "login"], id="T1")


@pytest.mark.parametrize("failures", [0, 1, RETRIES])
@pytest.mark.parametrize("failure", [(503, None), (429, None), (502, None), httpx.ReadError("cut")])
def test_a_request_is_repeated_until_there_is_an_answer(ask, failures, failure):
    found, seen = ask(decide, *[failure] * failures, (200, ANSWER))
    assert found.x == {"subject": "Card charged twice"}
    assert (found.label, found.probability, found.confidence) == ("billing", 0.5, 0.75)
    assert (found.among, found.id) == (("billing", "login"), "T1")
    assert len(seen) == failures + 1
    assert {sent.content for sent in seen} == {seen[0].content}
    assert json.loads(seen[0].content) == {
        "record": {"subject": "Card charged twice"},
        "id": "T1",
        "among": ["billing", "login"],
    }
    assert str(seen[0].url) == f"{URL}/v1/models/tickets/decide"
    assert seen[0].headers["authorization"] == "Bearer secret"


def test_no_answer_after_all_tries_is_an_error(ask):
    error, seen = ask(decide, httpx.ConnectError("refused"))
    assert len(seen) == RETRIES + 1
    assert isinstance(error, ServiceError)
    assert (str(error), error.status) == (f"{URL}: refused", None)
    error, seen = ask(decide, (503, {"error": "the disk is full"}))
    assert len(seen) == RETRIES + 1
    assert isinstance(error, ServiceError)
    assert (str(error), error.status) == ("the disk is full", 503)


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (422, {"error": "no label"}, ValueError, "no label"),
        (409, {"message": "another label"}, ValueError, "another label"),
        (410, None, ValueError, "Gone"),
        (404, {"status": "unknown", "message": "no such id"}, ValueError, "no such id"),
        (404, {"error": "no model"}, ServiceError, "no model"),
        (500, None, ServiceError, "Internal Server Error"),
        (401, ["odd"], ServiceError, "Unauthorized"),
    ],
)
def test_a_refusal_is_an_error_at_once(ask, status, body, kind, message):
    error, seen = ask(decide, (status, body))
    assert len(seen) == 1
    assert type(error) is kind
    assert str(error) == message


@pytest.mark.parametrize(
    ("decision", "feedback", "body"),
    [
        ("T1", {"correct": True}, {"id": "T1", "correct": True}),
        ("T1", {"correct": 0}, {"id": "T1", "correct": False}),
        (Decision("x", "a", 0.5, None, "T2"), {"truth": "b"}, {"id": "T2", "truth": "b"}),
        ("T1", {"truth": NONE_OF_THESE}, {"id": "T1", "truth": None}),
    ],
)
def test_feedback_is_sent_by_the_id_of_the_decision(ask, decision, feedback, body):
    _, seen = ask(lambda client: client.learn(decision, **feedback), (200, {"status": "accepted"}))
    assert [json.loads(sent.content) for sent in seen] == [body]


def test_feedback_is_revised_and_withdrawn_by_the_id_of_the_decision(ask):
    decision, answer = Decision("x", "a", 0.5, None, "T2"), (200, {"status": "accepted"})
    for call, body in (
        (lambda client: client.revise(decision, truth="b"), {"id": "T2", "truth": "b"}),
        (lambda client: client.revise("T1", correct=False), {"id": "T1", "correct": False}),
        (lambda client: client.withdraw(decision), {"id": "T2", "withdrawn": True}),
    ):
        _, (sent,) = ask(call, answer)
        assert (sent.url.path, json.loads(sent.content)) == ("/v1/models/tickets/revise", body)


@pytest.mark.parametrize(
    "selection",
    [{"ids": ["a", "b"]}, {"field": "user", "value": None}, {"field": ["a", "b"], "value": 1}],
    ids=str,
)
def test_what_to_erase_is_sent(ask, selection):
    found, (sent,) = ask(lambda client: client.erase(**selection), (200, {"rows": 3}))
    assert (sent.url.path, json.loads(sent.content)) == ("/v1/models/tickets/erase", selection)
    assert found == {"rows": 3}


@pytest.mark.parametrize(
    ("decision", "feedback", "message"),
    [
        ("T1", {}, "one of correct"),
        ("T1", {"correct": True, "truth": "a"}, "one of correct"),
        (Decision("x", "a", 0.5), {"correct": True}, "has none"),
        ("T1", {"correct": "no"}, "True or False, or 1 or 0; got 'no'"),
        ("T1", {"correct": 0.3}, "True or False, or 1 or 0; got 0.3"),
        ("T1", {"correct": float("nan")}, "True or False, or 1 or 0; got nan"),
        ("T1", {"correct": [0]}, "True or False, or 1 or 0; got [0]"),
    ],
)
def test_feedback_that_cannot_be_sent(ask, decision, feedback, message):
    answer = 200, {"status": "accepted"}
    for verb in ("learn", "revise"):
        error, seen = ask(
            lambda client, verb=verb: getattr(client, verb)(decision, **feedback), answer
        )
        assert isinstance(error, ValueError)
        assert message in str(error)
        assert seen == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"text": "<html>Please log in</html>"}, "<html>Please log in</html>"),
        ({}, "no content"),
        ({"json": {"label": "billing"}}, '{"label":"billing"}'),
        ({"json": []}, "'[]'"),
        ({"headers": {"content-encoding": "gzip"}, "stream": Broken()}, "decompress"),
    ],
)
def test_what_is_no_answer_of_a_service_is_an_error(ask, answer, message):
    """A proxy may answer in place of the service."""
    error, _ = ask(decide, *(httpx.Response(200, **answer) for _ in range(RETRIES + 1)))
    assert type(error) is ServiceError
    assert message in str(error)
    assert URL in str(error)


def test_many_lessons_are_one_request_whose_first_refusal_is_the_error(ask):
    def learn(client):
        return client.learn_many(["T1", "T2"], correct=[True, False])

    accepted = [{"id": "T1", "status": "accepted"}, {"id": "T2", "status": "repeated"}]
    assert ask(learn, (200, accepted))[0] is None
    refused = [accepted[0], {"id": "T2", "status": "conflict", "message": "was right before"}]
    error, seen = ask(learn, (200, refused))
    assert str(error) == "feedback for 'T2': was right before"
    assert json.loads(seen[0].content) == [
        {"id": "T1", "correct": True},
        {"id": "T2", "correct": False},
    ]


def test_pauses_double_up_to_two_seconds():
    for attempt, longest in [(0, 0.05), (1, 0.1), (2, 0.2), (5, 1.6), (6, 2.0), (20, 2.0)]:
        pauses = [module._pause(attempt) for _ in range(200)]
        assert longest / 2 <= min(pauses) <= 0.6 * longest
        assert 0.9 * longest <= max(pauses) <= longest


def test_a_log_that_was_not_read_whole_leaves_no_file(ask, tmp_path):
    path = tmp_path / "log.jsonl"
    error, _ = ask(lambda client: client.export_log(path), httpx.Response(200, stream=Cut()))
    assert str(error) == f"{URL}: cut"
    error, _ = ask(lambda client: client.export_log(path), (404, {"error": "no model"}))
    assert str(error) == "no model"
    assert list(tmp_path.iterdir()) == []
    ask(lambda client: client.export_log(path), (200, {"n": 1}))
    assert path.read_bytes() == b'{"n":1}'
    assert list(tmp_path.iterdir()) == [path]


ONE_CONNECTION = """
    import json, os, socket, sys, threading
    from onebit import Client

    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        for number in (1, 2, 3):
            connection, _ = listening.accept()
            threading.Thread(target=answer, args=(connection, number), daemon=True).start()

    def answer(connection, number):
        while received := connection.recv(2**16):
            if b"}" not in received:  # the head
                continue
            found = {"id": "T1", "label": number, "probability": 1.0, "confidence": None}
            body = json.dumps(found).encode()
            head = b"HTTP/1.1 200 OK\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body)
            connection.sendall(head + body)

    threading.Thread(target=serve, daemon=True).start()
    client = Client("http://127.0.0.1:%d" % listening.getsockname()[1], "tickets", timeout=10)

    def connections():
        return [client.decide({"subject": "x"}, id="T1").label for _ in range(2)]

    print(connections(), flush=True)
    child = os.fork()
    if not child:
        print(connections(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(connections(), flush=True)
"""


def test_a_forked_process_has_connections_of_its_own():
    """Two processes with one connection would read each other's answers."""
    printed = run_python(ONE_CONNECTION, check=True).stdout
    assert printed.splitlines() == ["[1, 1]", "[2, 2]", "[1, 1]"]
