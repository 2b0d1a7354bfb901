"""Questions that are asked several times at once, or together with others."""

import asyncio

from services import in_folder


def test_a_question_that_is_asked_ten_times_at_once_is_decided_once(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make()
        model, names = service.model(), []
        decide = model.decide

        def counted(record, among, name, *rest, **terms):
            names.append(name)
            return decide(record, among, name, *rest, **terms)

        monkeypatch.setattr(model, "decide", counted)

        async def together(question):
            path = "/v1/models/m/decide"
            return await asyncio.gather(
                *(service._http.post(path, json=question) for _ in range(10))
            )

        for number, (question, ids) in enumerate(
            [
                ({"record": "card", "id": "T1"}, ["T1"]),
                ([{"record": "card", "id": "T2"}, {"record": "late", "id": "T3"}], ["T2", "T3"]),
            ]
        ):
            replies = service.do(together(question))
            assert {reply.status_code for reply in replies} == {200}
            assert len({reply.text for reply in replies}) == 1
            assert names == ids, number
            names.clear()


def test_a_refusal_says_which_of_several_questions_it_is_about(tmp_path):
    with in_folder(tmp_path) as service:
        service.make()
        path, wrong = "/v1/models/m/decide", {"record": "card", "among": ["fax"]}
        assert not service.ask("POST", path, wrong, 422)["error"].startswith("item")
        assert not service.ask("POST", path, [wrong], 422)["error"].startswith("item")
        several = [{"record": "card"}, wrong]
        assert service.ask("POST", path, several, 422)["error"].startswith("item 1: ")


def test_each_label_has_its_own_right_and_wrong_decisions(tmp_path):
    with in_folder(tmp_path) as service:
        service.make()
        seen = {}
        for i in range(12):
            made = service.ask("POST", "/v1/models/m/decide", {"record": f"card {i}"})
            correct = i % 3 == 0
            service.ask("POST", "/v1/models/m/feedback", {"id": made["id"], "correct": correct})
            chosen, right = seen.get(made["label"], (0, 0))
            seen[made["label"]] = chosen + 1, right + correct
        for label in service.ask("GET", "/v1/models/m")["labels"]:
            chosen, right = seen.get(label["label"], (0, 0))
            assert (label["chosen"], label["right"]) == (chosen, right)
            assert label["wrong"] == chosen - right
