"""Models of a service, with the interface of learners: remote decide and learn."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any, Never, Self
from urllib.parse import quote

from onebit.core.decision import NONE_OF_THESE, Decision, new_id, refuse_unnamed

try:
    import httpx
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"a client needs {missing.name}: pip install 'onebit[client]'", name=missing.name
    ) from None

RETRIES = 5
"""How often to repeat a request that got no answer, or was told to try again."""

_TRY_AGAIN = (429, 502, 503, 504)


class ServiceError(Exception):
    """The service refused a request, or cannot be reached."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Face:
    """What both clients send, and how they read the answers."""

    def __init__(
        self, url: str, model: str, *, key: str | None = None, timeout: float = 30.0
    ) -> None:
        self.url, self.model = url.rstrip("/"), model
        self._path = f"/v1/models/{quote(model, safe='')}"
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._options: dict[str, Any] = {
            "base_url": self.url,
            "headers": headers,
            "timeout": timeout,
        }

    @staticmethod
    def _question(record: Any, among: Any, decision_id: str | None) -> dict[str, Any]:
        # With an id from the client, a repeated question is decided once.
        question = {"record": _plain(record), "id": decision_id or new_id()}
        return question if among is None else question | {"among": list(map(_plain, among))}

    @staticmethod
    def _decision(question: dict[str, Any], answer: dict[str, Any]) -> Decision:
        among = question.get("among")
        return Decision(
            question["record"],
            answer["label"],
            answer["probability"],
            None if among is None else tuple(among),
            answer["id"],
            answer["confidence"],
        )

    @staticmethod
    def _said(decision: Decision | str, correct: Any, truth: Any) -> dict[str, Any]:
        if (correct is None) == (truth is None):
            raise ValueError("learn takes either correct=... or truth=...")
        name = decision if isinstance(decision, str) else decision.id
        if name is None:
            raise ValueError(f"the service knows decisions by their id; {decision!r} has none")
        if truth is not None:
            return {"id": name, "truth": None if truth is NONE_OF_THESE else _plain(truth)}
        return {"id": name, "correct": bool(correct)}

    @staticmethod
    def _of_each(decisions: Iterable[Any], correct: Any, truth: Any) -> list[dict[str, Any]]:
        found = list(decisions)
        bits = [None] * len(found) if correct is None else list(correct)
        truths = [None] * len(found) if truth is None else list(truth)
        return [_Face._said(*one) for one in zip(found, bits, truths, strict=True)]

    @staticmethod
    def _result(response: httpx.Response) -> Any:
        """Return the content of an answer; raise an error for a refusal."""
        try:
            body = response.json() if response.content else None
        except ValueError:
            body = None
        if response.is_success:
            return body
        found = body if isinstance(body, dict) else {}
        message = found.get("error") or found.get("message") or response.reason_phrase
        # 404 is also the status for unknown models.
        if response.status_code in (409, 410, 422) or found.get("status") == "unknown":
            raise ValueError(message)
        raise ServiceError(message, response.status_code)

    @staticmethod
    def _check_heard(heard: list[dict[str, Any]]) -> None:
        for one in heard:
            if one["status"] not in ("accepted", "repeated"):
                raise ValueError(f"feedback for {one['id']!r}: {one['message']}")

    @staticmethod
    def _pause(attempt: int) -> float:
        return random.uniform(0.5, 1.0) * min(0.05 * 2**attempt, 2.0)


class Client(_Face):
    """A model of a service, with the interface of a learner.

    A request that got no answer is repeated with the same ids, so it is decided once, and learned
    from once, however often it is sent. Any number of threads may use one client.

    Parameters
    ----------
    url : str
        Of the service, such as "http://127.0.0.1:8000".
    model : str
        The name of the model.
    key : str, optional
        An API key, if the service has keys.
    timeout : float, default=30.0
        Seconds to wait for an answer.

    Examples
    --------
    >>> from onebit import Client
    >>> with Client("http://127.0.0.1:8000", "tickets") as router:  # doctest: +SKIP
    ...     decision = router.decide({"subject": "Card charged twice"})
    ...     router.learn(decision, correct=True)
    """

    def __init__(self, url: str, model: str, **options: Any) -> None:
        super().__init__(url, model, **options)
        self._http = httpx.Client(**self._options)
        self._seed: int | None = None
        """Seed of a model that may have been made, as there was no answer."""

    def decide(self, record: Any, among: Any = None, *, id: str | None = None) -> Decision:  # noqa: A002
        """Choose a label for one record: a text, a dict, or a list of numbers."""
        question = self._question(record, among, id)
        return self._decision(question, self._post("decide", question))

    def decide_many(
        self, records: Iterable[Any], among: Any = None, *, ids: Sequence[str] | None = None
    ) -> list[Decision]:
        """Choose a label for each record, in one request."""
        found = list(records)
        names = [None] * len(found) if ids is None else ids
        questions = [self._question(r, among, name) for r, name in zip(found, names, strict=True)]
        answers = self._post("decide", questions) if questions else []
        return [self._decision(*pair) for pair in zip(questions, answers, strict=True)]

    def learn(
        self,
        decision: Decision | str,
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
    ) -> None:
        """Tell whether a decision, given itself or by its id, was right, or which label is.

        The same feedback again teaches nothing. Contradicting feedback, and feedback for a decision
        that is unknown or has expired, raises a ValueError.
        """
        refuse_unnamed("learn", unnamed)
        self._check_heard([self._post("feedback", self._said(decision, correct, truth))])

    def learn_many(
        self,
        decisions: Iterable[Decision | str],
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
    ) -> None:
        """Send feedback for many decisions in one request; some may be accepted, others not."""
        refuse_unnamed("learn_many", unnamed)
        said = self._of_each(decisions, correct, truth)
        self._check_heard(self._post("feedback", said) if said else [])

    def add_classes(self, classes: Iterable[Any]) -> Self:
        """Add labels, or bring them back."""
        self._post("labels", {"add": list(map(_plain, classes))})
        return self

    def retire_classes(self, classes: Iterable[Any]) -> Self:
        """Take labels off offer."""
        self._post("labels", {"retire": list(map(_plain, classes))})
        return self

    def show(self) -> dict[str, Any]:
        """Return the details of the model, as its page shows them."""
        return self._request("GET", self._path)

    def make(self, labels: Iterable[Any], **spec: Any) -> Self:
        """Make the model; see `POST /v1/models`.

        If there was no answer, calling it again makes the same model.
        """
        # With a seed from the client, a repeated request is recognised.
        if self._seed is None:
            self._seed = secrets.randbits(53)
        body = {"name": self.model, "labels": list(map(_plain, labels)), **spec}
        if body.get("seed") is None:
            body["seed"] = self._seed
        answered = True
        try:
            self._request("POST", "/v1/models", body)
        except ServiceError as error:
            answered = error.status is not None and error.status not in _TRY_AGAIN
            raise
        finally:
            if answered:
                self._seed = None
        return self

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, verb: str, body: Any) -> Any:
        return self._request("POST", f"{self._path}/{verb}", body)

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                if attempt == RETRIES:
                    raise ServiceError(f"{self.url}: {error or type(error).__name__}") from error
            else:
                if response.status_code not in _TRY_AGAIN or attempt == RETRIES:
                    return self._result(response)
            time.sleep(self._pause(attempt))


class AsyncClient(_Face):
    """`Client` for asyncio: the same, with coroutines.

    Parameters
    ----------
    url, model, key, timeout
        As for `Client`.
    """

    def __init__(self, url: str, model: str, **options: Any) -> None:
        super().__init__(url, model, **options)
        self._http = httpx.AsyncClient(**self._options)

    async def decide(self, record: Any, among: Any = None, *, id: str | None = None) -> Decision:  # noqa: A002
        """Choose a label for one record."""
        question = self._question(record, among, id)
        return self._decision(question, await self._post("decide", question))

    async def decide_many(
        self, records: Iterable[Any], among: Any = None, *, ids: Sequence[str] | None = None
    ) -> list[Decision]:
        """Choose a label for each record, in one request."""
        found = list(records)
        names = [None] * len(found) if ids is None else ids
        questions = [self._question(r, among, name) for r, name in zip(found, names, strict=True)]
        answers = await self._post("decide", questions) if questions else []
        return [self._decision(*pair) for pair in zip(questions, answers, strict=True)]

    async def learn(
        self,
        decision: Decision | str,
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
    ) -> None:
        """Tell whether a decision was right, or which label is."""
        refuse_unnamed("learn", unnamed)
        self._check_heard([await self._post("feedback", self._said(decision, correct, truth))])

    async def learn_many(
        self,
        decisions: Iterable[Decision | str],
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
    ) -> None:
        """Send feedback for many decisions in one request."""
        refuse_unnamed("learn_many", unnamed)
        said = self._of_each(decisions, correct, truth)
        self._check_heard(await self._post("feedback", said) if said else [])

    async def show(self) -> dict[str, Any]:
        """Return the details of the model."""
        return await self._request("GET", self._path)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _post(self, verb: str, body: Any) -> Any:
        return await self._request("POST", f"{self._path}/{verb}", body)

    async def _request(self, method: str, path: str, body: Any = None) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = await self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                if attempt == RETRIES:
                    raise ServiceError(f"{self.url}: {error or type(error).__name__}") from error
            else:
                if response.status_code not in _TRY_AGAIN or attempt == RETRIES:
                    return self._result(response)
            await asyncio.sleep(self._pause(attempt))


def _plain(record: Any) -> Any:
    """Return values of NumPy and pandas as JSON types: lists, dicts, strings and numbers."""
    for name in ("tolist", "to_dict"):
        if hasattr(record, name):
            return getattr(record, name)()
    return record
