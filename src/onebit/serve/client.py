"""Models of a service, with the interface of learners: remote decide and learn."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Never, Self
from urllib.parse import quote

from onebit.core.decision import NONE_OF_THESE, Decision, new_id, refuse_positional
from onebit.core.lesson import check_bit
from onebit.core.validation import short

try:
    import httpx
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"a client needs {missing.name}: pip install 'onebit[client]'", name=missing.name
    ) from None

RETRIES = 5
"""Maximum number of repetitions of a request that got no reply, or one that asks to try again."""

_TRY_AGAIN = (429, 502, 503, 504)

_LINES = {"content-type": "application/x-ndjson"}
_PART = 2**16
"""Bytes of a log that are sent at a time."""


class ServiceError(Exception):
    """The service refused a request, or cannot be reached."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Call(NamedTuple):
    """A request, what its answer becomes, and what to do once the outcome is known."""

    method: str
    path: str
    body: Any
    read: Callable[[Any], Any]
    settle: Callable[[], None]


class _Methods:
    """What both clients can do; `AsyncClient` returns a coroutine from each method.

    Parameters
    ----------
    url : str
        Of the service, such as "http://127.0.0.1:8000".
    model : str
        The name of the model.
    key : str, optional
        An API key, if the service has keys.
    timeout : float, default=30.0
        Seconds to wait for an answer; then the request is repeated, up to five times.
    """

    _open: Any
    """What opens connections: a class of httpx."""

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
        self._seed: int | None = None
        """Seed of a model that may have been made, as there was no answer."""
        self._http, self._process = self._open(**self._options), os.getpid()

    @property
    def _connections(self) -> Any:
        """The connections of this process: a forked one would share the answers of the other."""
        if self._process != os.getpid():
            self._http, self._process = self._open(**self._options), os.getpid()
        return self._http

    def _run(self, call: _Call) -> Any:
        """Send a request until there is an answer; return what it becomes."""
        raise NotImplementedError

    def _return(self, value: Any) -> Any:
        """Return a value for which no request is needed."""
        raise NotImplementedError

    # Decisions and feedback

    def decide(
        self,
        record: Any,
        among: Any = None,
        *,
        id: str | None = None,  # noqa: A002
        chosen: Any = None,
        chosen_probability: float | None = None,
        explore: bool = True,
    ) -> Any:
        """Choose a label for one record: a text, a dict, or a list of numbers.

        Parameters
        ----------
        record : object
        among : iterable of labels, optional
            The labels on offer.
        id : str, optional
            Of the decision.
        chosen : label, optional
            The choice of the product, if the model is its apprentice.
        chosen_probability : float, optional
            The probability with which the product chose it, if it has one.
        explore : bool, default=True
            If not, the best guess is chosen.

        Returns
        -------
        Decision
        """
        question = _question(record, among, id, explore)
        if chosen is not None:
            question["chosen"] = _plain(chosen)
        if chosen_probability is not None:
            question["chosen_probability"] = float(chosen_probability)
        return self._post("decide", question, lambda answer: _decision(question, answer))

    def decide_many(
        self,
        records: Iterable[Any],
        among: Any = None,
        *,
        ids: Sequence[str] | None = None,
        explore: bool = True,
    ) -> Any:
        """Choose a label for each record, in one request.

        Parameters
        ----------
        records : iterable
        among, explore
            As in `decide`, for every record.
        ids : sequence of str, optional
            One for each record.

        Returns
        -------
        list of Decision
        """
        found = list(records)
        names = [None] * len(found) if ids is None else ids
        questions = [
            _question(r, among, name, explore) for r, name in zip(found, names, strict=True)
        ]

        def read(answers: list[dict[str, Any]]) -> list[Decision]:
            return [_decision(*pair) for pair in zip(questions, answers, strict=True)]

        return self._post("decide", questions, read) if questions else self._return([])

    def explain(
        self, record: Any, label: Any = None, against: Any = None, among: Any = None
    ) -> Any:
        """Return why one label scores higher than another one, by what the model knows now: a dict.

        Parameters
        ----------
        record : object
        label : label, optional
            By default the best guess.
        against : label, optional
            By default the best guess among the others.
        among : iterable of labels, optional
            The labels on offer.
        """
        given = {"record": record, "label": label, "against": against, "among": among}
        question = {name: _plain(one) for name, one in given.items() if one is not None}
        return self._post("explain", question, lambda found: found)

    def learn(
        self,
        decision: Decision | str,
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
        reward: float | None = None,
    ) -> Any:
        """Send the feedback for a decision.

        The same feedback again teaches nothing. Contradicting feedback, and feedback for a decision
        that is unknown or has expired, raises a ValueError.

        Parameters
        ----------
        decision : Decision or str
            From `decide`, or its id.
        correct : bool, 0 or 1, optional
            Whether its label was right.
        truth : label or NONE_OF_THESE, optional
            The right label, in place of `correct`.
        reward : float in [0, 1], optional
            A fraction of right, in place of `correct`. Learners that need a bit learn from one that
            is true with this probability.
        """
        refuse_positional("learn", unnamed)
        feedback = _feedback(decision, correct, truth, reward)
        return self._post("feedback", feedback, lambda result: _check_results([result]))

    def learn_many(
        self,
        decisions: Iterable[Decision | str],
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
        reward: Any = None,
    ) -> Any:
        """Send feedback for many decisions in one request; some may be accepted, others not.

        Parameters
        ----------
        decisions : iterable of Decision or str
            Themselves, or their ids.
        correct, truth, reward : sequence, optional
            As in `learn`, one for each decision; None where another one says it.
        """
        refuse_positional("learn_many", unnamed)
        found = list(decisions)
        bits = [None] * len(found) if correct is None else list(correct)
        truths = [None] * len(found) if truth is None else list(truth)
        rewards = [None] * len(found) if reward is None else list(reward)
        feedback = [_feedback(*one) for one in zip(found, bits, truths, rewards, strict=True)]
        return self._post("feedback", feedback, _check_results) if found else self._return(None)

    def revise(
        self,
        decision: Decision | str,
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
        reward: float | None = None,
    ) -> Any:
        """Send feedback in place of what was sent before, as if it had been sent then.

        It is the first feedback if there was none. Parameters are those of `learn`.
        """
        refuse_positional("revise", unnamed)
        feedback = _feedback(decision, correct, truth, reward)
        return self._post("revise", feedback, lambda result: _check_results([result]))

    def withdraw(self, decision: Decision | str) -> Any:
        """Withdraw the feedback for a decision, as if it had never been sent."""
        body = {"id": _id_of(decision), "withdrawn": True}
        return self._post("revise", body, lambda result: _check_results([result]))

    # The model

    def make(self, labels: Iterable[Any], **spec: Any) -> Any:
        """Make the model; see `POST /v1/models`. Return the client.

        If there was no answer, calling it again makes the same model.

        Parameters
        ----------
        labels : iterable of labels, or mapping from labels to descriptions
            Descriptions are as in `describe`; None where there is none.
        **spec
            Further fields of the request.
        """
        # With a seed from the client, a repeated request is recognised.
        if self._seed is None:
            self._seed = secrets.randbits(53)
        body = {"name": self.model, "labels": _labels(labels), **spec}
        if body.get("seed") is None:
            body["seed"] = self._seed

        def forget_seed() -> None:
            self._seed = None

        return self._run(_Call("POST", "/v1/models", body, lambda _: self, forget_seed))

    def show(self) -> Any:
        """Return the details of the model, as its page shows them: a dict."""
        return self._request("GET", self._path)

    def report(self, since: float | None = None, until: float | None = None) -> Any:
        """Return how well the model does, and what to do about it, as its page shows it: a dict.

        Parameters
        ----------
        since, until : float, optional
            The range of time to report on, in seconds since 1970.
        """
        given = {"since": since, "until": until}
        query = "&".join(f"{name}={at!r}" for name, at in given.items() if at is not None)
        return self._request("GET", f"{self._path}/report?{query}")

    def newest(self, limit: int = 20) -> Any:
        """Return the newest decisions with their feedback: a list of dicts."""
        return self._request("GET", f"{self._path}/decisions?limit={limit}")

    def add_classes(self, classes: Iterable[Any]) -> Any:
        """Add labels, or bring them back. Return the client.

        Parameters
        ----------
        classes : iterable of labels, or mapping from labels to descriptions
            Descriptions are as in `describe`; None where there is none.
        """
        return self._post("labels", {"add": _labels(classes)}, lambda _: self)

    def describe(self, descriptions: Mapping[Any, Any]) -> Any:
        """Describe labels. Return the client.

        Parameters
        ----------
        descriptions : mapping from labels to records
            Such as a text for each label, in the form of what decisions are about.
        """
        return self._post("labels", {"describe": _labels(descriptions)}, lambda _: self)

    def retire_classes(self, classes: Iterable[Any]) -> Any:
        """Stop offering labels. Return the client."""
        return self._post("labels", {"retire": list(map(_plain, classes))}, lambda _: self)

    def freeze(self) -> Any:
        """Stop learning from feedback, which is still written. Return the client."""
        return self._change({"frozen": True})

    def unfreeze(self) -> Any:
        """Learn from feedback again. Return the client."""
        return self._change({"frozen": False})

    def expire(self, seconds: float | None, counts_as: str = "nothing") -> Any:
        """Set when decisions expire, None for never, and what they count as then.

        Parameters
        ----------
        seconds : float or None
        counts_as : {"nothing", "wrong"}, default="nothing"
        """
        return self._change({"expiry_seconds": seconds, "expired_counts_as": counts_as})

    def set_limits(
        self, *, max_exploration: float | None = None, max_new_share: float | None = None
    ) -> Any:
        """Limit the share of decisions that explore, and of new labels. Return the client.

        Parameters
        ----------
        max_exploration : float in [0, 1], optional
            Of any 1,000 decisions, at most this share is another label than the best guess. None
            is no limit.
        max_new_share : float in [0, 1], optional
            Of any 1,000 decisions, at most this share is a label that was added and had feedback
            fewer than 100 times. None is no limit.
        """
        limits = {"max_exploration": max_exploration, "max_new_share": max_new_share}
        return self._change(limits)

    def apprentice(self, **settings: Any) -> Any:
        """Make the model an apprentice of a product that already decides. Return the client.

        Parameters
        ----------
        decides : {"product", "model"}, optional
            Who decides from now on; at first the product.
        share : float, optional
            Share of the decisions that are left to the other one; at first zero.
        confidence : float or None, optional
            Probability of being better with which the other one takes over; None: it never
            does.
        """
        return self._change({"apprentice": settings})

    def erase(
        self,
        *,
        ids: Iterable[str] | None = None,
        field: str | Sequence[str] | None = None,
        value: Any = None,
        before: float | None = None,
    ) -> Any:
        """Erase decisions with their feedback; the model is rebuilt without them.

        Parameters
        ----------
        ids : iterable of str, optional
            Of the decisions.
        field : str or list of str, optional
            Those whose record has `value` in this field, or in one inside of others.
        value : str, int, float, bool or None
        before : float, optional
            Those that were made before this time, in seconds since 1970.

        Returns
        -------
        dict
            The numbers of `decisions` and of `rows` that were erased.
        """
        body: dict[str, Any] = {} if before is None else {"before": before}
        if ids is not None:
            body["ids"] = list(ids)
        if field is not None:
            body |= {"field": field if isinstance(field, str) else list(field)}
            body |= {"value": _plain(value)}
        return self._post("erase", body, lambda found: found)

    def delete(self) -> Any:
        """Remove the model with its log."""
        return self._request("DELETE", self._path)

    # Shadows

    def add_shadow(self, name: str, learner: str = "OneBitClassifier", **parameters: Any) -> Any:
        """Add another learner, which learns from the same log. Return the client."""
        body = {"name": name, "learner": learner, "parameters": parameters}
        return self._post("shadows", body, lambda _: self)

    def remove_shadow(self, name: str) -> Any:
        """Remove a shadow."""
        return self._request("DELETE", f"{self._path}/shadows/{quote(name, safe='')}")

    def promote(self, name: str) -> Any:
        """Make a shadow the learner that decides. Return the client."""
        return self._post(f"shadows/{quote(name, safe='')}/promote", None, lambda _: self)

    def _post(self, verb: str, body: Any, read: Callable[[Any], Any]) -> Any:
        return self._run(_Call("POST", f"{self._path}/{verb}", body, read, _nothing))

    def _change(self, settings: dict[str, Any]) -> Any:
        return self._run(_Call("PATCH", self._path, settings, lambda _: self, _nothing))

    def _request(self, method: str, path: str) -> Any:
        return self._run(_Call(method, path, None, lambda found: found, _nothing))

    def _finished(self, call: _Call, response: httpx.Response) -> Any:
        """Return what an answer becomes; raise an error for a refusal."""
        if response.status_code not in _TRY_AGAIN:
            call.settle()
        body = _result(response)
        try:
            return call.read(body)
        except (AttributeError, KeyError, TypeError):  # a proxy answers, or another service
            raise _no_answer(response) from None

    def _unreachable(self, error: Exception) -> ServiceError:
        return ServiceError(f"{self.url}: {error or type(error).__name__}")


class Client(_Methods):
    """A model of a service, with the interface of a learner.

    A request that got no answer is repeated with the same ids, so it is decided once, and learned
    from once, however often it is sent. Any number of threads may use one client. A forked process
    opens connections of its own.

    Parameters
    ----------
    url : str
        Of the service, such as "http://127.0.0.1:8000".
    model : str
        The name of the model.
    key : str, optional
        An API key, if the service has keys.
    timeout : float, default=30.0
        Seconds to wait for an answer; then the request is repeated, up to five times.

    Examples
    --------
    >>> from onebit import Client
    >>> with Client("http://127.0.0.1:8000", "tickets") as router:  # doctest: +SKIP
    ...     decision = router.decide({"subject": "Card charged twice"})
    ...     router.learn(decision, correct=True)
    """

    _open = httpx.Client

    def export_log(self, path: str | os.PathLike[str]) -> None:
        """Write the log of the model to a file, a row a line."""
        part = _part_of(path)
        try:
            with self._connections.stream("GET", f"{self._path}/log") as response:
                if not response.is_success:
                    response.read()
                    _result(response)
                with open(part, "wb") as file:
                    for content in response.iter_bytes():
                        file.write(content)
            os.replace(part, path)
        except httpx.RequestError as error:
            raise self._unreachable(error) from error
        finally:
            part.unlink(missing_ok=True)

    def import_log(self, path: str | os.PathLike[str]) -> Self:
        """Make the model from a log that was exported; it is sent once, however long it takes."""
        try:
            response = self._connections.put(
                f"{self._path}/log", content=_parts(path), headers=_LINES, timeout=None
            )
        except httpx.RequestError as error:
            raise self._unreachable(error) from error
        _result(response)
        return self

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, call: _Call) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = self._connections.request(call.method, call.path, json=call.body)
            except httpx.RequestError as error:
                if attempt == RETRIES:
                    raise self._unreachable(error) from error
            else:
                if response.status_code not in _TRY_AGAIN or attempt == RETRIES:
                    return self._finished(call, response)
            time.sleep(_pause(attempt))
        return None

    def _return(self, value: Any) -> Any:
        return value


class AsyncClient(_Methods):
    """`Client` for asyncio: the same methods, which return coroutines.

    Parameters
    ----------
    url, model, key, timeout
        As for `Client`.
    """

    _open = httpx.AsyncClient

    async def export_log(self, path: str | os.PathLike[str]) -> None:
        """Write the log of the model to a file, a row a line."""
        part = _part_of(path)
        try:
            async with self._connections.stream("GET", f"{self._path}/log") as response:
                if not response.is_success:
                    await response.aread()
                    _result(response)
                with open(part, "wb") as file:
                    async for content in response.aiter_bytes():
                        file.write(content)
            os.replace(part, path)
        except httpx.RequestError as error:
            raise self._unreachable(error) from error
        finally:
            part.unlink(missing_ok=True)

    async def import_log(self, path: str | os.PathLike[str]) -> Self:
        """Make the model from a log that was exported."""

        async def parts() -> AsyncIterator[bytes]:
            for content in _parts(path):
                yield content

        try:
            response = await self._connections.put(
                f"{self._path}/log", content=parts(), headers=_LINES, timeout=None
            )
        except httpx.RequestError as error:
            raise self._unreachable(error) from error
        _result(response)
        return self

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, call: _Call) -> Any:
        for attempt in range(RETRIES + 1):
            try:
                response = await self._connections.request(call.method, call.path, json=call.body)
            except httpx.RequestError as error:
                if attempt == RETRIES:
                    raise self._unreachable(error) from error
            else:
                if response.status_code not in _TRY_AGAIN or attempt == RETRIES:
                    return self._finished(call, response)
            await asyncio.sleep(_pause(attempt))
        return None

    async def _return(self, value: Any) -> Any:
        return value


# What is sent, and how answers are read


def _question(record: Any, among: Any, decision_id: str | None, explore: bool) -> dict[str, Any]:
    # With an id from the client, a repeated question is decided once.
    question = {"record": _plain(record), "id": decision_id or new_id()}
    if not explore:
        question["explore"] = False
    return question if among is None else question | {"among": list(map(_plain, among))}


def _labels(labels: Iterable[Any]) -> list[Any]:
    """Return labels as they are sent; a mapping has their descriptions."""
    if not isinstance(labels, Mapping):
        return list(map(_plain, labels))
    return [
        _plain(name) if x is None else {"name": _plain(name), "description": _plain(x)}
        for name, x in labels.items()
    ]


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


def _feedback(decision: Decision | str, correct: Any, truth: Any, reward: Any) -> dict[str, Any]:
    if sum(one is not None for one in (correct, truth, reward)) != 1:
        raise ValueError("learn takes one of correct=..., truth=... and reward=...")
    name = _id_of(decision)
    if truth is not None:
        return {"id": name, "truth": None if truth is NONE_OF_THESE else _plain(truth)}
    if reward is not None:
        return {"id": name, "reward": _plain(reward)}
    return {"id": name, "correct": check_bit(correct) == 1}


def _id_of(decision: Decision | str) -> str:
    name = decision if isinstance(decision, str) else decision.id
    if name is None:
        raise ValueError(f"the service knows decisions by their id; {decision!r} has none")
    return name


def _check_results(results: list[dict[str, Any]]) -> None:
    for one in results:
        if one["status"] not in ("accepted", "repeated"):
            raise ValueError(f"feedback for {one['id']!r}: {one['message']}")


def _result(response: httpx.Response) -> Any:
    """Return the content of an answer; raise an error for a refusal."""
    try:
        body = response.json() if response.content else None
    except ValueError:
        if response.is_success:
            raise _no_answer(response) from None
        body = None
    if response.is_success:
        return body
    found = body if isinstance(body, dict) else {}
    message = found.get("error") or found.get("message") or response.reason_phrase
    # 404 is also the status for unknown models.
    if response.status_code in (409, 410, 422) or found.get("status") == "unknown":
        raise ValueError(message)
    raise ServiceError(message, response.status_code)


def _no_answer(response: httpx.Response) -> ServiceError:
    """Return an error for content that no service of onebit sends."""
    content = short(response.text) if response.content else "no content"
    return ServiceError(
        f"{response.url} does not answer as a service of onebit does: {content}",
        response.status_code,
    )


def _pause(attempt: int) -> float:
    return random.uniform(0.5, 1.0) * min(0.05 * 2**attempt, 2.0)


def _nothing() -> None:
    pass


def _part_of(path: str | os.PathLike[str]) -> Path:
    """Return where to write what is not whole yet."""
    return Path(f"{os.fspath(path)}.part")


def _parts(path: str | os.PathLike[str]) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while content := file.read(_PART):
            yield content


def _plain(value: Any, *, nested: bool = False) -> Any:
    """Return a value as JSON has it.

    `Records` reads what it takes from both alike. Inside of a record (`nested`), what is missing in
    NumPy or pandas is null.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):  # of NumPy, or an Enum, too
        return str.__str__(value)
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind in ("m", "M"):  # of times in nanoseconds, `tolist` makes integers
        raise TypeError(f"a date is sent as a text, or as numbers; got {short(value)}")
    for name in ("tolist", "to_dict"):  # arrays, their scalars, and rows of tables
        if hasattr(value, name):
            return _plain(getattr(value, name)(), nested=nested)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"the names of fields are texts; got {name!r:.80}")
        return {str.__str__(name): _plain(field, nested=True) for name, field in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, nested=nested) for item in value]
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real | Decimal):
        value = float(value)
    is_missing = type(value).__name__ in ("NAType", "NaTType") or value != value
    return None if nested and is_missing else value
