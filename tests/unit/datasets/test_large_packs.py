"""Packs of gigabytes: built in bounded memory, opened at the cost of what is asked for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.formats.published.livecodebench import LiveCodeBench
from orchestrator.datasets.packs.build import build
from orchestrator.datasets.packs.selection import Selection
from tests.benchmark_records.livecodebench import encoded, lcb_record

PROBE = """
import json, sys
from pathlib import Path
from orchestrator.datasets.packs.build import build
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.formats.published.livecodebench import LiveCodeBench
from orchestrator.datasets.packs.selection import Selection
task, folder, source = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
catalogue = Catalogue(folder)
if task == "build":
    build(catalogue.packs, "big", LiveCodeBench(), [source])
else:
    ids = catalogue.choose("big", Selection(sample_size=100))
    assert len(list(catalogue.records("big", ids))) == 100
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(peak) / 1024)  # ru_maxrss would count the memory of the process that started this one
"""


def megabytes(task: str, folder: Path, source: Path) -> float:
    done = subprocess.run([sys.executable, "-c", PROBE, task, folder, source], check=True, capture_output=True, text=True)
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("problems", [300, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_a_megabyte_of_tests_for_every_problem(tmp_path: Path, problems: int) -> None:
    source = tmp_path / "big.jsonl"
    row = "\n".join(str((i * 7919) % 1_000_003) for i in range(15_000))
    packed = encoded([{"input": row[k:], "output": "5\n", "testtype": "stdin"} for k in range(10)])
    with source.open("w") as out:
        for i in range(problems):
            out.write(json.dumps(lcb_record(f"q{i}", private_test_cases=packed)) + "\n")
    assert megabytes("build", tmp_path, source) < 200
    catalogue = Catalogue(tmp_path)
    ids = catalogue.choose("big", Selection(sample_size=100))
    size = sum(len(test["input"]) for record in catalogue.records("big", ids) for test in record["private_test_cases"])
    assert size > 95_000_000
    assert megabytes("open", tmp_path, source) < 200


@pytest.mark.slow
def test_lines_of_a_hundred_megabytes(tmp_path: Path) -> None:
    source = tmp_path / "wide.jsonl"
    good = lcb_record(
        "wide", private_test_cases=json.dumps([{"input": "7 " * 50_000_000, "output": "1", "testtype": "stdin"}])
    )
    with source.open("w") as out:
        out.write("x" * 100_000_000 + "\n")
        out.write(json.dumps(good) + "\n")
        out.write(json.dumps(lcb_record("small")) + "\n")
    built = build(tmp_path / "packs", "wide", LiveCodeBench(), [source])
    assert built.problems == 2
    assert [str(item)[:35] for item in built.left_out] == ["wide.jsonl line 1: not JSON: Expect"]
