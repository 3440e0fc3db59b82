"""What the service keeps in memory at rest: modules that only some installations or moments need are imported by those."""

from __future__ import annotations

import subprocess
import sys

LATE = ("alembic", "authlib", "docker", "joserfc", "kubernetes_asyncio", "obstore", "typer")


def test_modules_that_rest_does_not_need_are_not_imported() -> None:
    names = f"import sys, orchestrator.cli.local.foreground; print(*({set(LATE)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", names], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
