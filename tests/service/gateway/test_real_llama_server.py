"""A real llama-server with a tiny model serves whole runs: each protocol in its form, with its own counts of tokens."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.service import Service, free_ports

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[3]
MODEL_MAKER = Path(__file__).with_name("tiny_model.py")
MOST_TOKENS = 40
ITEMS = 3
STARTS_WITHIN_S = 300
MASTER = "sk-litellm-0123456789"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("llama")
    program = made_by("llama-server")
    subprocess.run(
        [f"{made_by('python-environment', 'llama-server')}/python", MODEL_MAKER, folder / "tiny.gguf"], check=True
    )
    command = [program, "--model", "tiny.gguf", "--ctx-size", "16384", "--parallel", "4"]
    with answering(command, folder, "/health") as url:
        yield url


def made_by(*script: str) -> str:
    """The path that a script of ours prints."""
    command = [str(ROOT / "scripts" / script[0]), *script[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def answering(command: list[str], folder: Path, path: str, **environment: str) -> Iterator[str]:
    """The address of a server with this command, from the moment when it answers."""
    (port,) = free_ports(1)
    log, url = folder / "log", f"http://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--port", str(port)]
    env = {**os.environ, **environment}
    with log.open("wb") as to, subprocess.Popen([*command, *place], cwd=folder, env=env, stdout=to, stderr=to) as process:
        try:
            end = time.monotonic() + STARTS_WITHIN_S
            while not is_up(url + path):
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < end
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()


def is_up(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


def a_run(data: Path, protocol: str, **provider: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """A run with the server as the provider `local`, its items and its calls."""
    settings: dict[str, Any] = {f"provider_local_{name}": value for name, value in provider.items()}
    service = Service(data, engine="process", **settings)
    service.start()
    try:
        model = {"slug": "tiny", "provider": "local", "name": "tiny", "protocol": protocol}
        body = {**model, "input_price": 1, "output_price": 2, "params": {"max_tokens": MOST_TOKENS, "seed": 7}}
        assert service.client.post("/api/models", json=body).status_code == 201
        told = service.client.post("/api/providers/local/test").json()
        assert told["ok"], told
        run_id = service.submit("tiny", ITEMS)
        run = service.wait_status(run_id, "completed")
        return run, service.items(run_id), service.client.get(f"/api/container-runs/{run_id}/calls").json()["items"]
    finally:
        service.stop()
        service.client.close()


def assert_served(run: dict[str, Any], items: list[dict[str, Any]], calls: list[dict[str, Any]]) -> None:
    assert {item["outcome"] for item in items} <= {"truncated", "no_answer"}
    assert len(calls) == ITEMS
    assert all(call["input_tokens"] > 50 and call["output_tokens"] == MOST_TOKENS for call in calls), calls
    assert run["cost_usd"] == pytest.approx(sum(call["input_tokens"] + 2 * call["output_tokens"] for call in calls) / 1e6)


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "anthropic"])
def test_a_run_with_a_real_llama_server(server: str, protocol: str, tmp_path: Path) -> None:
    base = server if protocol == "anthropic" else f"{server}/v1"
    assert_served(*a_run(tmp_path / "data", protocol, kind="llama_cpp", base_url=base, protocols=protocol))


def test_a_run_through_a_real_litellm_before_it(server: str, tmp_path: Path) -> None:
    behind = {"model": "openai/tiny", "api_base": f"{server}/v1", "api_key": "sk-any"}
    config = {"model_list": [{"model_name": "tiny", "litellm_params": behind}], "general_settings": {"master_key": MASTER}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    programs = made_by("python-environment", "litellm")
    command = [f"{programs}/litellm", "--config", "config.json"]
    own = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with answering(command, tmp_path, "/health/liveliness", **own) as url:
        provider = {"kind": "litellm", "base_url": f"{url}/v1", "api_key": MASTER}
        assert_served(*a_run(tmp_path / "data", "openai_chat", **provider))
