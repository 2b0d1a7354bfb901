"""Exploration as a contract: at most a share of the decisions, and what it cost and taught."""

import asyncio

import numpy as np
import pytest

from onebit.core.terms import WINDOW
from onebit.evaluation import DifferenceSequence
from onebit.serve.exploration import BITS_AT_ONCE, Exploration, ExplorationLimit
from onebit.serve.log import LogError
from onebit.serve.rows import DecisionBody
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.verify import verify
from services import in_folder

CURIOUS = {"learner": "Banditron", "parameters": {"gamma": 0.9}}
DECIDE = "/v1/models/m/decide"


def explored(service, n):
    """Return which of the n decisions explored, the oldest first."""
    rows = service.do(service.app.service.log.rows(service.live().key, 0, 10_000))
    found = ['"explored":true' in row.body for row in rows if row.kind == "decision"]
    assert len(found) == n
    return np.array(found)


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_no_thousand_decisions_explore_more_than_the_limit(tmp_path, share):
    """Of one request, of requests at the same time, and after a restart."""
    with in_folder(tmp_path) as service:
        made = service.make(max_exploration=share, **CURIOUS)
        assert made["max_exploration"] == share
        service.ask("POST", DECIDE, [{"record": f"card {i}"} for i in range(900)])

        async def together():
            send = service._http.post
            return await asyncio.gather(*(send(DECIDE, json={"record": "card"}) for _ in range(50)))

        assert {reply.status_code for reply in service.do(together())} == {200}
        before = service.snapshot()
    with in_folder(tmp_path) as service:
        assert service.snapshot() == before
        for _ in range(2):
            service.ask("POST", DECIDE, [{"record": f"card {i}"} for i in range(700)])
        found = explored(service, 2350)
        assert np.convolve(found, np.ones(WINDOW), "valid").max() <= share * WINDOW
        assert found.sum() > 1.5 * share * WINDOW or share == 0.0  # the limit is used
        assert service.model().exploring == set()
        service.ask("PATCH", "/v1/models/m", {"max_exploration": None})
        service.ask("POST", DECIDE, [{"record": f"card {i}"} for i in range(100)])
        assert explored(service, 2450)[-100:].sum() > 30

    async def verdict():
        log = SQLiteLog(tmp_path, alone=False, make=False)
        await log.open()
        try:
            return await verify(log, (await log.models())["m"])
        finally:
            await log.close()

    found = asyncio.run(verdict())
    assert (found.faults, found.checked) == ([], 2450)


def test_labels_are_drawn_with_the_probabilities_of_the_limited_policy(tmp_path):
    """In one state, with one cap: the model decides, and nothing is written."""
    with in_folder(tmp_path) as service:
        service.make(**CURIOUS)
        model, n, cap = service.model(), 3000, 0.1
        made = [model.decide("card", None, str(i), 100, cap=cap) for i in range(n)]
        greedy = model.decide("card", None, "x", 100, explore=False)[0].label
        counts = dict.fromkeys(model.learner.labels, 0)
        expected = dict.fromkeys(counts, cap / 2) | {greedy: 1.0 - cap}
        for decision, body in made:
            assert decision.probability == pytest.approx(expected[decision.label])
            assert body.explored == (decision.label != greedy)
            counts[decision.label] += 1
        for label, share in expected.items():
            assert abs(counts[label] - share * n) < 5 * (share * n) ** 0.5
        # A cap above what the learner explores changes nothing.
        p = [model.learner.policy(made[0][0].x, None, cap=one) for one in (None, 0.7, 1.0)]
        np.testing.assert_array_equal(p[0], p[1])
        np.testing.assert_array_equal(p[0], p[2])


def test_a_request_may_forbid_to_explore(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(**CURIOUS)
        many = [{"record": f"card {i}", "explore": False} for i in range(50)]
        made = service.ask("POST", DECIDE, many)
        assert {one["probability"] for one in made} == {1.0}
        assert not explored(service, 50).any()
        free = service.ask("POST", DECIDE, [{"record": "card", "id": str(i)} for i in range(30)])
        other = next(one["id"] for one in free if one["label"] != made[0]["label"])
        service.ask("POST", DECIDE, {"record": "card", "id": other, "explore": False}, 409)
        service.ask("POST", DECIDE, {"record": "card", "id": other})
        service.ask("POST", "/v1/models/m/feedback", {"id": made[0]["id"], "correct": True})
        # Beside a product, whoever decides is not overruled.
        for decides in ("product", "model"):
            settings = {"apprentice": {"decides": decides, "share": 0.5}}
            service.ask("PATCH", "/v1/models/m", settings)
            chosen = [{"record": "card", "explore": False, "chosen": "login"}] * 20
            made = service.ask("POST", DECIDE, chosen)
            assert {one["probability"] for one in made} == {1.0}
            assert len({one["label"] for one in made}) == 1
            assert (made[0]["label"] == "login") == (decides == "product")


def test_what_is_not_written_does_not_count(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make(max_exploration=0.5, **CURIOUS)

        async def fail(*_):
            raise LogError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(service.app.service.log, "append", fail)
            service.ask("POST", DECIDE, [{"record": "card"}] * 20, 503)
        assert service.model().exploring == set()
        assert service.model().exploration_cap() == 1.0


def test_another_limit_counts_what_was_explored_before(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(max_exploration=0.05, **CURIOUS)
        service.ask("POST", DECIDE, [{"record": "card"}] * 200)
        service.ask("PATCH", "/v1/models/m", {"max_exploration": 0.01})
        assert service.model().exploration_cap() == 0.0
        for wrong in (-0.1, 1.1, "0.1"):
            service.ask("PATCH", "/v1/models/m", {"max_exploration": wrong}, 422)


def test_decisions_beyond_the_window_are_forgotten():
    limit = ExplorationLimit(0.01)
    for i in range(3 * WINDOW):
        limit.add(i < 10 or i == 2 * WINDOW)
        if i < 10:
            assert limit.cap(0) == pytest.approx(0.01 * (9 - i))
        assert len(limit.explored) <= 10
    assert limit.explored == []
    assert limit.cap(0) == pytest.approx(0.1)
    assert limit.cap(8) == pytest.approx(0.02)
    assert limit.cap(10) == limit.cap(100) == 0.0


def test_the_cost_of_exploration_is_the_difference_to_the_best_guess():
    rng, found, reference = np.random.default_rng(0), Exploration(), DifferenceSequence()
    bits, weights = [], []
    for _ in range(2 * BITS_AT_ONCE + 7):
        is_explored = rng.random() < 0.2
        correct = bool(rng.random() < (0.3 if is_explored else 0.9))
        body = DecisionBody("x", "a", 0.2 if is_explored else 0.8, 1, explored=is_explored)
        found.add_bit(body, correct, float(correct))
        beside = DecisionBody("x", "a", 0.5, 1, chosen="a")
        found.add_bit(beside, correct, float(correct))
        bits.append(correct)
        weights.append(0.0 if is_explored else 1.25)
    reference.update(np.array(bits, float), np.array(weights))
    compared, expected = found.compared(), reference.to_dict()
    assert compared.keys() == expected.keys()
    for name, value in expected.items():
        assert compared[name] == pytest.approx(value)
    assert len(found.pending) == 7
    assert found.right + found.wrong == weights.count(0.0)
    assert found.right / (found.right + found.wrong) == pytest.approx(0.3, abs=0.15)


def test_a_new_label_has_at_most_its_share(tmp_path):
    """Until there is enough feedback for it; and the log reproduces every decision."""
    spec = {"learner": "Banditron", "parameters": {"gamma": 0.9}, "max_new_share": 0.01}
    with in_folder(tmp_path) as service:
        assert service.make(**spec)["max_new_share"] == 0.01
        service.ask("POST", "/v1/models/m/labels", {"add": ["fax"]})
        made = []
        for _ in range(13):
            made += service.ask("POST", DECIDE, [{"record": f"card {i}"} for i in range(100)])
        new = np.array([one["label"] == "fax" for one in made])
        assert np.convolve(new, np.ones(WINDOW), "valid").max() <= 10
        assert new.sum() >= 8
        assert service.model().choosing_new == set()
        rows = service.do(service.app.service.log.rows(service.live().key, 0, 10_000))
        bodies = [row.body for row in rows if row.kind == "decision"]
        assert sum('"is_new":true' in body for body in bodies) == new.sum()
        still = [{"record": "card", "explore": False}]
        assert service.ask("POST", DECIDE, still)[0]["label"] != "fax"
        service.ask("PATCH", "/v1/models/m", {"max_new_share": None})
        free = service.ask("POST", DECIDE, [{"record": f"card {i}"} for i in range(100)])
        assert sum(one["label"] == "fax" for one in free) > 10
        faxes = [one["id"] for one in made + free if one["label"] == "fax"]
        while len(faxes) < 100:
            more = service.ask("POST", DECIDE, [{"record": f"card {i}"} for i in range(100)])
            faxes += [one["id"] for one in more if one["label"] == "fax"]
        said = [{"id": name, "correct": True} for name in faxes[:100]]
        service.ask("POST", "/v1/models/m/feedback", said[:99])
        assert service.model().learner.is_new("fax")
        service.ask("POST", "/v1/models/m/feedback", said[99:])
        assert not service.model().learner.is_new("fax")
        service.ask("PATCH", "/v1/models/m", {"max_new_share": 0.0, "max_exploration": 0.5})
        service.ask("POST", "/v1/models/m/labels", {"add": ["post"]})
        made = service.ask("POST", DECIDE, [{"record": f"card {i}"} for i in range(300)])
        assert "post" not in {one["label"] for one in made}
        assert "fax" in {one["label"] for one in made}
        found = service.do(verify(service.app.service.log, service.live().key))
        assert found.faults == []
        assert found.checked > 1_700
