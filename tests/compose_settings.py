"""Which variables compose.yaml has to pass on, and which it decides itself."""

from __future__ import annotations

from orchestrator.settings import Settings

FIXED = {
    "BENCHYARD_HOST": "0.0.0.0",
    "BENCHYARD_PORT": "8000",
    "BENCHYARD_RUNNER_HOST": "0.0.0.0",
    "BENCHYARD_RUNNER_PORT": "8001",
    "BENCHYARD_DATA": "/data",
    "BENCHYARD_IN_CONTAINER": "1",
    "BENCHYARD_ENGINE": "docker",
    "BENCHYARD_DOCKER_HOST": "unix:///var/run/docker.sock",
    "BENCHYARD_REMOVE_ON_STOP": "true",
    "BENCHYARD_URL": "",
    "DOCKER_HOST": "unix:///var/run/docker.sock",
}
"""What must not follow the user's environment or .env."""


def variables() -> list[str]:
    return [str(field.validation_alias or f"BENCHYARD_{name.upper()}") for name, field in Settings.model_fields.items()]
