"""The service in a process of its own: clients, kills and the command line."""

import asyncio
import enum
import json
import signal
import socket
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import httpx
import numpy as np
import pytest

from onebit import AsyncClient, Client
from onebit.cli import main
from onebit.core import NONE_OF_THESE
from onebit.features import Records
from onebit.serve.client import ServiceError, _plain
from services import SMALL, TICKETS, OwnProcess


def test_a_service_imports_only_what_it_uses():
    code = """
import sys
from onebit.serve.starting import import_running
import_running()
heavy = {"pandas.core", "scipy.stats._stats_py", "scipy.optimize", "sklearn.linear_model",
         "sklearn.metrics", "sklearn.pipeline", "onebit.streams", "onebit.lab", "matplotlib",
         "onebit.evaluation", "numpy.f2py.crackfortran", "opentelemetry"}
print(sorted(heavy & set(sys.modules)))
import numpy, pandas, scipy.stats
print(pandas.Series([1]).sum(), scipy.stats.norm.cdf(0.0), numpy.f2py.get_include()[-3:])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["[]", "1 0.5 src", ""]


def test_it_says_where_it_serves_once_it_does(tmp_path):
    first = OwnProcess("--data", str(tmp_path / "one"))
    said = first.process.stderr.readline()
    assert said == f"onebit serves on {first.url}\n"
    with socket.create_connection(("127.0.0.1", first.port), 5):
        pass
    command = [sys.executable, "-m", "onebit", "serve", "--port", str(first.port)]
    other = subprocess.run(
        [*command, "--data", str(tmp_path / "other")], capture_output=True, text=True, timeout=60
    )
    first.kill(signal.SIGTERM)
    assert other.returncode != 0
    assert "serves on" not in other.stderr
    assert "address already in use" in other.stderr.lower()


def lose_answers(monkeypatch, client, times):
    """Let the first answers of a service not come; return a list of those that still will not."""
    request, lost = client._http.request, [httpx.ReadTimeout("no answer")] * times

    def send(*arguments, **options):
        response = request(*arguments, **options)
        if lost:
            raise lost.pop()
        return response

    monkeypatch.setattr(client._http, "request", send)
    return lost


def test_a_client_makes_a_model_once_though_the_answer_is_lost(running, monkeypatch):
    with Client(running.url, "once") as client:
        lost = lose_answers(monkeypatch, client, 1)
        client.make(list(TICKETS), n_features=1024)
        assert not lost
        with pytest.raises(ValueError, match="there is a model"):
            client.make(list(TICKETS), n_features=1024)


def test_a_client_that_got_no_answer_makes_the_same_model_again(running, monkeypatch):
    """Not only its own tries: also a caller that tries again after the last of them."""
    monkeypatch.setattr("onebit.serve.client.RETRIES", 1)
    with Client(running.url, "again") as client:
        lost = lose_answers(monkeypatch, client, 3)
        with pytest.raises(ServiceError, match="no answer"):
            client.make(list(TICKETS), n_features=1024, seed=None)
        client.make(list(TICKETS), n_features=1024, seed=None)
        assert not lost
        with pytest.raises(ValueError, match="there is a model"):
            client.make(list(TICKETS), n_features=1024)


def test_a_client_has_the_interface_of_a_learner(running):
    with Client(running.url, "face") as client:
        client.make(list(TICKETS), **SMALL)
        decision = client.decide({"subject": "card charged twice"}, among=["billing", "login"])
        assert decision.label in decision.among
        client.learn(decision, correct=True)
        client.learn(decision, correct=True)
        with pytest.raises(ValueError, match="other feedback"):
            client.learn(decision, correct=False)
        with pytest.raises(ValueError, match="one of correct"):
            client.learn(decision)
        with pytest.raises(ValueError, match="no decision of this id"):
            client.learn("nobody", correct=True)
        client.add_classes(["fax"]).retire_classes(["login"])
        decisions = client.decide_many(list(TICKETS.values()), ids=["a", "b", "c"])
        assert [one.id for one in decisions] == ["a", "b", "c"]
        client.learn_many(decisions, truth=["fax", NONE_OF_THESE, "billing"])
        with pytest.raises(ValueError, match="nobody"):
            client.learn_many(["nobody"], correct=[True])
        seen = client.show()
        assert (seen["decisions"], seen["awaited"]) == (4, 0)
        with pytest.raises(ValueError, match="unknown label"):
            client.decide("x", among=["none"])
    with Client(running.url, "none") as client, pytest.raises(ServiceError, match="no model"):
        client.decide("x")
    with Client(running.url, "arrays") as client:
        labels = np.arange(3)
        client.make(labels, input="numbers", n_features=2)
        decision = client.decide(np.ones(2), among=labels[:2])
        client.learn(decision, truth=labels[2])
        assert client.show()["wrong"] == 1


def test_an_asynchronous_client(running):
    async def rounds():
        async with AsyncClient(running.url, "async") as client:
            assert await client.make(list(TICKETS), **SMALL) is client
            many = await asyncio.gather(*(client.decide(f"card {i}") for i in range(20)))
            await client.learn_many(many, correct=[one.label == "billing" for one in many])
            (one,) = await client.decide_many(["card"])
            await client.learn(one, truth="billing")
            assert await client.decide_many([]) == []
            await client.learn_many([], correct=[])
            return await client.show()

    assert asyncio.run(rounds())["right"] >= 1


def test_both_clients_can_do_the_same(running, tmp_path):
    names = [
        {name for name in dir(client) if not name.startswith("_")}
        for client in (Client, AsyncClient)
    ]
    assert names[0] == names[1]

    def in_turn(client, name, path):
        """Yield calls of everything that a client can do with a model."""
        yield client.make({"a": "card", "b": None}, **SMALL)
        yield client.describe({"b": {"subject": "parcel"}})
        yield client.add_classes({"c": np.str_("fax machine")})
        yield client.retire_classes(["a"])
        yield client.freeze()
        yield client.unfreeze()
        yield client.expire(1000, "wrong")
        yield client.set_limits(max_exploration=0.05)
        yield client.add_shadow("s", "Banditron", gamma=0.1)
        yield client.add_shadow("t", "Banditron")
        yield client.promote("s")
        yield client.remove_shadow("t")
        yield client.decide("card", id=f"{name}-1", explore=False)
        yield client.decide_many(["card"], ids=[f"{name}-2"], explore=False)
        yield client.learn(f"{name}-1", correct=True)
        yield client.revise(f"{name}-1", correct=True)
        yield client.erase(field=["user", "id"], value=17)
        yield client.newest(5)
        yield client.explain("card", label="b", among=["b", "c"])
        yield client.export_log(path)
        yield client.show()
        yield client.delete()
        yield client.import_log(path)
        yield client.show()

    with Client(running.url, "sync-all") as client:
        *_, before, deleted, _, after = in_turn(client, "sync", tmp_path / "sync.jsonl")
    assert (deleted, before) == (None, after)

    async def all_of_them():
        async with AsyncClient(running.url, "async-all") as client:
            return [await one for one in in_turn(client, "async", tmp_path / "async.jsonl")]

    *_, before, deleted, _, after = asyncio.run(all_of_them())
    assert (deleted, before) == (None, after)
    shown = (before["rows"], before["decisions"], before["expiry_seconds"], before["learner"])
    assert shown == (15, 2, 1000, "Banditron")
    assert before["max_exploration"] == 0.05
    described = [label["description"] for label in before["labels"]]
    assert described == ["card", '{"subject":"parcel"}', "fax machine"]
    assert [shadow["name"] for shadow in before["shadows"]] == ["previous"]
    with Client(running.url, "none") as client, pytest.raises(ServiceError, match="no model"):
        client.export_log(tmp_path / "none.jsonl")
    assert not list(tmp_path.glob("none*"))


class Plan(enum.StrEnum):
    PRO = "pro"


@pytest.mark.parametrize(
    "record",
    [
        {"amount": np.float32(0.1), "n": np.int64(3), "new": np.bool_(True)},
        {"price": Decimal("12.5"), "share": Fraction(1, 4), "plan": Plan.PRO, "x": np.str_("a b")},
        {"nested": {"a": (np.float64(1.5), 2)}, "list": np.arange(3), "missing": float("nan")},
        {"list": [np.float32("nan"), 1.0], "none": None, "row": [{"a": np.int8(1)}, "word"]},
        MappingProxyType({"a": 1}),
        "a text",
        np.str_("a text"),
    ],
    ids=str,
)
def test_what_records_take_a_client_sends(record):
    sent = json.loads(json.dumps(_plain(record), allow_nan=False))
    ours, theirs = Records().encode(record), Records().encode(sent)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.values, theirs.values)


def test_what_a_client_does_not_send():
    with pytest.raises(TypeError, match="names of fields are texts"):
        _plain({"a": {1: 2}})
    for date in (np.datetime64("2020-01-01", "ns"), np.array(["2020-01-01"], "M8[ns]")):
        with pytest.raises(TypeError, match="a date is sent as a text, or as numbers; got"):
            _plain({"a": [date]})


def test_slow_clients_hold_up_nobody(running):
    with Client(running.url, "slow") as client:
        client.make(list(TICKETS), **SMALL)
        head = b"POST /v1/models/slow/decide HTTP/1.1\r\nhost: localhost\r\n"
        head += b"content-type: application/json\r\ncontent-length: 20\r\n\r\n"
        lines = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(40)]
        for i, line in enumerate(lines):
            line.sendall((head + b'{"record":')[: 10 + 3 * i])
        for _ in range(5):
            client.learn(client.decide("card"), correct=True)
        for line in lines:
            line.close()
        assert client.show()["decisions"] == 5


def test_what_is_acknowledged_survives_a_kill(tmp_path, capsys):
    """Short form of bench/serve_drill.py."""
    told, lock = {}, threading.Lock()
    process = OwnProcess("--data", str(tmp_path))
    process.wait()
    with Client(process.url, "m") as client:
        client.make(list(TICKETS), **SMALL)

    def use():
        with httpx.Client(base_url=f"{process.url}/v1/models/m") as http:
            try:
                for i in range(10_000):
                    made = http.post("/decide", json={"record": f"card {i}"}).json()
                    with lock:
                        told[made["id"]] = None
                    http.post("/feedback", json={"id": made["id"], "correct": True})
                    with lock:
                        told[made["id"]] = True
            except httpx.TransportError:
                pass

    users = [threading.Thread(target=use) for _ in range(4)]
    for user in users:
        user.start()
    while len(told) < 200:
        users[0].join(0.01)
    process.kill()
    for user in users:
        user.join()
    again = OwnProcess("--data", str(tmp_path))
    again.wait()
    with httpx.Client(base_url=f"{again.url}/v1/models/m") as http:
        said = [{"id": name, "correct": True} for name in told]
        heard = [
            h
            for i in range(0, len(said), 500)
            for h in http.post("/feedback", json=said[i : i + 500]).json()
        ]
        for one in heard:
            # Feedback that was on its way may be in the log, or not.
            expected = {"repeated"} if told[one["id"]] else {"repeated", "accepted"}
            assert one["status"] in expected
        decisions = httpx.get(f"{again.url}/v1/models/m").json()["decisions"]
        assert len(told) <= decisions <= len(told) + 4
    again.kill(signal.SIGTERM)
    with pytest.raises(SystemExit) as end:
        main(["log", "verify", "--data", str(tmp_path)])
    printed = capsys.readouterr().out
    assert not end.value.code
    assert f"m: {2 * len(told) + decisions - len(told) + 1:,} rows, " in printed
    assert f" {decisions:,} decisions made again" in printed


def test_others_need_a_key(tmp_path, capsys):
    def command(*arguments):
        with pytest.raises(SystemExit) as end:
            main([*arguments, "--data", str(tmp_path)])
        return end.value.code, *capsys.readouterr()

    code, _, err = command("serve", "--host", "0.0.0.0")
    assert code == 2
    assert "onebit key add" in err
    code, key, _ = command("key", "add", "web", "--scopes", "decide,feedback")
    assert not code
    assert key.startswith("onebit_")
    assert command("key", "list")[1] == "web: decide,feedback\n"
    assert command("key", "add", "web")[0] == 2
    assert command("key", "add", "x", "--scopes", "root")[0] == 2
    assert not command("key", "remove", "web")[0]
    assert command("key", "remove", "web")[0] == 2
    assert command("serve", "--workers", "2")[0] == 2
    code, _, err = command("serve", "--trusted-proxy", "127.0.0.1")
    assert (code, "onebit key add" in err) == (2, True)
    assert "address, network or host name" in command("serve", "--trusted-proxy", "-nginx")[2]


def test_verify_needs_a_log(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["log", "verify", "--data", str(tmp_path / "none")])
    assert end.value.code == 2
    assert not Path(tmp_path / "none").exists()
    assert "no log.sqlite" in capsys.readouterr().err


def test_a_client_takes_feedback_by_its_name():
    with Client("http://127.0.0.1:9", "none") as client:
        for learn in (client.learn, client.learn_many):
            with pytest.raises(TypeError, match=r"correct=.*truth=.*; got True"):
                learn("an id", True)


def test_an_async_client_takes_feedback_by_its_name():
    async def learn(many):
        async with AsyncClient("http://127.0.0.1:9", "none") as client:
            await (client.learn_many if many else client.learn)("an id", True)

    for many in (False, True):
        with pytest.raises(TypeError, match=r"correct=.*truth=.*; got True"):
            asyncio.run(learn(many))
