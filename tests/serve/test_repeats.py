"""Questions that are asked several times at once."""

import asyncio

from services import in_folder


def test_a_question_that_is_asked_ten_times_at_once_is_decided_once(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make()
        model, names = service.model(), []
        decide = model.decide

        def counted(record, among, name, *rest):
            names.append(name)
            return decide(record, among, name, *rest)

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
