"""People for tests: users with tokens of their own, made straight in the database, and a provider that notes who pays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from sqlmodel import Session
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestrator.accounts.tables import Membership, User, Workspace
from orchestrator.serving.runner_listener import QuietServer, server_config
from orchestrator.system.identifiers import token_hash
from orchestrator.tokens.service import new_secret
from orchestrator.tokens.tables import ApiToken
from tests.served import RunnerClient, Service


@dataclass
class Person:
    id: int
    name: str
    token: str
    url: str
    workspace_id: int

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, headers={"authorization": f"Bearer {self.token}"}, timeout=60)


async def person(
    service: Service, name: str, role: str = "member", workspace: str = "default", scope: str = "admin"
) -> Person:
    """A user of a workspace, both made if they are not there, with a token."""
    secret, now = new_secret(), service.clock.now()

    def make(session: Session) -> tuple[int, int]:
        from orchestrator.accounts import queries as account_queries

        place = account_queries.by_slug(session, workspace)
        if place is None:
            place = Workspace(slug=workspace, name=workspace, created_at=now)
            session.add(place)
        user = account_queries.by_identity(session, "test", name) or User(
            issuer="test", subject=name, name=name, email=f"{name}@x", created_at=now
        )
        session.add(user)
        session.flush()
        assert user.id is not None
        assert place.id is not None
        if account_queries.membership(session, user.id, place.id) is None:
            session.add(Membership(user_id=user.id, workspace_id=place.id, role=role, created_at=now))
        session.add(
            ApiToken(
                name=f"{name} {secret[:8]}",
                user_id=user.id,
                workspace_id=place.id,
                secret_hash=token_hash(secret),
                scope=scope,
                created_at=now,
            )
        )
        session.flush()
        return user.id, place.id

    user_id, place_id = await service.services.db.write(make)
    return Person(user_id, name, secret, service.url, place_id)


@dataclass
class NotingProvider:
    """An OpenAI-compatible server that notes which key each call came with."""

    keys: list[str] = field(default_factory=list)
    refuse: set[str] = field(default_factory=set)
    url: str = ""

    async def _answer(self, request: Request) -> Response:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.keys.append(key)
        if key in self.refuse:
            return JSONResponse({"error": {"message": f"wrong key {key}"}}, 401)
        message = {"role": "assistant", "content": f"you sent {key}"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})

    @asynccontextmanager
    async def served(self) -> AsyncIterator[NotingProvider]:
        app = Starlette(routes=[Route("/v1/chat/completions", self._answer, methods=["POST"])])
        server = QuietServer(server_config(app, "127.0.0.1", 0))
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            server.should_exit = True
            await task


class AskingRunner:
    """A runner that asks the model once for each item and reports how that went."""

    def __init__(self) -> None:
        self.answers: list[httpx.Response] = []
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, container: Any) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            if (await runner.claim()).status_code != 200:
                return 3
            await runner.send(runner.next("stage", stage="running"))
            while not self.go.is_set():
                await container.checkpoint()
                await asyncio.sleep(0.02)
            model = runner.spec["model"]
            async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
                for item in runner.open_items():
                    key = f"{item['benchmark']}/{item['problem_id']}/{item['sample_index']}/0"
                    answer = await http.post(
                        f"{runner.spec['gateway_url']}/{model['provider']}/v1/chat/completions",
                        json={
                            "model": model["name"],
                            "max_completion_tokens": 1000,
                            "messages": [{"role": "user", "content": key}],
                        },
                        headers={"authorization": f"Bearer {runner.token}", "x-benchyard-call": key},
                    )
                    self.answers.append(answer)
                    outcome = "passed" if answer.status_code == 200 else "provider_error"
                    await runner.send(runner.next("progress", item={**item, "outcome": outcome, "answer": answer.text}))
            await runner.send(runner.next("complete", items=len(runner.open_items())))
            return 0
        finally:
            await runner.close()
