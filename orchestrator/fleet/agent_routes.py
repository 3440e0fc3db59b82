"""REST routes for agents: claim work, report on containers, list and dismiss agents."""

from __future__ import annotations

from fastapi import Response

from orchestrator.engines.engine import InstanceType
from orchestrator.errors import ClientError, Code, Invalid
from orchestrator.fleet.agent_schemas import (
    AgentClaim,
    AgentList,
    AgentReport,
    AskAgain,
    LaunchOrder,
    Leave,
    Limits,
    ReportAnswer,
)
from orchestrator.fleet.agents import ContainerReport, Dismissed, Introduction
from orchestrator.fleet.views import agents_view
from orchestrator.http.context import Context
from orchestrator.http.policy import AGENT, OWNER, READ, Audit, Policy, Router
from orchestrator.runs.warm_pool.hand_off import HOLD_S
from runner.contract.run_spec import CONTRACT_VERSION

router = Router(prefix="/api/agents", tags=["agents"])


class OtherContract(ClientError):
    status, code, title = 426, Code.CONFLICT, "Contract version differs"


@router.post("/claim", policy=Policy(AGENT, audit=Audit.REFUSALS))
async def claim(body: AgentClaim, context: Context) -> LaunchOrder | AskAgain | Leave:
    """Ask for a container to start; waits some seconds until there is one."""
    if body.contract_version != CONTRACT_VERSION:
        raise OtherContract(
            f"the agent speaks contract {body.contract_version}, the service {CONTRACT_VERSION}: install the same version"
        )
    types = {name: context.settings.instance_type(name) for name in context.settings.instance_types}
    if unknown := [name for name in body.instance_types if name not in types]:
        raise Invalid(f"there is no instance type {unknown[0]!r}; choose of {', '.join(types)}")
    fields = body.model_dump(exclude={"agent_id", "contract_version", "known"})
    who = Introduction(id=body.agent_id, **{**fields, "door_url": body.door_url.rstrip("/")})
    context.signals.wake()
    order = await context.agents.claim(who, set(body.known), min(HOLD_S, context.settings.request_timeout_s / 2))
    if isinstance(order, Dismissed):
        return Leave(detail="this agent was told to leave")
    if order is None:
        return AskAgain(types=[_limits(kind) for kind in types.values()])
    return LaunchOrder(
        name=order.name,
        run_id=order.run_id,
        attempt=order.attempt,
        instance_type=_limits(order.instance_type),
        sandbox_slots=order.sandbox_slots,
        boot=order.boot.model_dump(),
        guest=order.guest,
    )


@router.post("/report", policy=Policy(AGENT, audit=Audit.REFUSALS))
async def report(body: AgentReport, context: Context) -> ReportAnswer:
    """Report on containers, which also serves as a heartbeat. The answer lists the containers to stop."""
    reports = [ContainerReport(**container.model_dump()) for container in body.containers]
    stop = await context.agents.report(body.agent_id, reports)
    if any(report.ended for report in reports):
        context.signals.look()
    return ReportAnswer(stop=stop)


@router.get("", policy=Policy(READ))
async def list_agents(context: Context) -> AgentList:
    """The known agents and what they run."""
    return AgentList(items=await agents_view(context))


@router.delete("/{agent_id}", policy=Policy(OWNER), status_code=204)
async def dismiss(agent_id: str, context: Context) -> Response:
    """Tell an agent to leave once its containers have ended; delete it at once if it is silent."""
    await context.agents.dismiss(agent_id)
    return Response(status_code=204)


def _limits(kind: InstanceType) -> Limits:
    return Limits(name=kind.name, vcpu=kind.vcpu, memory_bytes=kind.memory_bytes, disk_bytes=kind.disk_bytes)
