"""The base class of every message body between runner and orchestrator."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=(1 << 53) - 1)]
"""A number of tokens, bytes or tests, small enough for the database and for JavaScript."""


class Message(BaseModel):
    """Ignores unknown fields, so that either side can be upgraded first. Instances are immutable."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())
