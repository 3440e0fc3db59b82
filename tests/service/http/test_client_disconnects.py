"""A client that hangs up in the middle of its request is no error of ours."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from tests.served import TOKEN, Service

pytestmark = pytest.mark.anyio

HALF_SENT = [
    ("POST", "/api/container-runs"),
    ("POST", "/api/grades?benchmark=sample&filename=a.jsonl"),
    ("POST", "/api/traces?format=jsonl"),
    ("PUT", "/api/datasets/mine?format=gsm8k"),
    ("POST", "/api/batches"),
    ("PATCH", "/api/models/demo-strong"),
    ("POST", "/login"),
    ("POST", "/runs/new"),
    ("POST", "/runner/claim"),
    ("POST", "/gateway/openai/v1/chat/completions"),
]


async def test_hang_ups_are_not_logged_as_errors(service: Service) -> None:
    with capture_logs() as logged:
        for method, path in HALF_SENT:
            _reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
            head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 1000\r\n\r\n"
            writer.write(head.encode() + b'{"model_id"')
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.transport.abort()
        async with asyncio.timeout(30):
            while service.connections > 1:
                await asyncio.sleep(0.02)
        answer = await service.client.get("/api/models")
        await asyncio.sleep(0.1)
    assert answer.status_code == 200
    assert [entry for entry in logged if entry["log_level"] in ("error", "critical")] == []
