"""The API reference page, built from the OpenAPI document: no JavaScript, no network. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    name: str
    kind: str
    required: bool
    note: str


@dataclass(frozen=True)
class Endpoint:
    method: str
    path: str
    summary: str
    description: str
    parameters: list[Field]
    body: list[Field]


def endpoints(document: dict[str, Any]) -> list[Endpoint]:
    schemas = document.get("components", {}).get("schemas", {})
    return [
        Endpoint(
            method=method.upper(),
            path=path,
            summary=operation.get("summary", ""),
            description=operation.get("description", ""),
            parameters=[
                Field(
                    parameter["name"],
                    _kind(parameter.get("schema", {})),
                    parameter.get("required", False),
                    parameter.get("description", ""),
                )
                for parameter in operation.get("parameters", [])
            ],
            body=_body(operation, schemas),
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> list[Field]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    schema = schemas.get(name, {})
    required = set(schema.get("required", []))
    return [
        Field(field, _kind(property_schema), field in required, property_schema.get("description", ""))
        for field, property_schema in schema.get("properties", {}).items()
    ]


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    limits = [f"{word} {schema[key]}" for key, word in _LIMITS.items() if key in schema]
    return f"{kind} ({', '.join(limits)})" if limits else kind


_LIMITS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "exclusiveMaximum": "below",
    "maxLength": "at most characters:",
}
