"""Request and response bodies for named API tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt

from orchestrator.http.schemas import Answer, Body, Text
from orchestrator.scopes import Scope
from orchestrator.tokens.tables import ApiToken

Given = Literal[Scope.READ, Scope.RUN, Scope.SCHEDULE, Scope.ADMIN, Scope.AGENT]
MEANINGS = (
    "`read`: look; `run`: also start and stop runs; `schedule`: also schedule them; `admin`: everything that you may do."
)


class TokenCreate(Body):
    name: Annotated[Text, Field(min_length=1, max_length=100, pattern=r"\S", description="Who or what will use it.")]
    scope: Annotated[Given, Field(description=MEANINGS)] = Scope.READ
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=3650)] | None = None


class TokenOut(Answer):
    id: int
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    expired: bool
    last_used_at: datetime | None
    owner: str = Field(description="The user who made it and than whom it may do no more; empty: the installation's token.")

    @classmethod
    def of(cls, row: ApiToken, now: datetime, owner: str) -> Self:
        values = {name: getattr(row, name) for name in TokenOut.model_fields if name not in ("expired", "owner")}
        return cls(**values, expired=row.expires_at is not None and row.expires_at <= now, owner=owner)


class TokenCreated(TokenOut):
    """The only response that contains the token itself."""

    token: str = ""
