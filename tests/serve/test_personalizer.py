"""Rank and reward by event id, as clients of the retired Personalizer service ask."""

import asyncio
import time

import numpy as np
import pytest

from onebit.serve import expiry
from onebit.serve.keys import make_key
from onebit.serve.log import Entry
from onebit.serve.personalizer import _merged
from onebit.serve.replayable import drawn_bit
from services import SMALL, in_folder

BASE = "/v1/models/news/personalizer/v1.0"
ACTIONS = [
    {"id": "politics", "features": [{"topic": "politics"}, {"length": 3}]},
    {"id": "sports", "features": [{"topic": "sports"}]},
    {"id": "music"},
]
MORNING = [{"timeOfDay": "morning"}, {"user": {"age": 31}}]


@pytest.fixture
def service(tmp_path):
    with in_folder(tmp_path) as service:
        yield service


@pytest.fixture
def news(service):
    """A service with a model that is cheap to make."""
    parameters = {"gamma": 0.5}
    labels = ["politics", "sports"]
    service.make("news", labels, learner="Banditron", parameters=parameters, **SMALL)
    return service


def rank(service, status=201, actions=ACTIONS, context=MORNING, **more):
    body = {"contextFeatures": context, "actions": actions} | more
    return service.ask("POST", f"{BASE}/rank", body, status)


def reward(service, event, value, status=204):
    return service.ask("POST", f"{BASE}/events/{event}/reward", {"value": value}, status)


def activate(service, event, status=204):
    return service.ask("POST", f"{BASE}/events/{event}/activate", status=status)


def test_an_event_is_a_decision_and_its_reward_is_feedback(news):
    found = rank(news, eventId="e1", deferActivation=False)
    assert found["eventId"] == "e1"
    p = {one["id"]: one["probability"] for one in found["ranking"]}
    assert set(p) == {"politics", "sports", "music"}
    assert sum(p.values()) == pytest.approx(1.0)
    assert found["ranking"][0]["id"] == found["rewardActionId"]
    (made,) = news.ask("GET", "/v1/models/news/decisions?limit=1")
    assert (made["id"], made["label"]) == ("e1", found["rewardActionId"])
    assert made["probability"] == p[found["rewardActionId"]]
    assert made["record"] == {"timeOfDay": "morning", "user": {"age": 31}}
    reward(news, "e1", 1.0)
    reward(news, "e1", 1.0)
    reward(news, "e1", 0.0)  # the first one counts
    seen = news.ask("GET", "/v1/models/news")
    assert (seen["right"], seen["wrong"], seen["awaited"]) == (1, 0, 0)
    assert rank(news)["eventId"]


def test_the_same_event_again_is_the_same_decision(news):
    found = rank(news, eventId="e1")
    for i in range(4):
        reward(news, rank(news)["eventId"], i % 2)
    again = rank(news, eventId="e1")
    assert again["rewardActionId"] == found["rewardActionId"]
    assert again["ranking"][0] == found["ranking"][0]
    assert sum(one["probability"] for one in again["ranking"]) == pytest.approx(1.0)
    rank(news, 409, eventId="e1", context=[{"timeOfDay": "evening"}])


def test_excluded_and_retired_actions_keep_their_places(news):
    for excluded in (["politics"], ["sports", "nobody"], ["politics", "sports"]):
        found = rank(news, excludedActions=excluded)
        left = [one["id"] for one in ACTIONS if one["id"] not in excluded]
        assert found["rewardActionId"] in left
        for one, action in zip(found["ranking"], ACTIONS, strict=True):
            is_out = action["id"] in excluded
            assert (one["probability"] == 0.0) == is_out
            assert not is_out or one["id"] == action["id"]
    rank(news, 422, excludedActions=["politics", "sports", "music"])
    news.ask("POST", "/v1/models/news/labels", {"retire": ["music"]})
    assert rank(news)["ranking"][2] == {"id": "music", "probability": 0.0}


def test_new_actions_become_labels_with_their_features(service):
    service.make("news", ["politics", "sports"], **SMALL)
    rank(service)
    assert service.ask("GET", "/v1/models/news")["rows"] == 3
    rank(service)
    found = service.ask("GET", "/v1/models/news")
    assert (found["rows"], len(found["labels"])) == (4, 3)
    tags = [{"topic": "chess"}, {"topic": ["sports", "board"]}, {"topic": "games"}]
    rank(service, actions=[*ACTIONS, {"id": "chess", "features": tags}])
    labels = service.ask("GET", "/v1/models/news")["labels"]
    assert labels[-1]["description"] == '{"topic":["chess","sports","board","games"]}'
    assert labels[2]["description"] is None


def test_actions_that_many_requests_bring_are_added_once(news):
    async def together():
        body = {"actions": ACTIONS}
        send = news._http.post
        return await asyncio.gather(*(send(f"{BASE}/rank", json=body) for _ in range(4)))

    assert [reply.status_code for reply in news.do(together())] == [201] * 4
    assert len(news.ask("GET", "/v1/models/news")["labels"]) == 3


def test_the_first_action_is_the_choice_of_the_product(news):
    news.ask("PATCH", "/v1/models/news", {"apprentice": {"share": 0.5}})
    found = [rank(news) for _ in range(150)]
    for one in found:
        p = {action["id"]: action["probability"] for action in one["ranking"]}
        assert p["politics"] >= 0.5
        assert sum(p.values()) == pytest.approx(1.0)
    assert {"politics"} < {one["rewardActionId"] for one in found}
    news.ask("PATCH", "/v1/models/news", {"apprentice": {"share": 0}})
    found = rank(news)
    assert [one["probability"] for one in found["ranking"]] == [1.0, 0.0, 0.0]
    assert rank(news, excludedActions=["politics"])["rewardActionId"] == "sports"


def test_a_bit_is_drawn_from_a_reward_with_that_probability():
    events = [f"event {i}" for i in range(4000)]
    for value in (0.0, 0.25, 0.9, 1.0):
        bits = [drawn_bit(event, value) for event in events]
        assert np.mean(bits) == pytest.approx(value, abs=0.03)
        assert bits == [drawn_bit(event, value) for event in events]


@pytest.mark.parametrize("counts_as", ["wrong", "nothing"])
def test_a_deferred_event_counts_once_it_is_activated(news, counts_as):
    """As the default reward of zero, an event without a reward counts as wrong, if it was shown."""
    for name in ("shown", "hidden", "activated", "rewarded"):
        rank(news, eventId=name, deferActivation=name != "shown")
    activate(news, "activated")
    activate(news, "activated")
    activate(news, "shown")
    activate(news, "nobody", 404)
    reward(news, "rewarded", 1.0)
    activate(news, "rewarded")
    settings = {"expiry_seconds": 1e-6, "expired_counts_as": counts_as}
    news.ask("PATCH", "/v1/models/news", settings)
    live = news.live("news")
    while news.do(expiry._expire_some(news.app.service, live)):
        pass
    seen = news.ask("GET", "/v1/models/news")
    assert (seen["right"], seen["wrong"]) == (1, 2 * (counts_as == "wrong"))
    assert (seen["expired"], seen["awaited"]) == (3, 0)
    reward(news, "hidden", 1.0)  # too late, as the rewards after the waiting time were there
    assert news.ask("GET", "/v1/models/news")["right"] == 1
    lines = news.send("GET", "/v1/models/news/log").content
    headers = {"content-type": "application/x-ndjson"}
    reply = news.send("PUT", "/v1/models/copy/log", content=lines, headers=headers)
    assert reply.status_code == 200, reply.text
    assert news.snapshot("copy") == news.snapshot("news")
    first = next(line for line in lines.splitlines() if b'"activation"' in line)
    n = lines.count(b"\n") + 1
    for wrong in (first, first.replace(b'"activated"', b'"nobody"')):
        number = first.partition(b",")[0]
        wrong = lines + wrong.replace(number, b'{"n":%d' % n)
        reply = news.send("PUT", "/v1/models/wrong/log", content=wrong, headers=headers)
        assert reply.status_code == 422
        assert f"row {n}" in reply.json()["error"]


def test_an_erased_event_leaves_nothing(news):
    rank(news, eventId="gone", deferActivation=True, context=[{"name": "somebody"}])
    activate(news, "gone")
    reward(news, rank(news, eventId="kept")["eventId"], 1.0)
    news.ask("POST", "/v1/models/news/erase", {"ids": ["gone"]})
    lines = news.send("GET", "/v1/models/news/log").content
    assert b"gone" not in lines
    assert b"somebody" not in lines
    headers = {"content-type": "application/x-ndjson"}
    reply = news.send("PUT", "/v1/models/copy/log", content=lines, headers=headers)
    assert reply.status_code == 200, reply.text
    assert news.snapshot("copy") == news.snapshot("news")
    activate(news, "gone", 404)

    async def late():
        """Activate it as another process, which does not know yet, and erase that, too."""
        log, live = news.app.service.log, news.app.service.live["news"]
        await log.append([Entry(live.key, "activation", "gone", 0.0, "{}")])
        written = await log.find(live.key, ["gone"])
        await log.sweep(live.key, 1, written[0].n)
        return written, await log.find(live.key, ["gone"])

    before, after = news.do(late())
    assert (len(before), after) == (1, [])


def test_features_of_one_name_are_merged_in_linear_time():
    """One request with 130,000 of them, which is a megabyte, held up all others for 19 s."""
    assert _merged([{"a": 1, "b": [2]}, {"a": [3, 4]}, {"a": 5}]) == {"a": [1, 3, 4, 5], "b": [2]}
    start = time.process_time()
    assert len(_merged([{"a": 1}] * 130_000)["a"]) == 130_000
    assert time.process_time() - start < 3.0


def test_what_a_request_can_get_wrong(news):
    for wrong in (
        {"actions": []},
        {"actions": [{"features": []}]},
        {"actions": [{"id": "a"}, {"id": "a"}]},
        {"actions": [{"id": "x" * 201}]},
        {"context": [{"x": 1}, 3]},
        {"context": {"x": 1}},
        {"eventId": 3},
    ):
        rank(news, 422, **wrong)
    for value in (-1, 1.5, "1", None):
        reward(news, "e1", value, 422)
    reward(news, "e1", 1.0, 404)
    rank(news, actions=[{"id": "sports", "features": None}], context=None, excludedActions=None)
    news.ask("POST", BASE.replace("news", "none") + "/rank", {"actions": ACTIONS}, 404)


def test_the_key_may_be_in_the_header_of_the_old_clients(news):
    """Only a key that may change labels brings new actions."""
    log = news.app.service.log

    async def keys():
        made = [
            await make_key(log, name, [scope]) for name, scope in (("a", "decide"), ("b", "admin"))
        ]
        news.app.access.update(await log.keys())
        return made

    narrow, wide = news.do(keys())

    def status(key, actions, name="Ocp-Apim-Subscription-Key"):
        body = {"actions": actions}
        return news.send("POST", f"{BASE}/rank", body, headers={name: key}).status_code

    assert status(narrow, ACTIONS[:2]) == 201
    assert status(narrow, ACTIONS) == 403
    assert status(wide, ACTIONS) == 201
    assert status(narrow, ACTIONS) == 201
    assert status(f"Bearer {narrow}", ACTIONS, "Authorization") == 201
    assert status("wrong", ACTIONS) == 401
    assert status("", ACTIONS) == 401
