"""The routes of the HTTP interface: handler, body, reply and required scope of each path."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from onebit.core.validation import short
from onebit.serve import api, handlers, personalizer
from onebit.serve.api import RefusedError
from onebit.serve.keys import Scope
from onebit.serve.report_types import Report
from onebit.serve.requests import Reply, Request
from onebit.serve.rows import LabelsBody, ModelSettings

LINES = "application/x-ndjson"


class Route(NamedTuple):
    """A method and a template of paths, with the function that handles their requests.

    Attributes
    ----------
    method : str
    template : str
        A path with names in braces for what varies.
    handler : callable
        Takes the application and the request.
    scope : str or None
        What a key must allow, if there are keys; `admin` allows everything.
    summary : str
        Empty for what the OpenAPI description leaves out.
    body, returns : type or None
        Of the body and of the reply; None without a body, and for 204.
    refuses : tuple of int
        Statuses of refusals besides those that each route may have.
    reply_media, body_media : str
        Media types.
    query : dict
        Schemas of the parameters in the query.
    probe : bool
        Whether anyone may ask, however many requests there are: an overloaded service that does
        not answer its probes would be killed.
    keeps_to_models : bool
        Whether the handler, of a path without a model, keeps to the models that a key is for.
    status : int
        Of a reply with a body.
    """

    method: str
    template: str
    handler: Callable[[Any, Request], Awaitable[Reply]]
    scope: Scope | None
    summary: str
    body: Any = None
    returns: Any = None
    refuses: tuple[int, ...] = ()
    reply_media: str = "application/json"
    body_media: str = "application/json"
    query: Mapping[str, Any] = {}
    probe: bool = False
    keeps_to_models: bool = False
    status: int = 200

    @property
    def name(self) -> str:
        """The name of the handler."""
        return self.handler.__name__


_MODEL = "/v1/models/{model}"
_PERSONALIZER = f"{_MODEL}/personalizer/v1.0"
_EVENT = f"{_PERSONALIZER}/events/{{event}}"
_SHADOW = f"{_MODEL}/shadows/{{shadow}}"
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 200, "default": 20}
_TIME = {
    "type": "number",
    "minimum": 0,
    "maximum": api.LATEST_TIME,
    "description": "Seconds since 1970.",
}

ROUTES = [
    Route(
        *("GET", "/v1/models", handlers.list_models, "read", "List the models."),
        *(None, list[api.ListedModel]),  # type: ignore[valid-type]
        keeps_to_models=True,
    ),
    Route(
        *("POST", "/v1/models", handlers.make_model, "admin", "Make a model."),
        *(api.NewModel, api.ModelView, (409,)),
        keeps_to_models=True,
    ),
    Route(
        *("GET", _MODEL, handlers.show_model, "read", "A model, and how well it does over time."),
        *(None, api.ModelDetail, (404,)),
    ),
    Route(
        *("GET", f"{_MODEL}/report", handlers.report_model, "read"),
        "How well a model does, and what to do about it.",
        *(None, Report, (404,)),
        query={"since": _TIME, "until": _TIME},
    ),
    Route(
        *("PATCH", _MODEL, handlers.change_model, "admin"),
        "Change a model: freeze, expiry, limits, apprentice.",
        *(ModelSettings, api.ModelView, (404,)),
    ),
    Route(
        *("DELETE", _MODEL, handlers.remove_model, "admin", "Remove a model with its log."),
        *(None, None, (404,)),
    ),
    Route(
        *("POST", f"{_MODEL}/decide", handlers.decide, "decide"),
        "Decide for one record, or a list.",
        api.DecisionRequest | list[api.DecisionRequest],
        api.DecisionResult | list[api.DecisionResult],
        (404, 409),
    ),
    Route(
        *("POST", f"{_MODEL}/explain", handlers.explain, "read"),
        "Explain why one label scores higher than another one.",
        *(api.ExplanationRequest, api.ExplanationView, (404,)),
    ),
    Route(
        *("POST", f"{_MODEL}/feedback", handlers.give_feedback, "feedback"),
        "Give feedback for one decision, or a list.",
        api.Feedback | list[api.Feedback],
        api.FeedbackResult | list[api.FeedbackResult],
        (404, 409, 410),
    ),
    Route(
        *("POST", f"{_MODEL}/revise", handlers.revise_feedback, "feedback"),
        "Revise or withdraw feedback for one decision, or a list.",
        api.Revision | list[api.Revision],
        api.FeedbackResult | list[api.FeedbackResult],
        (404, 409),
    ),
    Route(
        *("POST", f"{_MODEL}/erase", handlers.erase, "admin"),
        "Erase decisions with their feedback.",
        *(api.Erasure, api.ErasureResult, (404,)),
    ),
    Route(
        *("POST", f"{_MODEL}/labels", handlers.change_labels, "admin"),
        "Add, retire and describe labels.",
        *(LabelsBody, api.ModelView, (404,)),
    ),
    Route(
        *("GET", f"{_MODEL}/decisions", handlers.newest_decisions, "read", "The newest decisions."),
        *(None, list[api.DecisionView], (404,)),
        query={"limit": _LIMIT},
    ),
    Route(
        *("POST", f"{_MODEL}/shadows", handlers.add_shadow, "admin", "Add a shadow."),
        *(api.NewShadow, api.ModelView, (404,)),
    ),
    Route(
        *("DELETE", _SHADOW, handlers.remove_shadow, "admin", "Remove a shadow."),
        *(None, None, (404,)),
    ),
    Route(
        *("POST", f"{_SHADOW}/promote", handlers.promote_shadow, "admin"),
        "Make a shadow the learner that decides.",
        *(None, api.ModelView, (404,)),
    ),
    Route(
        *("GET", f"{_MODEL}/learner", handlers.download_learner, "admin"),
        "The learner, for `onebit.load`.",
        *(None, bytes, (404,), "application/octet-stream"),
    ),
    Route(
        *("GET", f"{_MODEL}/log", handlers.export_log, "admin"),
        "Export the log: a row a line, as JSON.",
        *(None, api.LogRow, (404,), LINES),
    ),
    Route(
        *("PUT", f"{_MODEL}/log", handlers.import_log, "admin"),
        "Make a model from an exported log.",
        *(api.LogRow, api.ModelView, (409,)),
        body_media=LINES,
    ),
    Route(
        *("POST", f"{_PERSONALIZER}/rank", personalizer.rank, "decide"),
        "Choose an action, as clients of Personalizer ask.",
        *(personalizer.RankRequest, personalizer.RankResponse, (404, 409)),
        status=201,
    ),
    Route(
        *("POST", f"{_EVENT}/reward", personalizer.reward, "feedback"),
        "Give the reward of an event, as clients of Personalizer do.",
        *(personalizer.RewardRequest, None, (404,)),
    ),
    Route(
        *("POST", f"{_EVENT}/activate", personalizer.activate, "feedback"),
        "Activate a deferred event, as clients of Personalizer do.",
        *(None, None, (404,)),
    ),
    Route(
        *("GET", "/health", handlers.health, None, "Whether the process runs."),
        *(None, dict[str, str]),
        probe=True,
    ),
    Route(
        *("GET", "/ready", handlers.ready, None, "Whether the log can be written to."),
        *(None, dict[str, str], (503,)),
        probe=True,
    ),
    Route(
        *("GET", "/metrics", handlers.prometheus_metrics, "read", "Metrics for Prometheus."),
        *(None, str, (), "text/plain"),
    ),
    Route(
        *("GET", "/openapi.json", handlers.openapi, None, "This description."),
        *(None, dict[str, Any]),
    ),
    *(Route("GET", path, handlers.page, None, "") for path in handlers.PAGE_FILES),
]


class Match(NamedTuple):
    """The route of a request, and the parameters in its path.

    Attributes
    ----------
    route : Route
    parameters : dict
        By name.
    label : str
        Names the route in metrics.
    parse : callable or None
        Returns the body, parsed from JSON; None if the route takes none.
    is_logged : bool
        Whether all its requests are logged: those that change a model in other ways than by
        decisions and feedback.
    """

    route: Route
    parameters: dict[str, str]
    label: str
    parse: Callable[[bytes], Any] | None
    is_logged: bool


class Router:
    """Finds the routes of requests.

    Attributes
    ----------
    match : callable
        Takes a method and a path and returns a `Match`; raises RefusedError if there is none.
    """

    def __init__(self, routes: list[Route]) -> None:
        self._entries = [
            (_pattern_of(route.template), route, _parser_of(route)) for route in routes
        ]
        self.match = lru_cache(maxsize=4096)(self._match)

    def _match(self, method: str, path: str) -> Match:
        allowed = []
        for pattern, route, parse in self._entries:
            if found := pattern.fullmatch(path):
                if route.method == method or (route.method, method) == ("GET", "HEAD"):
                    label = f"{route.method} {route.template}"
                    is_logged = route.scope == "admin" and route.method != "GET"
                    return Match(route, found.groupdict(), label, parse, is_logged)
                allowed += [route.method, "HEAD"] if route.method == "GET" else [route.method]
        if not allowed:
            raise RefusedError(404, f"there is no such path: {short(path)}; see /openapi.json")
        methods = ", ".join(allowed)
        raise RefusedError(405, f"{method} is not possible here: {methods}", {"allow": methods})


def _pattern_of(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template)))


def _parser_of(route: Route) -> Callable[[bytes], Any] | None:
    if route.body is None or route.body_media != "application/json":
        return None
    return msgspec.json.Decoder(route.body).decode
