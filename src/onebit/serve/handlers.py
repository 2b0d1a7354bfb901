"""What the service does for each route: functions of the application and a request."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import msgspec

from onebit.core.validation import short
from onebit.serve import decisions, erasing, feedback, importing, revising, views
from onebit.serve.api import (
    LATEST_TIME,
    DecisionRequest,
    FeedbackResult,
    NewModel,
    NewShadow,
    RefusedError,
)
from onebit.serve.live import LiveModel
from onebit.serve.replaying import exported
from onebit.serve.report import report_of
from onebit.serve.requests import Reply, Request, stream_body
from onebit.serve.rows import LabelsBody, LearnerSpec, ModelSettings, ShadowBody
from onebit.serve.slicing import in_parts

if TYPE_CHECKING:
    from onebit.serve.app import App

_STATUS = {"unknown": 404, "expired": 410, "contradiction": 409, "invalid": 422}
"""Status of the reply to refused feedback for one decision."""

_PAGE_PARTS = ("answers", "chart", "dom", "labels", "why")
PAGE_FILES = {
    "/": "page.html",
    "/page.css": "page.css",
    "/page.js": "page.js",
    **{f"/page_{part}.js": f"page_{part}.js" for part in _PAGE_PARTS},
}
_PAGE_MEDIA = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_PAGE_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; "
        b"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]

_encode = msgspec.json.Encoder().encode


# Decisions and feedback


async def decide(app: App, request: Request) -> Reply:
    """Decide for one record, or for each of a list."""
    live, body = await _model(app, request), request.body
    if isinstance(body, DecisionRequest):
        return Reply(_encode((await decisions.decide(app.service, live, [body]))[0]))
    return Reply(_encode(await decisions.decide(app.service, live, body)))


async def give_feedback(app: App, request: Request) -> Reply:
    """Accept feedback for one decision, or for each of a list."""
    return await _accept(app, request, feedback.give_feedback)


async def revise_feedback(app: App, request: Request) -> Reply:
    """Accept feedback in place of earlier feedback, for one decision, or for each of a list."""
    return await _accept(app, request, revising.revise)


async def _accept(
    app: App, request: Request, accept: Callable[..., Awaitable[list[FeedbackResult]]]
) -> Reply:
    live, body = await _model(app, request), request.body
    if isinstance(body, list):
        return Reply(_encode(await accept(app.service, live, body)))
    (result,) = await accept(app.service, live, [body])
    return Reply(_encode(result), _STATUS.get(result.status, 200))


async def newest_decisions(app: App, request: Request) -> Reply:
    """Show the newest decisions, with their feedback."""
    live = await _model(app, request)
    query = parse_qs(request.head.query.decode("latin-1"))
    limit = query.get("limit", ["20"])[-1]
    if not re.fullmatch(r"[0-9]{1,3}", limit) or not 1 <= int(limit) <= 200:
        raise RefusedError(422, f"limit is a number from 1 to 200; got {short(limit)}")
    return Reply(_encode(await views.newest(app.service.log, live, int(limit))))


async def explain(app: App, request: Request) -> Reply:
    """Explain why one label scores higher than another one."""
    live, body = await _model(app, request), request.body
    try:
        view = views.explanation_of(live.model, body, app.limits.features)
    except (ValueError, TypeError) as error:
        raise RefusedError(422, str(error)) from None
    return Reply(_encode(view))


# Models


async def _model(app: App, request: Request) -> LiveModel:
    return await app.service.find(request.parameters["model"])


def _view(live: LiveModel) -> Reply:
    return Reply(_encode(views.view_of(live)))


async def list_models(app: App, request: Request) -> Reply:
    """List the models that the key of the request is for."""
    live, unread = app.service.live, app.service.unread
    limited = None if request.grant is None else request.grant.models
    allowed = live.keys() | unread.keys() if limited is None else limited
    shown = await views.list_of(
        [one for name, one in live.items() if name in allowed],
        [name for name in unread if name in allowed and name not in live],
    )
    return Reply(_encode(shown))


async def make_model(app: App, request: Request) -> Reply:
    """Make a model."""
    body: NewModel = request.body
    if request.grant is not None:
        request.grant.check_model(body.name)
    return _view(await app.service.make(body))


async def show_model(app: App, request: Request) -> Reply:
    """Show a model, and how well it does over time."""
    facts = await views.facts_of(app.service.log, await _model(app, request))
    return Reply(_encode(await asyncio.to_thread(views.detail_of, facts)))


async def report_model(app: App, request: Request) -> Reply:
    """Report how well a model does, and what to do about it."""
    facts = await views.facts_of(app.service.log, await _model(app, request))
    query = parse_qs(request.head.query.decode("latin-1"))
    since, until = (_time(query, name) for name in ("since", "until"))
    return Reply(_encode(await asyncio.to_thread(report_of, facts, since, until)))


def _time(query: dict[str, list[str]], name: str) -> float | None:
    """Return a time of a query, in seconds since 1970."""
    given = query.get(name, [""])[-1]
    is_time = re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", given)
    if given and (not is_time or float(given) > LATEST_TIME):
        raise RefusedError(422, f"{name} is in seconds since 1970; got {short(given)}")
    return float(given) if given else None


async def change_model(app: App, request: Request) -> Reply:
    """Change the settings of a model."""
    live, settings = await _model(app, request), request.body
    if settings == ModelSettings():
        raise RefusedError(422, "there is nothing to change")
    await app.service.change_settings(live, settings)
    return _view(live)


async def remove_model(app: App, request: Request) -> Reply:
    """Remove a model with its log."""
    await app.service.remove(request.parameters["model"])
    return Reply(b"", 204)


async def erase(app: App, request: Request) -> Reply:
    """Erase decisions with their feedback."""
    live = await _model(app, request)
    return Reply(_encode(await erasing.erase(app.service, live, request.body)))


async def change_labels(app: App, request: Request) -> Reply:
    """Add, retire and describe labels."""
    live = await _model(app, request)
    labels: LabelsBody = request.body
    await app.service.change_labels(live, labels)
    return _view(live)


async def add_shadow(app: App, request: Request) -> Reply:
    """Add a shadow."""
    live = await _model(app, request)
    body: NewShadow = request.body
    spec = LearnerSpec(learner=body.learner, parameters=body.parameters)
    await app.service.change_shadow(live, ShadowBody("add", body.name, spec))
    return _view(live)


async def remove_shadow(app: App, request: Request) -> Reply:
    """Remove a shadow."""
    live, shadow = await _model(app, request), request.parameters["shadow"]
    await app.service.change_shadow(live, ShadowBody("remove", shadow))
    return Reply(b"", 204)


async def promote_shadow(app: App, request: Request) -> Reply:
    """Make a shadow the learner that decides."""
    live, shadow = await _model(app, request), request.parameters["shadow"]
    await app.service.change_shadow(live, ShadowBody("promote", shadow))
    return _view(live)


async def download_learner(app: App, request: Request) -> Reply:
    """Send the learner that decides, as a file for `onebit.load`."""
    live = await _model(app, request)
    model = await app.service.copy_of(live)
    content = await asyncio.to_thread(model.learner.to_bytes)
    disposition = f'attachment; filename="{live.name}.safetensors"'.encode()
    length = (b"content-length", b"%d" % len(content))
    headers = [(b"content-disposition", disposition), length]
    return Reply(in_parts(content), media="application/octet-stream", headers=headers)


async def export_log(app: App, request: Request) -> Reply:
    """Send the log of a model, a row a line."""
    live = await _model(app, request)
    return Reply(exported(app.service.log, live.key), media="application/x-ndjson")


async def import_log(app: App, request: Request) -> Reply:
    """Make a model from the lines of an exported log."""
    parts = stream_body(request, app.limits.imported, app.limits.seconds)
    return _view(await importing.import_log(app.service, request.parameters["model"], parts))


# The service


async def health(app: App, request: Request) -> Reply:
    """Reply that the process runs."""
    return Reply(b'{"status":"ok"}')


async def ready(app: App, request: Request) -> Reply:
    """Reply whether the log can be written to."""
    if app.stopping:
        raise RefusedError(503, "the service stops")
    if fault := await app.readiness.fault():
        raise RefusedError(503, fault)
    return Reply(b'{"status":"ready"}')


async def prometheus_metrics(app: App, request: Request) -> Reply:
    """Send the metrics."""
    text = await asyncio.to_thread(app.metrics.text, app.metrics.own())
    return Reply(text, media="text/plain; version=0.0.4; charset=utf-8")


async def openapi(app: App, request: Request) -> Reply:
    """Send the OpenAPI description."""
    return Reply(_openapi_text())


@cache
def _openapi_text() -> bytes:
    from onebit.serve.openapi import description  # which describes the routes to these handlers

    return json.dumps(description()).encode()


async def page(app: App, request: Request) -> Reply:
    """Send the page, or a file that belongs to it."""
    file = PAGE_FILES[request.head.path]
    media = f"{_PAGE_MEDIA[file.rpartition('.')[2]]}; charset=utf-8"
    return Reply(_page_content(file), media=media, headers=_PAGE_HEADERS)


@cache
def _page_content(file: str) -> bytes:
    return resources.files(__package__).joinpath("page", file).read_bytes()
