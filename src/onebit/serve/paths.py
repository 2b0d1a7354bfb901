"""The paths of the HTTP interface: what each takes, returns and requires of a key."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

from onebit.serve import api
from onebit.serve.rows import LabelsBody, Settings

Scope = Literal["decide", "feedback", "read", "admin"]


class Path(NamedTuple):
    """A method and a path, with the name of the function of `App` that answers."""

    method: str
    path: str
    handler: str
    scope: Scope | None
    """What a key must allow, if there are keys; `admin` allows everything."""
    summary: str
    takes: Any = None
    """The type of the body; None means no body."""
    returns: Any = None
    """The type of the answer; None means 204."""
    refuses: tuple[int, ...] = ()
    media: str = "application/json"
    """Of the answer."""
    taken: str = "application/json"
    """Of the body."""
    query: dict[str, Any] = {}  # noqa: RUF012
    """Schemas of the parameters in the query."""


_MODEL = "/v1/models/{model}"
_SHADOW = f"{_MODEL}/shadows/{{shadow}}"
_LINES = "application/x-ndjson"

PATHS = [
    Path("GET", "/v1/models", "list_models", "read", "List the models.", None, list[api.ModelView]),
    Path(
        *("POST", "/v1/models", "make_model", "admin", "Make a model."),
        *(api.NewModel, api.ModelView, (409,)),
    ),
    Path(
        *("GET", _MODEL, "show_model", "read", "A model, and how it does over time."),
        *(None, api.ModelDetail, (404,)),
    ),
    Path(
        *("PATCH", _MODEL, "change_model", "admin", "Freeze a model; say when decisions expire."),
        *(Settings, api.ModelView, (404,)),
    ),
    Path(
        *("DELETE", _MODEL, "remove_model", "admin", "Remove a model with its log."),
        *(None, None, (404,)),
    ),
    Path(
        *("POST", f"{_MODEL}/decide", "decide", "decide", "Decide for one record, or a list."),
        *(api.Question | list[api.Question], api.Answer | list[api.Answer], (404, 409)),
    ),
    Path(
        *(
            "POST",
            f"{_MODEL}/feedback",
            "hear",
            "feedback",
            "Feedback for one decision, or a list.",
        ),
        *(api.Said | list[api.Said], api.Heard | list[api.Heard], (404, 409, 410)),
    ),
    Path(
        *("POST", f"{_MODEL}/labels", "change_labels", "admin", "Add and retire labels."),
        *(LabelsBody, api.ModelView, (404,)),
    ),
    Path(
        *("GET", f"{_MODEL}/decisions", "newest", "read", "The newest decisions."),
        *(None, list[api.DecisionView], (404,)),
        query={"limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 20}},
    ),
    Path(
        *("POST", f"{_MODEL}/shadows", "add_shadow", "admin", "Add a shadow."),
        *(api.NewShadow, api.ModelView, (404,)),
    ),
    Path(
        *("DELETE", _SHADOW, "remove_shadow", "admin", "Remove a shadow."),
        *(None, None, (404,)),
    ),
    Path(
        *("POST", f"{_SHADOW}/promote", "promote", "admin", "Let a shadow decide from now on."),
        *(None, api.ModelView, (404,)),
    ),
    Path(
        *("GET", f"{_MODEL}/learner", "learner", "admin", "The learner, for `onebit.load`."),
        *(None, bytes, (404,), "application/octet-stream"),
    ),
    Path(
        *("GET", f"{_MODEL}/log", "export", "admin", "Export the log: a row a line, as JSON."),
        *(None, api.LogRow, (404,), _LINES),
    ),
    Path(
        *("PUT", f"{_MODEL}/log", "import_", "admin", "Make a model from an exported log."),
        *(api.LogRow, api.ModelView, (409,), "application/json", _LINES),
    ),
    Path("GET", "/health", "health", None, "Whether the process runs.", None, dict[str, str]),
    Path(
        *("GET", "/ready", "ready", None, "Whether the log can be written to."),
        *(None, dict[str, str], (503,)),
    ),
    Path(
        *("GET", "/metrics", "figures", "read", "Figures for Prometheus."),
        *(None, str, (), "text/plain"),
    ),
    Path("GET", "/openapi.json", "openapi", None, "This description.", None, dict[str, Any]),
]


@lru_cache(maxsize=4096)
def key_of(method: str, path: str) -> tuple[str, str]:
    """Return a key that is the same for all paths of a kind, without the names in them."""
    parts = path.split("/")
    for place in (3, 5):
        if len(parts) > place and parts[1:3] == ["v1", "models"]:
            parts[place] = "*"
    return method, "/".join(parts)
