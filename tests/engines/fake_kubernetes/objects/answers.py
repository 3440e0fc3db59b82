"""Refusals of the API server: `kind: Status` with the code, reason and words of the real one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Refusal(Exception):
    """A request that ends in a `Status` instead of an object."""

    code: int
    reason: str
    message: str
    details: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> Json:
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            status["details"] = self.details
        return {**status, "code": self.code}


def not_found(plural: str, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{plural} "{name}" not found', {"name": name, "kind": plural})


def no_such_path() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource")


def already_exists(plural: str, name: str) -> Refusal:
    return Refusal(409, "AlreadyExists", f'{plural} "{name}" already exists', {"name": name, "kind": plural})


def conflict(plural: str, name: str, why: str) -> Refusal:
    message = f'Operation cannot be fulfilled on {plural} "{name}": {why}'
    return Refusal(409, "Conflict", message, {"name": name, "kind": plural})


def wrong_uid(kind: str, name: str, asked: str, actual: str) -> Refusal:
    """A deletion that was meant for another object of that name."""
    record = f"the UID in the precondition ({asked}) does not match the UID in record ({actual})"
    return conflict(kind, name, f"{record}. The object might have been deleted and then recreated")


def modified(plural: str, name: str) -> Refusal:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(plural, name, why)


def forbidden(plural: str, name: str, why: str) -> Refusal:
    return Refusal(403, "Forbidden", f'{plural} "{name}" is forbidden: {why}', {"name": name, "kind": plural})


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized", "Unauthorized")


def invalid(kind: str, name: str, field_name: str, why: str, *, times: int = 1) -> Refusal:
    reasons = {"Forbidden": "FieldValueForbidden", "Required": "FieldValueRequired", "Not": "FieldValueNotFound"}
    reason = reasons.get(why.partition(":")[0].partition(" ")[0], "FieldValueInvalid")
    cause = {"reason": reason, "message": why, "field": field_name}
    details = {"name": name, "kind": kind, "causes": [cause] * times}
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {field_name}: {why}', details)


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def expired(asked: int, oldest: int) -> Refusal:
    return Refusal(410, "Expired", f"too old resource version: {asked} ({oldest})")


def too_many_requests(retry_after_s: int) -> Refusal:
    message = "Too many requests, please try again later."
    details = {"retryAfterSeconds": retry_after_s}
    return Refusal(429, "TooManyRequests", message, details, {"Retry-After": str(retry_after_s)})


def internal_error(why: str) -> Refusal:
    details = {"causes": [{"message": why}]}
    return Refusal(500, "InternalError", f"Internal error occurred: {why}", details)


def success(plural: str, name: str, uid: str) -> Json:
    """What a delete answers once nothing is left."""
    details = {"name": name, "kind": plural, "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
