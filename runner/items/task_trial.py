"""Tries the functions of a user's benchmark file in the sandbox: one JSON request on standard input, one reply on standard
output. The service starts this as a process of its own for checks and trials; runs do not use it."""

import asyncio
import json
import sys
from typing import Any

from runner.benchmarks.user_program import UserCodeFailed, UserProgram
from runner.contract.rules.python_file import PythonFile
from runner.contract.run_spec import ExecutionLimits
from runner.sandbox.executor import Executor

MEMORY_BYTES = 512 << 20
SLOTS = 2


async def tried(request: dict[str, Any]) -> dict[str, Any]:
    """The reply; `why` if a function that has no answers to judge failed."""
    limits = ExecutionLimits(cpu_s=float(request["cpu_s"]), memory_bytes=MEMORY_BYTES)
    async with Executor.open(SLOTS) as executor:
        program = UserProgram(PythonFile.model_validate(request["file"]), executor, limits)
        try:
            if "records" in request:
                return {"records": await program.records()}
            if "prompts" in request:
                return {"prompts": [await program.prompt(record, "prompt") for record in request["prompts"]]}
        except UserCodeFailed as error:
            return {"why": str(error)}
        return {"scores": await asyncio.gather(*(_scored(program, *pair) for pair in request["answers"]))}


async def _scored(program: UserProgram, record: dict[str, Any], answer: str) -> dict[str, Any]:
    messages = [{"role": "assistant", "content": answer}]
    try:
        score, _ = await program.score(record, answer, messages, "score")
    except UserCodeFailed as error:
        return {"error": str(error)}
    return {"value": score.value, "passed": score.passed, "reason": score.reason, "answer": score.answer}


if __name__ == "__main__":
    json.dump(asyncio.run(tried(json.load(sys.stdin))), sys.stdout)
