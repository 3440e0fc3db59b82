"""HumanEval for Inspect AI, as its documents write such a task: generate, find the code, run it with its tests."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, prompt_template
from inspect_ai.util import sandbox

INSTRUCTION = "Read the following function signature and docstring, and fully implement the function described.\n\n{prompt}"


@task
def humaneval() -> Task:
    records = [json.loads(line) for line in Path(os.environ["HUMANEVAL_FILE"]).read_text().splitlines()]
    samples = [Sample(id=record["task_id"], input=record["prompt"], target="", metadata=record) for record in records]
    kind = os.environ["PEERS_SANDBOX"]
    return Task(
        dataset=MemoryDataset(samples),
        solver=[prompt_template(INSTRUCTION), generate()],
        scorer=verify(),
        sandbox="local" if kind == "local" else ("docker", os.environ["PEERS_COMPOSE"]),
    )


@scorer(metrics=[accuracy()])
def verify() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        found = re.findall(r"```python\n(.*?)```", state.output.completion, re.DOTALL)
        code = found[-1] if found else state.output.completion
        record = state.metadata
        program = f"{code}\n{record['test']}\ncheck({record['entry_point']})\n"
        done = await sandbox().exec(["python3", "-c", program], timeout=60)
        return Score(value=CORRECT if done.success else INCORRECT)

    return score
