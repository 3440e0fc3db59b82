"""Bodies of requests and answers of http."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr

T = TypeVar("T")


def _no_nul(text: str) -> str:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("the text has a character that cannot be stored")
    return text


Text = Annotated[StrictStr, AfterValidator(_no_nul)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


Words = Annotated[list[Annotated[Text, Field(min_length=1, max_length=100)]], Field(min_length=1, max_length=50)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Answer(BaseModel):
    model_config = ConfigDict(protected_namespaces=())


class Page(Answer, Generic[T]):
    items: list[T]
    next: str | None = Field(default=None, description="Give it as `after` to get the next page; null at the end.")
