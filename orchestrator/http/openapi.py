"""The OpenAPI document: FastAPI's own, completed with the bearer token, the problem responses, and schema names that
client generators can use."""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI

from orchestrator.errors import Code
from orchestrator.http.policy import ANYONE, Policy, set_policy

BEARER = "bearer"
PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "RFC 9457 problem details. `detail` says what happened and what to do.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": [code.value for code in Code]},
        "request_id": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}


def install(app: FastAPI) -> None:
    """Make `app.openapi()` return the completed document."""
    derive = app.openapi

    def completed() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = rename_pages(derive())
            complete(document)
            app.openapi_schema = document
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = completed  # type: ignore[method-assign]
    set_policy(next(route for route in app.routes if getattr(route, "path", "") == app.openapi_url), Policy(ANYONE))


_PAGE = re.compile(r"Page_([A-Za-z0-9]+)_")


def rename_pages(schema: Any) -> Any:
    """Rename `Page_RunOut_` to `RunOutPage`, in definitions and references."""
    if isinstance(schema, dict):
        return {_PAGE.sub(r"\1Page", key): rename_pages(value) for key, value in schema.items()}
    if isinstance(schema, list):
        return [rename_pages(item) for item in schema]
    return _PAGE.sub(r"\1Page", schema) if isinstance(schema, str) and schema.startswith("#/") else schema


def complete(schema: dict[str, Any]) -> None:
    parts = schema.setdefault("components", {})
    shapes = parts.setdefault("schemas", {})
    shapes["Problem"] = PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        shapes.pop(unused, None)
    parts["securitySchemes"] = {BEARER: {"type": "http", "scheme": "bearer", "description": "The API token."}}
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            answers = operation["responses"]
            answers["default"] = _problem("Anything else that went wrong.")
            if "422" in answers:
                answers["422"] = _problem("The request is not valid; `errors` names the fields.")
            if path.startswith("/api/"):
                operation["security"] = [{BEARER: []}]
                answers["401"] = _problem("The token is missing or wrong.")
                answers["503"] = _problem("Not available now; `Retry-After` says when to try again.")


def _problem(description: str) -> dict[str, Any]:
    shape = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {"application/problem+json": {"schema": shape}}}
