"""Request and response bodies of the REST API for agents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from orchestrator.http.schemas import Answer

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]


class AgentClaim(BaseModel):
    """An agent asks for work and describes itself."""

    agent_id: Annotated[str, Field(pattern=r"^[a-z0-9]{8,24}$")]
    contract_version: int
    name: Name
    provider: Name = "agent"
    engine: Annotated[str, Field(max_length=40)]
    instance_types: Annotated[list[Annotated[str, Field(max_length=100)]], Field(min_length=1, max_length=50)]
    max_at_once: Annotated[int, Field(ge=1, le=1000)]
    vcpu: Annotated[float, Field(gt=0, le=100_000)]
    memory_bytes: Annotated[int, Field(gt=0, le=1 << 60)]
    door_url: Annotated[str, Field(pattern=r"^https?://", max_length=300)]
    known: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=5000)] = []


class Limits(Answer):
    name: str
    vcpu: float
    memory_bytes: int
    disk_bytes: int


class LaunchOrder(Answer):
    action: Literal["launch"] = "launch"
    name: str
    run_id: str
    attempt: int
    instance_type: Limits
    sandbox_slots: int
    boot: dict[str, Any]
    guest: str | None = Field(default=None, description="A user's image to put the runner into.")


class AskAgain(Answer):
    action: Literal["wait"] = "wait"
    types: list[Limits]


class Leave(Answer):
    action: Literal["done"] = "done"
    detail: str


class ContainerReport(BaseModel):
    name: Annotated[str, Field(max_length=100)]
    ended: bool
    fetching: bool = False
    gone: bool = False
    exit_code: int | None = None
    oom_killed: bool = False
    container_id: Annotated[str, Field(max_length=100)] | None = None
    detail: Annotated[str, Field(max_length=2000)] | None = None
    log_tail: Annotated[str, Field(max_length=70_000)] = ""


class AgentReport(BaseModel):
    agent_id: Annotated[str, Field(pattern=r"^[a-z0-9]{8,24}$")]
    containers: Annotated[list[ContainerReport], Field(max_length=5000)] = []


class ReportAnswer(Answer):
    stop: list[str]


class AgentOut(Answer):
    id: str
    name: str
    provider: str
    engine: str
    instance_types: list[str]
    max_at_once: int
    vcpu: float
    memory_bytes: int
    running: list[str]
    connected: bool
    leaving: bool
    seen_at: datetime
    created_at: datetime


class AgentList(Answer):
    items: list[AgentOut]
