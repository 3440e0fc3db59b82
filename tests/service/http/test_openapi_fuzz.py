"""schemathesis over the OpenAPI document, as every role and as a stranger, on both databases: no 5xx, whatever is sent."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlmodel import Session

from orchestrator.accounts.tables import Membership, User, Workspace
from orchestrator.scopes import Role
from orchestrator.settings import Settings
from orchestrator.system.identifiers import token_hash
from orchestrator.tokens.tables import ApiToken
from tests.manual_clock import START
from tests.served import TOKEN, Service, served

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


EXAMPLES = {"owner": 5, "admin": 3, "member": 3, "viewer": 2, "stranger": 1}
"""Random requests for each operation. A number and not a time, so that a busy machine tests as much as a quiet one."""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the OpenAPI document is kept: making it takes longer than a command waits for it on a busy machine."""
    return tmp_path_factory.mktemp("document") / "openapi.json"


@pytest.mark.parametrize("role", EXAMPLES)
async def test_no_5xx(
    migrated_database_url: str,
    dialect: str,
    new_settings: Callable[..., Settings],
    role: str,
    tmp_path: Path,
    document: Path,
) -> None:
    if role != "owner" and dialect == "postgresql":
        return  # the same statements, with one condition more
    async with served(new_settings(DATABASE_URL=migrated_database_url)) as service:
        token = {"owner": TOKEN, "stranger": None}.get(role) or (
            None if role == "stranger" else await token_of(service, role)
        )
        if not document.exists():
            document.write_bytes((await service.client.get("/openapi.json")).content)
        whole = role == "owner" and dialect == "sqlite"
        phases = "coverage,fuzzing" if whole else "fuzzing"  # what a schema allows is the same for every role
        await fuzz(service, document, token, tmp_path, phases=phases, examples=EXAMPLES[role])
        await service.engine.end_all()


async def token_of(service: Service, role: str) -> str:
    """Of somebody who has this role in a workspace of their own."""
    secret = "by_" + "x" * 40

    def make(session: Session) -> None:
        place = Workspace(slug="lab", name="Lab", created_at=START)
        user = User(issuer="https://id.example", subject=role, name=role, created_at=START)
        session.add_all([place, user])
        session.flush()
        session.add(Membership(user_id=user.id or 0, workspace_id=place.id or 0, role=role, created_at=START))
        scope = Role(role).scope.value
        own = {"workspace_id": place.id, "user_id": user.id}
        session.add(ApiToken(name=role, secret_hash=token_hash(secret), scope=scope, created_at=START, **own))

    await service.services.db.write(make)
    return secret


async def fuzz(service: Service, document: Path, token: str | None, tmp_path: Path, *, phases: str, examples: int) -> None:
    arguments = [
        "run",
        str(document),
        f"--url={service.url}",
        "--checks=not_a_server_error",
        "--exclude-path-regex=(/api/events|/stream|/readyz)$",
        f"--phases={phases}",
        f"--max-examples={examples}",
        "--seed=1",
        "--request-timeout=20",
        "--no-color",
        "--warnings=off",
        "--continue-on-failure",
        "--generation-database=none",
        *(["-H", f"Authorization: Bearer {token}"] if token else []),
    ]
    command = Path(sys.executable).parent / "schemathesis"
    process = await asyncio.create_subprocess_exec(
        command,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 1800)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, output.decode()[-6000:]
    selected = re.search(r"Selected: (\d+)/", output.decode())
    assert selected is not None
    assert f"Tested: {selected[1]}\n" in output.decode(), "every operation is tried"
