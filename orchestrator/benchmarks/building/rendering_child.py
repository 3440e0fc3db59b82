"""The child process of `rendering`: reads requests as JSON lines, answers each with a line."""

from __future__ import annotations

import json
import sys
from typing import Any

from orchestrator.benchmarks.building.problems import ProblemMaker, Unusable
from orchestrator.benchmarks.definition import Definition


def serve() -> None:
    maker: ProblemMaker | None = None
    for line in sys.stdin.buffer:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            if maker is None:
                maker = ProblemMaker(Definition.model_validate(request["definition"]), request["examples"])
                answer = {}
            else:
                answer = maker.problem(request["number"], request["row"])
        except (Unusable, ValueError) as error:
            answer = {"why": str(error)}
        except (MemoryError, RecursionError) as error:
            answer = {"why": f"it needs too much memory ({type(error).__name__})"}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve()
