"""Run one recorded answer against its tests and print what became of it: enough for our own recorded answers, no sandbox.

Started as a program of its own; a request on stdin, an outcome on stdout. Every test runs in a forked child under rlimits.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from typing import Any

MEMORY_BYTES = 1 << 30
OUTPUT_BYTES = 16 << 20
OUT_OF_MEMORY = 77
CRASHED = 78


def main() -> None:
    request: dict[str, Any] = json.load(sys.stdin)
    program = request["code"]
    for number, test in enumerate(request["tests"]):
        outcome = _judge(program, request["func_name"], test, request["cpu_s"])
        if outcome != "passed":
            print(json.dumps({"outcome": outcome, "test": number}))
            return
    print(json.dumps({"outcome": "passed", "test": None}))


def _judge(program: str, func_name: str | None, test: dict[str, str], cpu_s: int) -> str:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        given.write(test["input"].encode())
        given.seek(0)
        child = os.fork()
        if child == 0:
            _child(program, func_name, given.fileno(), printed.fileno(), cpu_s)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        named = {
            -signal.SIGXCPU: "time_limit",
            -signal.SIGXFSZ: "output_limit",
            OUT_OF_MEMORY: "memory_limit",
        }
        if code != 0:
            return named.get(code, "runtime_error")
        printed.seek(0)
        return "passed" if _same(printed.read().decode(), test["output"], func_name) else "wrong_answer"


def _same(printed: str, expected: str, func_name: str | None) -> bool:
    if func_name:
        return bool(json.loads(printed) == json.loads(expected))
    rows = [[row.strip() for row in text.strip().split("\n")] for text in (printed, expected)]
    return rows[0] == rows[1]


def _child(program: str, func_name: str | None, given: int, printed: int, cpu_s: int) -> None:
    os.dup2(given, 0)
    os.dup2(printed, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES, OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    code = 0
    try:
        scope: dict[str, Any] = {"__name__": "__main__"}
        arguments = [json.loads(line) for line in sys.stdin] if func_name else []
        exec(compile(program, "<answer>", "exec"), scope)
        if func_name:
            print(json.dumps(getattr(scope["Solution"](), func_name)(*arguments)))
        sys.stdout.flush()
    except MemoryError:
        code = OUT_OF_MEMORY
    except BaseException:
        traceback.print_exc()
        code = CRASHED
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
