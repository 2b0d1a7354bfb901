"""Rewards in [0, 1] as feedback: written, learned, revised, and reproduced from the log."""

import json

import numpy as np
import pytest

from onebit.evaluation import Log
from onebit.serve.verify import verify
from services import in_folder

FORM = {"learner": "LogisticThompson", "parameters": {"view": "features", "covariance": "diagonal"}}
NUMBERS = {"input": "numbers", "n_features": 2} | FORM
PATH = "/v1/models/m"


@pytest.fixture
def service(tmp_path):
    with in_folder(tmp_path / "folder") as found:
        found.make(labels=["a", "b", "c"], **NUMBERS)
        yield found


def told(service, said, status="accepted", verb="feedback"):
    found = service.send("POST", f"{PATH}/{verb}", said).json()
    assert found["status"] == status, found


def decided(service, name=None):
    question = {"record": [1.0, 0.5]} | ({} if name is None else {"id": name})
    return service.ask("POST", f"{PATH}/decide", question)


def test_rewards_are_learned_and_the_log_reproduces_the_model(service, tmp_path):
    spec = {"name": "bits", "learner": "Banditron"}
    service.ask("POST", f"{PATH}/shadows", spec)
    rewards = {"a": 0.1, "b": 0.8, "c": 0.3}
    for _ in range(120):
        made = decided(service)
        told(service, {"id": made["id"], "reward": rewards[made["label"]]})
    model = service.live("m").model
    learned = model.learner.learner
    assert learned.right_proba([[1.0, 0.5]]).argmax() == 1
    assert learned.right_proba([[1.0, 0.5]])[0, 1] == pytest.approx(0.8, abs=0.1)
    found = service.do(verify(service.app.service.log, service.live("m").key))
    assert not found.faults
    assert found.checked == 120
    rows = service.send("GET", f"{PATH}/log").content
    (tmp_path / "log.jsonl").write_bytes(rows)
    log = Log.read(tmp_path / "log.jsonl")
    assert log.is_graded
    assert set(np.unique(log.correct)) <= {0.1, 0.8, 0.3}
    headers = {"content-type": "application/x-ndjson"}
    service.send("PUT", "/v1/models/copy/log", content=rows, headers=headers)
    copied = service.live("copy").model
    for name in ("", "bits"):
        assert copied.learners[name].to_bytes() == model.learners[name].to_bytes()
    (shadow,) = service.ask("GET", PATH)["shadows"]
    assert shadow["name"] == "bits"


def test_rewards_are_compared_and_revised(service):
    decided(service, "T1")
    told(service, {"id": "T1", "reward": 0.4})
    told(service, {"id": "T1", "reward": 0.4}, "repeated")
    told(service, {"id": "T1", "reward": 0.5}, "contradiction")
    told(service, {"id": "T1", "correct": True}, "contradiction")
    told(service, {"id": "T1", "correct": True, "reward": 0.4}, "invalid")
    view = service.ask("GET", f"{PATH}/decisions")
    assert [one["reward"] for one in view if one["id"] == "T1"] == [0.4]
    told(service, {"id": "T1", "reward": 0.9}, verb="revise")
    told(service, {"id": "T1", "reward": 0.9}, "repeated", verb="revise")
    for reward in (-0.1, 1.5, "high"):
        service.ask("POST", f"{PATH}/feedback", {"id": "T1", "reward": reward}, 422)
    told(service, {"id": "T1", "withdrawn": True, "reward": 0.1}, "invalid", verb="revise")


def test_rewards_of_zero_and_one_are_bits(service):
    for name, said in (("T1", {"reward": 1.0}), ("T2", {"reward": 0}), ("T3", {"correct": True})):
        decided(service, name)
        told(service, {"id": name} | said)
    told(service, {"id": "T1", "correct": True}, "repeated")
    rows = [json.loads(line) for line in service.send("GET", f"{PATH}/log").content.splitlines()]
    bodies = [row["body"] for row in rows if row["kind"] == "feedback"]
    assert bodies == [{"correct": True}, {"correct": False}, {"correct": True}]
