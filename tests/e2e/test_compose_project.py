"""`docker compose` as people use it: settings from a file and from the shell, PostgreSQL, a run, a command and a warm runner
under way, the login link, and `down`, which leaves nothing but the data."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.compose_settings import FIXED, variables
from tests.faults.service import docker, free_ports, wait_for

ROOT = Path(__file__).parents[2]
IMAGES = ("BENCHYARD_RUNNER_IMAGE", "BENCHYARD_ORCHESTRATOR_IMAGE")

pytestmark = pytest.mark.engine


class Project:
    """A compose project of its own, apart from any other by name, port, instance and network."""

    def __init__(self, folder: Path) -> None:
        self.name = f"compose-{uuid.uuid4().hex[:8]}"
        (self.port,) = free_ports(1)
        self.env_file = folder / "variables"
        self.env_file.touch()
        kept = ("PATH", "HOME", "DOCKER_HOST", *IMAGES)
        self.env = {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "COMPOSE_PROJECT_NAME": self.name,
            "BENCHYARD_ENV_FILE": str(self.env_file),
            "BENCHYARD_INSTANCE": self.name,
            "BENCHYARD_RUNNER_NETWORK": f"benchyard-{self.name}",
            "BENCHYARD_PORT": str(self.port),
        }

    def __call__(self, *words: str, check: bool = True, **more: str) -> str:
        done = subprocess.run(
            ["docker", "compose", "--file", str(ROOT / "compose.yaml"), "--env-file", str(self.env_file), *words],
            env={**self.env, **more},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0 or not check, f"docker compose {' '.join(words)}: {done.stderr}"
        return done.stdout

    def benchyard(self, *words: str) -> str:
        return self("exec", "--no-TTY", "orchestrator", "benchyard", *words)

    def environment(self, **more: str) -> dict[str, str | None]:
        """Of the orchestrator's container, as compose would make it."""
        described: dict[str, Any] = json.loads(self("config", "--format", "json", **more))
        return dict(described["services"]["orchestrator"]["environment"])

    def left(self) -> list[str]:
        """Containers and networks, by our label and by compose's."""
        found = set()
        for label in (f"benchyard.instance={self.name}", f"com.docker.compose.project={self.name}"):
            for what in ("ps --all", "network ls"):
                template = "{{.Names}}" if what.startswith("ps") else "{{.Name}}"
                found |= set(docker(*what.split(), "--filter", f"label={label}", "--format", template).split())
        return sorted(found)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    found = Project(tmp_path)
    yield found
    found("down", "--volumes", "--timeout", "60")


def _odd(name: str) -> str:
    return f"value of {name}"


def test_every_setting_comes_from_the_shell_or_from_the_file(project: Project) -> None:
    given = {name: _odd(name) for name in variables() if name not in FIXED and name not in project.env}
    wanted = {**given, "HF_TOKEN": "hf", "OPENAI_API_KEY": "key"}
    assert wanted.items() <= project.environment(**wanted).items()
    unset = project.environment()
    assert not [name for name in wanted if (unset.get(name) or "").startswith("value of")]
    own = {"BENCHYARD_PROVIDER_VLLM_BASE_URL": "http://vllm:8000/v1", "BENCHYARD_WARM": '{"basic": 1}'}
    published = {"BENCHYARD_HOST": "127.0.0.2", "BENCHYARD_PORT": "1"}
    lines = {**own, **dict.fromkeys(FIXED, "/wrong"), **published, "OPENAI_API_KEY": "of the file"}
    project.env_file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    seen = project.environment(OPENAI_API_KEY="of the shell")
    assert own.items() <= seen.items()
    assert FIXED.items() <= seen.items()
    assert seen["OPENAI_API_KEY"] == "of the shell"


def test_a_certificate_authority_of_this_machine_is_mounted(project: Project, tmp_path: Path) -> None:
    assert project.environment()["SSL_CERT_FILE"] == ""
    authorities = tmp_path / "ca.pem"
    described = json.loads(project("config", "--format", "json", SSL_CERT_FILE=str(authorities)))
    service = described["services"]["orchestrator"]
    (mount,) = [each for each in service["volumes"] if each["source"] == str(authorities)]
    assert service["environment"]["SSL_CERT_FILE"] == mount["target"]


def _until(condition: Callable[[], Any], what: str) -> Any:
    return wait_for(condition, 300, what, every_s=0.5)


@pytest.mark.slow
def test_down_leaves_nothing_whatever_was_under_way(project: Project) -> None:
    postgres = subprocess.run([ROOT / "scripts/postgres-image"], capture_output=True, text=True, check=True).stdout.strip()
    project.env_file.write_text('BENCHYARD_WARM={"lite": 1}\nBENCHYARD_DATA=/nowhere\nBENCHYARD_HOST=127.0.0.1\n')
    project.env |= {"BENCHYARD_DEMO_LATENCY_S": "2", "BENCHYARD_POSTGRES_IMAGE": postgres}
    project("up", "--detach", "--no-build")
    url = f"http://127.0.0.1:{project.port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/readyz", timeout=10).status_code == 200
        except httpx.HTTPError:
            return False

    _until(answers, "the service is ready")
    link = project.benchyard("link").strip()
    assert link.startswith(f"{url}/login?token=")
    assert httpx.get(link, timeout=30).status_code in (200, 302, 303)
    run_id = project.benchyard("run", "-m", "demo-weak", "-n", "all", "--instance-type", "basic", "--detach").strip()
    image = project.env.get(IMAGES[0], "benchyard-runner:latest")
    project.benchyard("command", "run", "--image", image, "--instance-type", "basic", "--detach", "--", "sleep", "300")

    def all_there() -> bool:
        names = " ".join(project.left())
        return all(word in names for word in (f"benchyard-run-{run_id}", "benchyard-kit-", "benchyard-warm-", "postgres"))

    _until(all_there, "a run, a kit, a warm runner and PostgreSQL")
    done = _until(lambda: _progress(project, run_id), "a result")
    chosen = project.env.pop("BENCHYARD_POSTGRES_IMAGE")  # who stops it need not know how it was started
    project("down")
    assert project.left() == []

    project.env["BENCHYARD_POSTGRES_IMAGE"] = chosen
    project("up", "--detach", "--no-build")
    _until(answers, "the service is ready again")
    assert _progress(project, run_id) >= done, "what was finished stays"
    project.benchyard("cancel", run_id)


def _progress(project: Project, run_id: str) -> int:
    return int(json.loads(project.benchyard("show", run_id, "--json"))["progress"]["done"])
