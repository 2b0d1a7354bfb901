"""Parts of the service by themselves: what they count, compare, refuse and describe."""

import asyncio
import itertools
import json

import msgspec
import numpy as np
import pytest

from onebit import learners
from onebit.core import NONE_OF_THESE
from onebit.evaluation import ConfidenceSequence
from onebit.serve import estimates, model, statistics
from onebit.serve.committing import Committer
from onebit.serve.keys import make_key
from onebit.serve.log import Entry, Snapshot, UnavailableError
from onebit.serve.model import Model, agree, is_right
from onebit.serve.protocol import LONGEST_HEAD, whole_head
from onebit.serve.replayable import ReplayableLearner, _check_size, feedback_for
from onebit.serve.routes import ROUTES
from onebit.serve.rows import FeedbackBody, LearnerSpec, ModelSpec, Row, ShadowBody, text_of
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.statistics import Statistics
from onebit.serve.writer import PendingRow, Writer
from services import SMALL, TICKETS, in_folder

RIGHT, WRONG = FeedbackBody(correct=True), FeedbackBody(correct=False)
A, B, NONE = (FeedbackBody(truth=truth) for truth in ("a", "b", None))
HALF = FeedbackBody(reward=0.5)
EXPIRED, GONE = FeedbackBody(expired="wrong"), FeedbackBody(expired="nothing")


@pytest.mark.parametrize(
    ("feedback", "right", "said"),
    [
        (RIGHT, True, {"correct": True}),
        (WRONG, False, {"correct": False}),
        (A, True, {"truth": "a"}),
        (B, False, {"truth": "b"}),
        (NONE, False, {"truth": NONE_OF_THESE}),
        (EXPIRED, False, {"correct": False}),
        (GONE, None, {}),
        (FeedbackBody(withdrawn=True), None, {}),
        (FeedbackBody(truth="later"), False, {"truth": NONE_OF_THESE}),
        (FeedbackBody(reward=0.9), True, {"reward": 0.9, "drawn": True}),
        (FeedbackBody(reward=0.01), False, {"reward": 0.01, "drawn": False}),
    ],
    ids=str,
)
def test_what_feedback_says_of_a_label(feedback, right, said):
    assert is_right(feedback, "a", "T1") is right
    assert feedback_for(feedback, ["a", "b"], "T1") == said


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (RIGHT, A, True), (A, RIGHT, True), (WRONG, B, True), (B, WRONG, True), (RIGHT, B, False),
        (A, B, False), (A, A, True), (B, NONE, False), (NONE, WRONG, True), (RIGHT, WRONG, False),
        (HALF, HALF, True), (HALF, RIGHT, False), (HALF, A, False),
    ],
    ids=str,
)  # fmt: skip
def test_feedback_agrees_as_far_as_both_say_anything(one, other, same):
    assert agree(one, other, "a") == same


def test_segments_are_merged_when_they_are_old():
    found, labels = Statistics(), "ab"
    for t in range(4000):
        found.add_decision(float(t), labels[t % 2], t % 5 == 0)
        truth = "b" if t % 8 == 0 else None
        found.add_bit(t + 0.5, labels[t % 2], t % 4 > 0, 0.5, truth, 2)
    sizes = [one.feedback for one in found.segments]
    assert sum(sizes) == found.feedback == 4000
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) <= {statistics.SEGMENT_BITS * 2**level for level in range(7)}
    assert max(map(sizes.count, set(sizes))) <= statistics.LEVEL_SEGMENTS
    for one, other in itertools.pairwise(found.segments):
        assert one.start < one.end < other.start
    whole = statistics.merged(found.segments)
    assert (whole.start, whole.end) == (0.0, 3999.5)
    assert (whole.decisions, whole.explored, whole.right) == (4000, 800, 3000)
    assert (whole.chance, whole.labels["a"].chosen) == (2000.0, 2000)
    assert whole.labels["a"].truths == {"b": 500}
    assert whole.labels["b"].right_weight == 4000.0
    assert whole.labels["b"].right_steps == {"4": 2000}  # a weight of two: one doubling
    assert (whole.labels["a"].right, whole.labels["a"].wrong_steps) == (1000, {"4": 1000})
    found.answered = 3990
    assert found.awaited == 10


def test_the_newest_marks_are_kept():
    found = Statistics()
    for t in range(statistics.MOST_MARKS + 3):
        found.add_mark(float(t), "labels added", [t])
    assert len(found.marks) == statistics.MOST_MARKS
    assert found.marks[0] == (3.0, "labels added", ["3"])


def test_a_tally_is_kept_by_the_label_as_text():
    found = Statistics()
    found.of(3).chosen += 1
    found.of("3").right += 1
    assert (found.labels["3"].chosen, found.labels["3"].right, len(found.labels)) == (1, 1, 1)


def test_an_accuracy_is_that_of_a_sequence():
    for right, wrong in [(3, 0), (0, 4), (40, 13)]:
        sequence = ConfidenceSequence()
        sequence.update([True] * right + [False] * wrong)
        found = estimates.accuracy(right, wrong)
        expected = (sequence.mean, sequence.low, sequence.high)
        assert (found.estimate, found.low, found.high) == pytest.approx(expected, abs=1e-9)
    assert estimates.accuracy(0, 0) is None
    bits = [(1.0, 2.0), (0.0, 0.5), (1.0, 0.0)]
    state = estimates.watched(estimates.watched(None, bits[:1]), bits[1:])
    sequence = ConfidenceSequence()
    sequence.update([1, 0, 1], [2.0, 0.5, 0.0])
    assert state == pytest.approx(sequence.to_dict())
    assert estimates.watched(state, []) == state
    assert estimates.interval_of(ConfidenceSequence().to_dict()) is None
    heavy = ConfidenceSequence()
    heavy.update([True], [9.0])
    assert estimates.interval_of(heavy.to_dict()).estimate == 1.0


def segments_of(*parts):
    """Return n segments of ten bits, with this share right."""
    return [(round(10 * share), 10 - round(10 * share)) for n, share in parts for _ in range(n)]


def test_changes_are_where_intervals_do_not_overlap():
    assert estimates.changes([]) == estimates.changes([(100, 0)]) == []
    assert estimates.changes(segments_of((60, 0.9))) == []
    assert estimates.changes(segments_of((40, 0.3), (40, 0.9))) == [40]
    assert estimates.changes(segments_of((40, 0.9), (40, 0.5), (60, 0.1))) == [40, 80]
    for before, after, found in [(29, 90, []), (30, 90, [1]), (90, 29, []), (90, 30, [1])]:
        assert estimates.changes([(before, 0), (0, after)]) == found


def test_a_fall_counts_if_it_lasts():
    def fall(*parts):
        bits = segments_of(*parts)
        return estimates.fall(bits, estimates.changes(bits))

    assert fall((60, 0.9)) is None
    assert fall((40, 0.3), (40, 0.9)) is None  # it rose
    assert fall((40, 0.9), (20, 0.3), (40, 0.9)) is None  # it is as before
    at, before, now = fall((40, 0.9), (40, 0.3))
    assert (at, round(before.estimate, 2), round(now.estimate, 2)) == (40, 0.9, 0.3)
    at, before, now = fall((40, 0.9), (40, 0.1), (40, 0.5))
    assert (at, round(before.estimate, 2), round(now.estimate, 2)) == (40, 0.9, 0.5)


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_interval_of_a_constant_label_holds(share):
    """From the decisions of a good policy, which hardly chooses the label where it is wrong."""
    missed = 0
    for seed in range(60):
        rng, found = np.random.default_rng(seed), Statistics()
        for _ in range(300):
            truth = "a" if rng.random() < share else "b"
            p = 0.9 if truth == "a" else 0.1  # a good policy, that explores
            label, probability = ("a", p) if rng.random() < p else ("b", 1.0 - p)
            found.add_decision(0.0, label, False)
            found.add_bit(0.0, label, label == truth, probability)
        whole = statistics.merged(found.segments)
        seen = estimates.constant_accuracy("a", whole.labels, 300, 0.9)
        missed += not seen.low <= share <= seen.high
        assert seen.high - seen.low < 0.35
    assert missed <= 6


def row(n, kind, body, name=None):
    return Row(1, n, kind, name, 0.0, text_of(body))


def first(**more):
    spec = ModelSpec(labels=["a", "b", "c"], **SMALL | more)
    return row(1, "model", spec)


def test_a_log_begins_with_a_model():
    assert Model.begin(first()).n == 1
    for wrong, words in [
        (first()._replace(n=2), "begins with row 1"),
        (first()._replace(kind="labels"), "begins with row 1"),
        (first(seed=None), "has the seed"),
        (row(1, "model", ModelSpec(labels=["a", "a"], **SMALL)), "a label twice"),
    ]:
        with pytest.raises(ValueError, match=words):
            Model.begin(wrong)


def test_rows_are_applied_in_their_order():
    made = Model.begin(first())
    for wrong, words in [
        (row(3, "feedback", RIGHT, "x"), "row 3 does not follow row 1"),
        (row(2, "feedback", RIGHT, "x"), "which nobody decided"),
        (first()._replace(n=2), "which only the first row is"),
    ]:
        with pytest.raises(ValueError, match=words):
            made.apply(wrong)
    assert made.n == 1


def test_only_the_last_decisions_are_kept_in_memory(monkeypatch):
    monkeypatch.setattr(model, "MOST_AWAITED", 2)
    made = Model.begin(first())
    for i, name in enumerate("xyz"):
        _, body = made.decide("card", None, name, 99)
        made.apply(row(2 + i, "decision", body, name))
    assert list(made.awaited) == ["y", "z"]
    assert made.meta.statistics.decisions == 3


def test_shadows_have_a_limit_and_names_of_their_own(monkeypatch):
    monkeypatch.setattr(model, "MOST_SHADOWS", 2)
    made = Model.begin(first())
    banditron = LearnerSpec(learner="Banditron")
    made._change(ShadowBody("add", "s", banditron), 2)
    with pytest.raises(ValueError, match="already"):
        made._change(ShadowBody("add", "s", banditron), 3)
    made._change(ShadowBody("add", "t", banditron), 3)
    with pytest.raises(ValueError, match="at most 2 shadows"):
        made._change(ShadowBody("add", "u", banditron), 4)
    for action in ("remove", "promote"):
        with pytest.raises(ValueError, match="no shadow 'u'"):
            made._change(ShadowBody(action, "u"), 4)
    made._change(ShadowBody("remove", "s"), 4)
    assert [name for name, _ in made.shadows] == ["t"]
    old = made.learner
    made._change(ShadowBody("promote", "t"), 5)
    assert made.learners["previous"] is old
    assert made.meta.decider.learner == "Banditron"
    assert made.meta.shadows["previous"].since == 5
    with pytest.raises(ValueError, match="the learners that it names"):
        Model.restore(made.snapshot()[0], {"": old.to_bytes()})


def test_bits_of_shadows_are_weighted_and_counted_in_blocks(monkeypatch):
    monkeypatch.setattr(model, "BITS_AT_ONCE", 3)
    made = Model.begin(first())
    made._change(ShadowBody("add", "s", LearnerSpec(learner="Banditron")), 2)
    made.meta.n = 2
    expected = []
    for i in range(4):
        decision, body = made.decide(f"card {i}", None, f"d{i}", 99)
        p = made.learners["s"].probability_of(decision)
        expected.append((float(i % 2), p / decision.probability))
        made.apply(row(made.n + 1, "decision", body, f"d{i}"))
        made.apply(row(made.n + 1, "feedback", FeedbackBody(correct=bool(i % 2)), f"d{i}"))
    shadow = made.meta.shadows["s"]
    assert shadow.pending == pytest.approx(expected[3:])
    assert shadow.estimate == pytest.approx(estimates.watched(None, expected[:3]))


def test_draws_depend_on_the_seed_the_id_and_the_row():
    spec = ModelSpec(
        labels=["a", "b", "c"], learner="Banditron", parameters={"gamma": 1.0}, **SMALL
    )

    def labels(seed, names):
        learner = ReplayableLearner.begin(
            msgspec.structs.replace(spec, seed=seed), spec, spec.labels
        )
        x = learner.example("card")
        return [learner.decide(x, None, name).label for name in names]

    names = [f"t{i}" for i in range(30)]
    assert labels(1, names) == labels(1, names[::-1])[::-1]
    assert labels(1, names) != labels(2, names)
    assert len(set(labels(1, names))) == 3


FULL = {"covariance": "full"}
ONE_BIT = "OneBitClassifier"


@pytest.mark.parametrize(
    ("learner", "parameters", "n_features", "n_labels", "more"),
    [
        ("Banditron", {}, 2**20, 16, 17),
        ("SOBA", FULL, 2**8, 2**4, 2**4 + 1),
        (ONE_BIT, {}, 2**14, 2**10, 2**10 + 1),
        (ONE_BIT, FULL, 2**10, 16, 17),
        (ONE_BIT, {"views": "cells"}, 20_000, 39, 40),
        (ONE_BIT, {"views": "products"}, 60, 4, 5),
        ("SoftmaxThompson", {"view": "cells"}, 20_000, 41, 42),
        ("SoftmaxThompson", {"view": "products"} | FULL, 60, 4, 5),
        ("LogisticThompson", {"view": "products"}, 60, 8_000, 9_000),
    ],
)
def test_a_learner_of_too_many_weights_is_refused(learner, parameters, n_features, n_labels, more):
    """Tables of cells are much larger than features; they took all memory."""
    made = getattr(learners, learner)(**parameters)._at_size(n_features, n_labels)
    _check_size(made, n_features, n_labels)
    with pytest.raises(ValueError, match="a model has at most 16,777,216"):
        _check_size(made, n_features, more)


def test_labels_that_a_learner_has_no_room_for_are_refused():
    """A learner of few labels has cells, and keeps them when labels come."""
    spec = ModelSpec(labels=["a", "b"], input="numbers", n_features=20, seed=0)
    learner = ReplayableLearner.begin(spec, spec, spec.labels)
    learner.change_labels([f"{i}" for i in range(20)], [])
    with pytest.raises(ValueError, match="labels from the start"):
        learner.change_labels([f"more {i}" for i in range(978)], [])
    assert len(learner.labels) == 22
    labels = [f"{i}" for i in range(1000)]
    spec = ModelSpec(labels=labels, input="numbers", n_features=20, seed=0)
    assert ReplayableLearner.begin(spec, spec, labels).learner.members_[-1].name == "line"


def test_explored_is_another_label_than_the_best_on_offer():
    spec = ModelSpec(labels=["a", "b", "c"], learner="Banditron", **SMALL)
    learner = ReplayableLearner.begin(spec, spec, spec.labels)
    x = learner.example("card")
    scores = learner.learner._run.scores
    decision = learner.decide(x)
    for label, among, expected in [
        ("a", None, False), ("b", None, True), ("b", ("b", "c"), False), ("c", ("b", "c"), True),
    ]:  # fmt: skip
        decision.label, decision.among = label, among
        scores[:] = 3.0, 2.0, 1.0
        assert learner.explored(decision) == expected


def test_a_committer_hands_results_and_errors_to_the_loop():
    async def work():
        committer = Committer()
        results = [committer.submit(lambda: 7), committer.submit(lambda: 1 / 0)]
        cancelled = committer.submit(lambda: 8)
        cancelled.cancel()
        assert committer.submitted == 3
        assert await results[0] == 7
        with pytest.raises(ZeroDivisionError):
            await results[1]
        await asyncio.sleep(0.05)
        assert committer.submitted == 0
        committer.end()

    asyncio.run(work())


HEAD = b"POST /v1/models/m/decide HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\n\r\n"


@pytest.mark.parametrize(
    "content",
    [
        HEAD.replace(b"POST", b"GET"),
        HEAD.replace(b"1.1", b"1.0"),
        HEAD.replace(b"12", b""),
        HEAD.replace(b"12", b"-1"),
        HEAD.replace(b"12", b"1234567890"),
        HEAD.replace(b"host: x", b"transfer-encoding: chunked"),
        HEAD.replace(b"host: x", b"expect: 100-continue"),
        HEAD.replace(b"host: x", b"connection: close"),
        HEAD.replace(b"host: x", b"host: x\r\nhost: y"),
        HEAD.replace(b"decide", b"decide?x=1"),
        HEAD.replace(b"decide", b"%64ecide"),
        HEAD.replace(b"/v1", b"http://x/v1"),
        HEAD[:-2],
        b"nonsense\r\n\r\n",
        HEAD + b"x",
    ],
)
def test_unusual_heads_are_for_asgi(content):
    assert whole_head(content) is None


def test_usual_heads_are_for_the_direct_entry_point():
    found = whole_head(HEAD)
    assert (found.head.path, found.length) == ("/v1/models/m/decide", 12)
    assert found.head.headers[b"host"] == b"x"
    assert whole_head(HEAD.replace(b"12", b"123456789")).length == 123_456_789
    assert LONGEST_HEAD == 2048


def import_of(service, lines, status, name="copy"):
    content = "\n".join(json.dumps(line) for line in lines).encode()
    headers = {"content-type": "application/x-ndjson"}
    reply = service.send("PUT", f"/v1/models/{name}/log", content=content, headers=headers)
    assert reply.status_code == status, reply.text
    return reply.json()


def test_logs_that_cannot_be_imported_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("onebit.serve.importing.LONGEST_LINE", 5_000)
    with in_folder(tmp_path) as service:
        service.make(labels=list(TICKETS))
        service.rounds(3)
        text = service.send("GET", "/v1/models/m/log").text
        lines = [json.loads(line) for line in text.splitlines()]
        decision, feedback = lines[1], lines[2]
        assert (decision["kind"], feedback["kind"]) == ("decision", "feedback")

        def changed(at, **items):
            return [line | items if i == at else line for i, line in enumerate(lines)]

        both = {"correct": True, "truth": "login"}
        seedless = {key: value for key, value in lines[0]["body"].items() if key != "seed"}
        cases = [
            ([], "empty"),
            (lines[1:], "row 1"),
            (lines[:1] + lines[2:], "row 2 is expected"),
            (changed(1, id=None), "have an id"),
            (changed(0, id="x"), "have an id"),
            ([*lines[:2], lines[0] | {"n": 3}], "the first row makes the model"),
            (changed(0, body=seedless), "seed"),
            (changed(2, body=both), "one of correct, truth, reward and expired"),
            (changed(2, body={}), "one of correct, truth, reward and expired"),
            (changed(2, id="other"), "other"),
            (changed(3, id=decision["id"]), "of its kind and id already"),
            (changed(1, body=decision["body"] | {"label": "fax"}), "fax"),
            ([lines[0], decision | {"body": {"record": "x" * 6_000}}], "at most 5,000 bytes"),
        ]  # fmt: skip
        for wrong, words in cases:
            assert words in import_of(service, wrong, 422)["error"], words
        import_of(service, lines, 422, "not a name")
        import_of(service, lines, 409, "m")
        assert [one["name"] for one in service.ask("GET", "/v1/models")] == ["m"]
        made = import_of(service, lines, 200)
        assert (made["rows"], made["decisions"]) == (7, 3)
        assert service.snapshot("copy") == service.snapshot("m")
        log = service.app.service.log
        assert log._database.read.execute("SELECT count(*) FROM model").fetchone() == (2,)
        assert log._database.read.execute("SELECT count(*) FROM log").fetchone() == (14,)


def test_the_newest_decisions_are_shown_with_their_feedback(tmp_path):
    with in_folder(tmp_path) as service:
        service.make()
        made = service.ask(
            "POST", "/v1/models/m/decide", [{"record": f"card {i}"} for i in range(4)]
        )
        ids = [one["id"] for one in made]
        service.ask("POST", "/v1/models/m/feedback", {"id": ids[0], "correct": False})
        service.ask("POST", "/v1/models/m/feedback", {"id": ids[1], "truth": "login"})
        service.ask("POST", "/v1/models/m/feedback", {"id": ids[2], "truth": None})
        seen = service.ask("GET", "/v1/models/m/decisions?limit=9")
        assert [one["id"] for one in seen] == ids[::-1]
        assert [one["record"] for one in seen] == [f"card {i}" for i in (3, 2, 1, 0)]
        rights = [one.get("correct") for one in seen]  # what is not known is left out
        assert rights == [None, False, made[1]["label"] == "login", False]
        assert [one.get("truth") for one in seen] == [None, None, "login", None]
        assert [one["probability"] for one in seen[::-1]] == [one["probability"] for one in made]
        assert not any("expired" in one for one in seen)
        assert len(service.ask("GET", "/v1/models/m/decisions?limit=2")) == 2
        assert len(service.ask("GET", "/v1/models/m/decisions")) == 4


def test_every_path_is_described_with_its_refusals(tmp_path):
    with in_folder(tmp_path) as service:
        found = service.ask("GET", "/openapi.json")
    refused = {
        f"{method.upper()} {path}": {int(status) for status in what["responses"]} - {200, 201, 204}
        for path, methods in found["paths"].items()
        for method, what in methods.items()
    }
    for one in [route for route in ROUTES if route.summary]:
        expected = set(one.refuses)
        for applies, statuses in [
            (one.scope is not None, {401, 403, 422, 429}),
            ("{model}" in one.template, {414}),
            (one.body is not None, {400, 408, 413, 415}),
            (one.method != "GET", {503}),
        ]:
            expected |= statuses if applies else set()
        assert refused.pop(f"{one.method} {one.template}") == expected
        assert 404 in expected or "{model}" not in one.template or one.method == "PUT"
    assert refused == {}


@pytest.mark.parametrize(("n_parts", "sizes"), [(1, [5, 5, 5, 3]), (2, [6, 6, 6]), (9, [9, 9])])
def test_a_batch_ends_with_the_request_that_fills_it(n_parts, sizes, monkeypatch):
    monkeypatch.setattr("onebit.serve.writer.MOST_ROWS", 5)
    seen, numbers = [], []

    class AtOnce:
        at_once, deadline = True, None

        async def append(self, entries):
            seen.append(len(entries))
            return list(range(len(entries)))

    async def work():
        writer = Writer(AtOnce(), lambda live, parts, mine: numbers.append((live, mine)))
        part = PendingRow(Entry(1, "labels", None, 0.0, ""), None)
        asked = [writer.write(i, [part] * n_parts) for i in range(18 // n_parts)]
        writer.start()
        await writer.stop()
        assert [future.result() for future in asked] == [mine for _, mine in numbers]

    asyncio.run(work())
    assert seen == sizes
    assert [live for live, _ in numbers] == list(range(18 // n_parts))
    assert {len(mine) for _, mine in numbers} == {n_parts}


def test_rows_that_waited_too_long_are_refused_and_others_keep_their_deadline(monkeypatch):
    """A batch that is written late leaves those behind it too little time for another failure."""
    clock, given = [100.0], []
    monkeypatch.setattr("onebit.serve.writer.time.monotonic", lambda: clock[0])

    class Late:
        at_once, deadline = True, 8.0

        async def append(self, entries, seconds):
            given.append((len(entries), seconds))
            if len(given) == 1:
                waiting.append(writer.write(0, [row]))
                clock[0] += 5.0
                waiting.append(writer.write(0, [row] * 2))
                clock[0] += 2.0
            return [1] * len(entries)

    async def work():
        nonlocal writer
        writer = Writer(Late(), lambda *_: None)
        waiting.append(writer.write(0, [row]))
        writer.start()
        await writer.stop()

    row, waiting = PendingRow(Entry(1, "labels", None, 0.0, ""), None), []
    writer = None
    asyncio.run(work())
    assert given == [(1, 8.0), (2, 6.0)]
    assert (waiting[0].result(), waiting[2].result()) == ([1], [1, 1])
    with pytest.raises(UnavailableError, match="waited too long"):
        waiting[1].result()


def test_a_commit_is_on_disk_before_it_returns(tmp_path):
    async def work():
        log = SQLiteLog(tmp_path)
        await log.open()
        found = [
            log._database.write.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        ]
        await log.close()
        return found

    assert asyncio.run(work()) == [2, "wal"]  # 2 is FULL


def test_old_snapshots_and_their_files_are_deleted(tmp_path):
    async def work():
        log = SQLiteLog(tmp_path)
        await log.open()
        m, other = [await log.add_model(name, 0.0, "{}") for name in "mo"]
        await log.add_snapshot(other, Snapshot(1, b"{}", {"a": b"other"}), 2)
        for n in range(1, 6):
            await log.add_snapshot(m, Snapshot(n, b"%d" % n, {"a": b"%d" % n, "b": b""}), 2)
        kept = [found._replace(code=None) async for found in log.snapshots(m)]
        assert kept == [Snapshot(n, b"%d" % n, {"a": b"%d" % n, "b": b""}) for n in (5, 4)]
        assert len([found async for found in log.snapshots(other)]) == 1
        await log.close()

    asyncio.run(work())
    assert len(list((tmp_path / "snapshots").iterdir())) == 2 * 2 + 1


def test_a_key_has_at_least_one_scope(tmp_path):
    with in_folder(tmp_path) as service:
        log = service.app.service.log
        for scopes, words in [(["root"], "no scope 'root'"), ([], "at least one scope")]:
            with pytest.raises(ValueError, match=words):
                service.do(make_key(log, "x", scopes))
        service.do(make_key(log, "x", ["decide", "admin", "decide"]))
        (key,) = service.do(log.keys())
        assert (key.name, key.scopes) == ("x", "admin,decide")
