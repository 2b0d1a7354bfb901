"""The OpenAPI description, made from the routes and the types of their bodies."""

from __future__ import annotations

import re
from typing import Any

import msgspec

import onebit
from onebit.serve.api import Problem
from onebit.serve.routes import ROUTES, Route
from onebit.serve.rows import Id, Name

_WHY = {
    400: "The body is not JSON.",
    401: "There is no key, or no such key.",
    403: "The key does not allow that.",
    404: "There is nothing of that name or id.",
    408: "The body took too long.",
    409: "It exists already, or contradicts earlier feedback.",
    410: "No feedback came for this decision in time.",
    413: "The body is too large.",
    414: "The path is longer than names can be.",
    415: "The body does not have the expected media type.",
    422: "The body is JSON, but not a request that can be met.",
    429: "There are too many requests at the same time.",
    503: "The log cannot be written now: nothing happened, and it may be tried again.",
}


def description() -> dict[str, Any]:
    """Return the OpenAPI description of the service."""
    types: list[Any] = [Problem, Name, Id]
    described = [route for route in ROUTES if route.summary]
    for route in described:
        types += [kind for kind in (route.body, route.returns) if _has_schema(kind)]
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    found = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in described:
        paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, found)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "onebit",
            "version": onebit.__version__,
            "description": "Decisions, and feedback that is one bit: right or wrong.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _has_schema(kind: Any) -> bool:
    return kind not in (None, bytes)


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", route.template)
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": schemas[repr(Id if name == "event" else Name)],
        }
        for name in names
    ]
    parameters += [{"name": k, "in": "query", "schema": v} for k, v in route.query.items()]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {"204": {"description": "Done."}},
    }
    if route.scope is not None:
        operation["description"] = f"If there are keys, one with the scope `{route.scope}`."
    if route.returns is not None:
        schema = schemas.get(repr(route.returns), {"type": "string", "format": "binary"})
        if route.reply_media != "application/json":
            schema = {"type": "string"}
        operation["responses"] = {
            str(route.status): {
                "description": "Done.",
                "content": {route.reply_media: {"schema": schema}},
            }
        }
    if route.body is not None:
        schema = schemas[repr(route.body)] if route.body_media == "application/json" else {}
        content = {route.body_media: {"schema": schema}}
        operation["requestBody"] = {"required": True, "content": content}
    refused = {*route.refuses}
    if route.scope is not None:
        refused |= {401, 403, 422, 429}
    if names:
        refused |= {414}
    if route.body is not None:
        refused |= {400, 408, 413, 415}
    if route.method != "GET":
        refused |= {503}
    problem = {"application/json": {"schema": schemas[repr(Problem)]}}
    for status in sorted(refused):
        operation["responses"][str(status)] = {"description": _WHY[status], "content": problem}
    if route.name in ("give_feedback", "revise_feedback"):
        result = {"application/json": {"schema": schemas[repr(route.returns)]}}
        for status in sorted(refused & {404, 409, 410, 422}):
            schema = {
                "anyOf": [
                    problem["application/json"]["schema"],
                    result["application/json"]["schema"],
                ]
            }
            operation["responses"][str(status)]["content"] = {
                "application/json": {"schema": schema}
            }
    return operation
