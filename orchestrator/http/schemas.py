"""Base classes, pages and parameters that the REST schemas of all features share."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from fastapi import Header, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr

T = TypeVar("T")


def _no_nul(text: str) -> str:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("the text has a character that cannot be stored")
    return text


Text = Annotated[StrictStr, AfterValidator(_no_nul)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Words = Annotated[list[Annotated[Text, Field(min_length=1, max_length=100)]], Field(min_length=1, max_length=50)]

Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(max_length=100, pattern=r"^[0-9a-zA-Z-]*$", description="`next` of the page before.")]
IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=200, description="The same key and request again give the same answer.")
]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Answer(BaseModel):
    model_config = ConfigDict(protected_namespaces=())


class Page(Answer, Generic[T]):
    items: list[T]
    next: str | None = Field(default=None, description="Give it as `after` to get the next page; null at the end.")
