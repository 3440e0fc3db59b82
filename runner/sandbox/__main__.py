"""`python -m runner.sandbox`: opens the sandbox and prints its layers as one line of JSON."""

import asyncio
import json
import sys
from dataclasses import asdict

from runner.sandbox.executor import Executor
from runner.sandbox.pool.worker_pool import SandboxUnavailableError


async def _level() -> dict[str, object]:
    async with Executor.open(slots=1) as executor:
        level = executor.level
        return {"name": level.name, "sentence": level.sentence, **asdict(level)}


def main() -> int:
    """Prints the level; returns 1 if the sandbox cannot be opened."""
    try:
        report, code = asyncio.run(_level()), 0
    except SandboxUnavailableError as error:
        report, code = {"name": "none", "sentence": f"No sandbox: {error}."}, 1
    sys.stdout.write(json.dumps(report) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
