"""The base of every body that crosses the wire between runner and orchestrator."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=(1 << 53) - 1)]
"""A number of tokens, bytes or tests. A database and a browser can both hold it."""


class Message(BaseModel):
    """Unknown fields are ignored, so that either side can be upgraded first; instances are values."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())
