"""Runs in the generator's own environment, with the generated package beside it: imports every module, calls every GET that
ends, and makes and cancels a run. It takes what it needs as JSON on standard input, and writes what went wrong."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
from typing import Any

ENDLESS = ("/api/events",)


def modules(package: Any) -> dict[str, Any]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return {each.name.rpartition(".")[2]: importlib.import_module(each.name) for each in found}


def snake(name: str) -> str:
    return name.replace("-", "_").lower()


def arguments(operation: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What the path and the query must have."""
    wanted = [each for each in operation.get("parameters", []) if each["required"]]
    return {snake(each["name"]): given[each["name"]] for each in wanted}


def call(module: Any, client: Any, arguments: dict[str, Any]) -> Any:
    known = inspect.signature(module.sync_detailed).parameters
    names = {name.rstrip("_"): name for name in known}  # a word of Python's has an underscore behind it
    numbers = {name for name, each in known.items() if each.annotation is int}
    values = {names[name]: int(value) if names[name] in numbers else value for name, value in arguments.items()}
    return module.sync_detailed(client=client, **values)


def every_get(api: dict[str, Any], client: Any, task: dict[str, Any]) -> list[str]:
    wrong = []
    for path, methods in task["openapi"]["paths"].items():
        if "get" not in methods or path in ENDLESS:
            continue
        operation = methods["get"]
        module = api[re.sub("_+", "_", operation["operationId"])]
        try:
            given = {**task["things"], **task["query"], **task["instead"].get(path, {})}
            answer = call(module, client, arguments(operation, given))
        except Exception as error:
            wrong.append(f"GET {path}: {error!r}")
            continue
        good = answer.status_code in task["may_answer"].get(path, [200])
        if not good:
            wrong.append(f"GET {path}: {answer.status_code} {answer.content[:300]!r}")
        shaped = "application/json" in operation["responses"].get("200", {}).get("content", {})
        if good and shaped and answer.parsed is None:
            wrong.append(f"GET {path}: the answer was not understood")
    return wrong


def one_run(client: Any, api: dict[str, Any], models: Any) -> list[str]:
    """Made twice under one key, found in the list, cancelled; and one that is refused."""
    body = models.RunCreate(model_id="demo-strong", sample_size=2, benchmarks=["sample"], provider="nowhere")
    made = api["create_run_api_container_runs_post"].sync(client=client, body=body, idempotency_key="generated")
    again = api["create_run_api_container_runs_post"].sync(client=client, body=body, idempotency_key="generated")
    listed = api["list_runs_api_container_runs_get"].sync(client=client, status=models.Status.PENDING)
    cancelled = api["cancel_run_api_container_runs_run_id_cancel_post"].sync(made.run_id, client=client)
    bad = api["create_run_api_container_runs_post"].sync(
        client=client, body=models.RunCreate(model_id="none", sample_size=1)
    )
    said = {
        "the same key gives the same run": made.run_id == again.run_id,
        "it is listed": made.run_id in [run.id for run in listed.items],
        "it is cancelled": cancelled.status == "cancelled",
        "a refusal is a problem": type(bad).__name__ == "Problem" and "none" in bad.detail,
    }
    return [claim for claim, holds in said.items() if not holds]


def main() -> None:
    task = json.load(sys.stdin)
    sys.path.insert(0, task["where"])
    package = importlib.import_module(task["package"])
    api = modules(package)
    models = importlib.import_module(f"{task['package']}.models")
    headers = {"X-Benchyard-Workspace": task["workspace"]}
    client = package.AuthenticatedClient(base_url=task["url"], token=task["token"], headers=headers, timeout=60)
    wrong = every_get(api, client, task) + one_run(client, api, models)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))


if __name__ == "__main__":
    main()
