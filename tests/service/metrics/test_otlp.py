"""A run with calls, seen by a collector of OpenTelemetry."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Callable
from uuid import UUID

import httpx
import pytest

from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.metrics import otlp
from orchestrator.metrics.otlp import open_telemetry
from orchestrator.settings import Settings
from orchestrator.system.telemetry import NoTelemetry, incoming
from tests.served import TOKEN, RunnerClient, served
from tests.service.metrics.otlp_collector import attributes, collector

pytestmark = pytest.mark.anyio

PROMPT = "canary of a prompt"


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.05)


async def asking_runner(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line)
    try:
        await runner.claim()
        await runner.send(runner.next("stage", stage="running"))
        for item in runner.open_items():
            key = f"{item['benchmark']}/{item['problem_id']}/{item['sample_index']}/0"
            body = {"model": "demo-weak", "max_completion_tokens": 50, "messages": [{"role": "user", "content": PROMPT}]}
            headers = {"authorization": f"Bearer {runner.token}", "x-benchyard-call": key}
            async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
                url = f"{runner.spec['gateway_url']}/demo/v1/chat/completions"
                assert (await http.post(url, json=body, headers=headers)).status_code == 200
            await runner.send(runner.next("progress", item={**item, "outcome": "passed"}))
        await runner.send(runner.next("complete", items=len(runner.open_items())))
        return 0
    finally:
        await runner.close()


async def test_spans_and_metrics_of_a_run_reach_the_collector(
    new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as taken:
        for name, value in {
            "OTEL_EXPORTER_OTLP_ENDPOINT": taken.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }.items():
            monkeypatch.setenv(name, value)
        async with served(new_settings(), engine=FakeEngine(behaviour=asking_runner)) as service:
            new = {"model_id": "demo-weak", "sample_size": 2}
            asked = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            made = await service.client.post("/api/container-runs", json=new, headers={"traceparent": asked})
            run_id = made.json()["run_id"]
            await service.until(run_id, "completed", "failed", timeout_s=60)
            await eventually(lambda: len(taken.named("run benchmark")) == 1)
            await eventually(lambda: "gen_ai.client.token.usage" in taken.metrics)

    trace = UUID(run_id).bytes
    (run,), (attempt,), (launch,) = (taken.named(name) for name in ("run benchmark", "attempt", "launch"))
    calls = taken.named("chat demo-weak")
    assert len(calls) == 2
    assert {span.trace_id for span in (run, attempt, launch, *calls)} == {trace}
    assert attempt.parent_span_id == run.span_id
    assert {span.parent_span_id for span in (launch, *calls)} == {attempt.span_id}
    call = attributes(calls[0])
    assert (call["gen_ai.operation.name"], call["gen_ai.provider.name"]) == ("chat", "demo")
    assert call["gen_ai.usage.output_tokens"] > 0
    assert attributes(run)["benchyard.run.status"] == "completed"
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in taken.spans)
    (request,) = taken.named("POST /api/container-runs")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == tuple(asked.split("-")[1:3])
    assert attributes(request)["http.response.status_code"] == 202
    assert {"gen_ai.client.operation.duration", "http.server.request.duration"} <= set(taken.metrics)
    tokens = taken.metrics["gen_ai.client.token.usage"].histogram.data_points
    assert {attributes(point)["gen_ai.token.type"] for point in tokens} == {"input", "output"}
    assert taken.services == {"benchyard"}
    everything = b"".join(taken.raw)
    assert b"deployment.environment.name" in everything
    for secret in (PROMPT.encode(), TOKEN.encode()):
        assert secret not in everything


def test_nothing_is_imported_unless_it_is_wanted() -> None:
    imports = [node for node in ast.parse(inspect.getsource(otlp)).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not [node for node in imports if "opentelemetry" in ast.unparse(node)]
    for env in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}):
        assert isinstance(open_telemetry(env), NoTelemetry)


@pytest.mark.parametrize("text", [None, "", "00-0-0-00", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "x" * 500])
def test_a_bad_traceparent_is_ignored(text: str | None) -> None:
    assert incoming(text) is None
